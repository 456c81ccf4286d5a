// Package bench opens what is attacked and measured: servers that end with it, the store that counts on them, and shops
// in front of them.
package bench

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/topology"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// Options say what is opened. The zero value is one MySQL, and shops of the checkout.
type Options struct {
	Shop     string             // the program that is started as the shops
	Redis    string             // the program that is started as Redis, empty for the one of the machine
	MySQL    []string           // options of mysqld
	DSN      string             // of a MySQL that was given by address, empty to start one
	Given    bool               // the shops were, too: nothing is started
	Topology *topology.Topology // of the database, nil for one server
	// Connections are those that the lab itself opens at most; 0 for PoolSize.
	Connections int
	// Load says that no server fails: what counts on a cluster waits for all that its nodes have committed.
	Load bool
}

// Bench is opened servers. Close ends them.
type Bench struct {
	*rig.Rig                   // nil where the shops were given by address
	Store    *stock.Store      // counts on the first server
	MySQL    *testserver.MySQL // nil for one given by address
	Database *topology.Servers // of a topology, nil for one server
	MariaDB  bool
	Version  string // of MySQL, with its name

	dsn string // of the shops
}

// PoolSize is how many connections the lab itself usually opens at most, besides a few for probes.
const PoolSize = 16

// Open opens the servers, and creates the tables.
func Open(ctx context.Context, o Options) (_ *Bench, err error) {
	b := &Bench{dsn: o.DSN}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if !o.Given {
		if b.Rig, err = rig.New(o.Shop); err != nil {
			return nil, err
		}
		b.RedisProgram = o.Redis
	}
	dsn := o.DSN
	switch {
	case o.Topology != nil:
		if b.Database, err = o.Topology.Start(ctx, b.Rig); err != nil {
			return nil, err
		}
		if dsn = b.Database.Nodes[0].DSN(); o.Load && b.Database.Galera {
			dsn += "?wsrep_sync_wait=1"
		}
	case dsn == "":
		if b.MySQL, err = b.Rig.MySQL(ctx, o.MySQL...); err != nil {
			return nil, err
		}
		b.dsn = b.MySQL.DSN()
		dsn = b.dsn
	}
	if b.Store, err = audit.Open(ctx, dsn, stock.WithPoolSize(cmp.Or(o.Connections, PoolSize))); err != nil {
		return nil, err
	}
	if b.Database != nil {
		if err := b.Database.Copied(ctx); err != nil {
			return nil, err
		}
	}
	b.Version, err = b.Store.Version(ctx)
	if b.MariaDB = strings.Contains(b.Version, "MariaDB"); !b.MariaDB {
		b.Version = "MySQL " + b.Version
	}
	return b, err
}

// Testbed starts shops in front of the servers. Those of a topology have a front each, and are as many as it wants.
func (b *Bench) Testbed(ctx context.Context, o rig.TestbedOptions) (*rig.Testbed, error) {
	if b.Database != nil {
		return b.Database.Testbed(ctx, b.Rig, o)
	}
	o.DSN = b.dsn
	return b.Rig.Testbed(ctx, o)
}

// Close ends everything that was opened.
func (b *Bench) Close() error {
	var errs []error
	if b.Store != nil {
		errs = append(errs, b.Store.Close())
	}
	if b.Rig != nil {
		errs = append(errs, b.Rig.Close())
	}
	return errors.Join(errs...)
}
