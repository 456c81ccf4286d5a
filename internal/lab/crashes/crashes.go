// Package crashes sells many units of one item while it kills one shop after the other with kill -9
// and starts it again. At the end, SQL shows whether the orders and the answers agree.
package crashes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/strategy"
	"stocklock/internal/testserver"
)

// Options are the settings of a run.
type Options struct {
	Shop     string // the program that is started as the shops, empty for the one of the checkout
	Strategy strategy.Description
	Sales    int64         // the item's units; all are sold
	Shops    int           // processes
	Workers  int           // customers who buy at once
	Every    time.Duration // between two kills
	Binlog   bool          // MySQL writes a binlog, synced with each commit
	Log      io.Writer     // the progress
}

const (
	patience = 20 * time.Second // of a customer, with one request
	settling = 2 * time.Minute  // for outcomes that are still unknown at the end
	progress = 5 * time.Second
)

// Run sells on private servers and shops, which end with it. An error means that the harness failed
// or that ctx ended. The report has the shops' failures.
func Run(ctx context.Context, o Options) (_ Report, err error) {
	r, err := rig.New()
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.UseShopBinary(o.Shop); err != nil {
		return Report{}, err
	}
	fmt.Fprintf(o.Log, "starting MySQL, Redis and %d shops\n", o.Shops)
	var options []string
	if o.Binlog {
		options = testserver.WithBinlog
	}
	mysql, err := r.MySQL(ctx, options...)
	if err != nil {
		return Report{}, err
	}
	store, err := audit.Open(mysql.DSN())
	if err != nil {
		return Report{}, err
	}
	defer store.Close()
	if err := store.Migrate(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return Report{}, err
	}
	testbed, err := r.Testbed(ctx, rig.TestbedOptions{
		Name: "shop", Shops: o.Shops, DSN: mysql.DSN(),
		Env: map[string]string{"SHOP_LAB": "true", "SHOP_LOG_LEVEL": "error", "SHOP_LAB_WORK": "0s"},
	})
	if err != nil {
		return Report{}, err
	}
	item, err := audit.Start(ctx, store, audit.Run{
		ID: "crashes", Strategy: o.Strategy.Name, Scenario: "crashes", InitialStock: o.Sales, State: o.Strategy.State,
	})
	if err != nil {
		return Report{}, err
	}
	c := newCustomers(item, testbed.Shops)
	report := Report{Options: o}
	if err := sell(ctx, o, c, testbed, &report); err != nil {
		return Report{}, err
	}
	if err := report.count(ctx, store, item, c); err != nil {
		return Report{}, err
	}
	return report, nil
}

// sell sells until the item is sold out and every customer has a clear answer.
func sell(ctx context.Context, o Options, c *customers, testbed *rig.Testbed, report *Report) error {
	selling, stop := context.WithCancel(ctx)
	defer stop()
	beside, besideCtx := errgroup.WithContext(selling)
	beside.Go(func() error {
		defer stop() // also where a shop does not start again
		return kill(besideCtx, o.Every, testbed.Shops, &report.Kills)
	})
	beside.Go(func() error { return c.tell(besideCtx, o) })
	began := time.Now()
	err := load.Load{Workers: o.Workers, Timeout: patience}.Run(selling, c.next, c.answered)
	report.Took = time.Since(began)
	stop()
	if err := errors.Join(err, beside.Wait(), context.Cause(ctx)); err != nil {
		return err
	}
	return c.settle(ctx, o.Workers)
}

// kill kills one shop after the other and starts it again, until ctx ends.
func kill(ctx context.Context, every time.Duration, shops []*rig.TestbedShop, kills *int) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		shop := shops[*kills%len(shops)]
		if err := shop.Kill(); err != nil {
			return err
		}
		*kills++
		if err := shop.Restart(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

// tell says how many units are sold, until ctx ends.
func (c *customers) tell(ctx context.Context, o Options) error {
	tick := time.NewTicker(progress)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			fmt.Fprintf(o.Log, "%d of %d sold\n", c.sold(), o.Sales)
		}
	}
}
