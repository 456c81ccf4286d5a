package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/strategy/declared"
)

// programs say what is started.
type programs struct {
	shopSettings  `embed:""`
	redisSettings `embed:""`
}

// servers are programs, and the settings of one of them.
type servers struct {
	programs `embed:""`
	MySQLSet []string `name:"mysql-set" sep:"none" placeholder:"NAME=VALUE" help:"A setting of the MySQL that is started, once for each: such as innodb_snapshot_isolation=ON, or the word ${binlog} for a binlog that is synced with each commit, as MySQL does by default. The row of an item then stays locked for longer."`
}

// shopSettings say which shop is started, and asked for its strategies.
type shopSettings struct {
	ShopBinary string `env:"LOADTEST_SHOP_BINARY" placeholder:"FILE" help:"The shop to start, built with the tag lab and strategies of its own. Without it the one of this checkout, or the program shop beside this one."`
}

// redisSettings say which Redis is started.
type redisSettings struct {
	RedisServer programFile `env:"LOADTEST_REDIS_SERVER" placeholder:"FILE" help:"The program to start as Redis: a redis-server or valkey-server of another version. Without it the one of this machine."`
}

// programFile is the path of a program that can be started, empty for none.
type programFile string

// UnmarshalText makes the path absolute: servers are started in folders of their own.
func (p *programFile) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	path, err := rig.ProgramAt(string(text))
	*p = programFile(path)
	return err
}

// askShop asks a shop of the lab for its strategies, of which choose takes those
// that the user names. It first calls choose with the shop that was built last, so that a wrong name
// is refused before anything is compiled. The caller closes the catalog after the last use of its
// program.
func askShop[T any](ctx context.Context, o shopSettings, s streams, choose func(*catalog.Catalog) (T, error)) (c *catalog.Catalog, chosen T, err error) {
	c, err = o.known(ctx, s)
	if err == nil && c.AsBuilt {
		if _, err := choose(c); err != nil {
			return nil, chosen, err
		}
		c, err = o.open(ctx, s)
	}
	if err != nil {
		return nil, chosen, err
	}
	if chosen, err = choose(c); err != nil {
		return nil, chosen, errors.Join(err, c.Close())
	}
	return c, chosen, nil
}

// known asks a shop that is there. It builds one only where none was built before.
func (o shopSettings) known(ctx context.Context, s streams) (*catalog.Catalog, error) {
	if o.ShopBinary == "" {
		if c := catalog.Built(ctx); c != nil {
			return c, nil
		}
	}
	return o.open(ctx, s)
}

// open asks the shop that is given, or the one of this checkout, which it brings up to date.
func (o shopSettings) open(ctx context.Context, s streams) (*catalog.Catalog, error) {
	defer s.late("compiling the shop")()
	c, err := catalog.Open(ctx, o.ShopBinary)
	if err != nil && o.ShopBinary != "" && ctx.Err() == nil {
		err = usage("--shop-binary (LOADTEST_SHOP_BINARY): %w", err)
	}
	return c, err
}

// patience is how long a command is silent.
const patience = 2 * time.Second

// late says what is done, unless that ends soon: the caller then calls done.
func (s streams) late(what string) (done func()) {
	ended, said := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(said)
		select {
		case <-ended:
		case <-time.After(patience):
			status := matrix.NewStatus(s.err, movingWidth(s.err))
			status.Say(what)
			<-ended
			status.Close()
		}
	}()
	return func() { close(ended); <-said }
}

// stageSettings are what schedules are played on, and by whom.
type stageSettings struct {
	servers `embed:""`

	As    string        `enum:",${as}" default:"" help:"How customers buy. one-shop: all at one shop, not each at its own. baskets: two items in each sale, the second customer in the opposite order. reservations: two reserve and pay, and a third one sweeps. Strategies that only sell baskets, or only reserve, need no word."`
	Lease time.Duration `default:"${stage_lease}" min:"100ms" max:"2s" help:"The lease of every lock. One whose shortest lease is longer makes it that. A run that the machine is too slow for is made again."`
}

// The values of --as.
const (
	asOneShop      = "one-shop"
	asBaskets      = "baskets"
	asReservations = "reservations"
)

// as is how customers buy from a strategy, empty for each one item at a shop of its own.
func (o stageSettings) as(of declared.Strategy) (string, error) {
	switch {
	case o.As == "" && of.OnlyBaskets:
		return asBaskets, nil
	case o.As == "" && of.OnlyReservations:
		return asReservations, nil
	case o.As == asBaskets && of.Baskets == nil:
		return "", usage("%s sells one item at a time", of.Name)
	case o.As == asReservations && of.Reservations == nil:
		return "", usage("%s does not reserve", of.Name)
	case of.OnlyBaskets && o.As != asBaskets, of.OnlyReservations && o.As != asReservations:
		return "", usage("%s does not sell so: want it without --as", of.Name)
	}
	return o.As, nil
}

// again are the flags of a command that plays on the same.
func (o stageSettings) again() string {
	flags := flagOf("--shop-binary", o.ShopBinary) + flagOf("--redis-server", string(o.RedisServer))
	for _, setting := range o.MySQLSet {
		flags += flagOf("--mysql-set", setting)
	}
	if o.Lease != stageLease {
		flags += flagOf("--lease", o.Lease.String())
	}
	return flags
}

// salesOf is what a value of --as stands for.
func salesOf(as string) schedule.Sales {
	return schedule.Sales{OneShop: as == asOneShop, Baskets: as == asBaskets, Reservations: as == asReservations}
}

// stageLease is long for a request on a busy machine, and short for who waits for its end.
const stageLease = 300 * time.Millisecond

// open starts what schedules of these strategies are played on, with so many slots of their own: see [step.Options]. The
// caller closes it before the catalog.
func (o stageSettings) open(ctx context.Context, s streams, shop *catalog.Catalog, slots int, of ...declared.Strategy) (*step.Shops, error) {
	for _, st := range of {
		if o.Lease < st.ShortestLease {
			o.Lease = st.ShortestLease
			fmt.Fprintf(s.err, "the lease is %s, the shortest of %s\n", o.Lease, st.Name)
		}
	}
	if isTerminal(s.err) {
		fmt.Fprint(s.err, "starting MySQL, Redis and the shops …")
		defer fmt.Fprint(s.err, "\r\x1b[2K")
	}
	return step.OpenShops(ctx, shop, step.Options{Lease: o.Lease, OwnSlots: slots, RedisServer: string(o.RedisServer), MySQLSet: o.MySQLSet})
}
