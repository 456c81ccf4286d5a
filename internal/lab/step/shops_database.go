package step

import (
	"context"
	"errors"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/rig"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// database is the MySQL of a slot: that of the stage, another database of its server, or a pair of the slot's own.
type database struct {
	dsn   string       // of the shops
	store *stock.Store // for looking, and for making items: on the server that the shops write to

	pair    *rig.Pair    // nil for a database of the stage's MySQL, which has none of the rest
	front   *rig.Front   // it leads the shops to the primary
	reads   *rig.Front   // and their reads to the replica, where a shop is told so
	readDSN string       // through that
	replica *stock.Store // for looking
	behind  bool         // the replica applies nothing, or receives nothing
	lost    bool         // the primary has died: the pair gets another replica before the next run
}

// fast is an option of a server that does not crash, or that is to forget: a commit takes a tenth of the time.
const fast = "--innodb-flush-log-at-trx-commit=0"

func (s *Shops) openPair(ctx context.Context) (_ *database, err error) {
	pair, err := s.servers.Rig.MySQLPair(ctx, testserver.PairOptions{Options: append(testserver.Settings(s.options.MySQLSet), fast, "--sync-binlog=0")})
	if err != nil {
		return nil, err
	}
	d := &database{pair: pair}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if d.front, d.dsn, err = s.servers.Rig.FrontMySQL(pair.Primary.ShopDSN()); err != nil {
		return nil, err
	}
	if d.reads, d.readDSN, err = s.servers.Rig.FrontMySQL(pair.Replica.ShopDSN()); err != nil {
		return nil, err
	}
	if err := d.look(ctx); err != nil {
		return nil, err
	}
	return d, d.copied(ctx)
}

// openApart makes a database of the stage's MySQL that no other shops have.
func (s *Shops) openApart(ctx context.Context, name string) (*database, error) {
	dsn, err := s.servers.MySQL.CreateDatabase(ctx, name)
	if err != nil {
		return nil, err
	}
	store, err := audit.Open(ctx, dsn)
	return &database{dsn: dsn, store: store}, err
}

// look opens what looks at the two servers, in the place of what did.
func (d *database) look(ctx context.Context) error {
	err := d.close()
	if err == nil {
		d.store, err = audit.Open(ctx, d.pair.Primary.DSN())
	}
	if err == nil {
		d.replica, err = stock.Open(d.pair.Replica.DSN())
	}
	return err
}

func (d *database) close() error {
	var errs []error
	for _, store := range []*stock.Store{d.store, d.replica} {
		if store != nil {
			errs = append(errs, store.Close())
		}
	}
	d.store, d.replica = nil, nil
	return errors.Join(errs...)
}

// copied waits until the replica has what the primary has. It does nothing without a pair, and while the
// replica is to be behind.
func (d *database) copied(ctx context.Context) error {
	if d.pair == nil || d.behind || d.lost {
		return nil
	}
	return d.pair.Replica.AwaitCopied(ctx, d.pair.Primary)
}

// prepare waits until the replica has what is there before a run. With failing, it receives nothing of the run.
func (d *database) prepare(ctx context.Context, failing bool) error {
	if err := d.copied(ctx); err != nil || !failing {
		return err
	}
	d.behind = true
	return d.pair.Link.Cut()
}

// lag has the replica apply nothing.
func (d *database) lag(ctx context.Context) error {
	d.behind = true
	return d.pair.Replica.StopApplying(ctx)
}

// failOver kills the primary, and leads the shops to the replica.
func (d *database) failOver(ctx context.Context) error {
	d.lost = true
	if err := d.pair.FailOver(ctx); err != nil {
		return err
	}
	d.front.Lead(d.pair.Replica.Addr)
	err := d.store.Close()
	if err == nil {
		d.store, err = audit.Open(ctx, d.pair.Replica.DSN())
	}
	return err
}

// catchUp waits until the replica has everything, and ends a lag before that.
func (d *database) catchUp(ctx context.Context) error {
	if d.behind && !d.lost {
		d.behind = false
		d.pair.Link.Heal()
		if err := d.pair.Replica.StartApplying(ctx); err != nil {
			return err
		}
	}
	return d.copied(ctx)
}

// restore gives the pair another replica after a failover. After an error, the next call goes on with it.
func (d *database) restore(ctx context.Context) error {
	if d.lost {
		if err := errors.Join(d.close(), d.pair.Renew(ctx)); err != nil {
			return err
		}
		d.lost, d.behind = false, false
		d.reads.Lead(d.pair.Replica.Addr)
	}
	if d.pair != nil && d.replica == nil {
		if err := d.look(ctx); err != nil {
			return err
		}
	}
	return d.catchUp(ctx)
}
