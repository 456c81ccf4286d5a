package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/soak"
	"stocklock/internal/strategy/declared"
)

type soakCommand struct {
	Minutes       float64       `default:"10" min:"0.1" max:"10000" help:"How long faults are injected. Warming up and counting take about half a minute more."`
	Seed          uint64        `default:"1" help:"The seed of the fault schedule: the same seed makes the same schedule."`
	Strategies    []string      `default:"fenced-relative,for-update,conditional,batched" help:"How to sell, all at the same time, or all: see loadtest list strategies. Strategies that may be mixed sell the same items, which are restocked and corrected meanwhile, and their orders cancelled. Any other strategy has items of its own. redlock is not among them: it needs several Redis servers."`
	Faults        []string      `placeholder:"WORD" help:"Inject only faults with one of these words in their names, such as failover. Without it all: ${faults}."`
	Shops         int           `default:"3" min:"1" max:"16" help:"How many shop processes sell."`
	Rate          int           `default:"40" min:"10" max:"10000" help:"Orders a second, over all strategies."`
	RecoverWithin time.Duration `default:"5s" min:"1s" max:"10m" help:"How soon after a fault every shop must sell again by every strategy."`

	shopSettings  `embed:""`
	redisSettings `embed:""`
}

func (c *soakCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	var o soak.Options
	shop, err := c.catalog(ctx, s, func(shop *catalog.Catalog) (err error) {
		o, err = c.options(shop)
		return err
	})
	if err != nil {
		return err
	}
	defer shop.Close()
	return s.soak(ctx, o)
}

// soak runs a soak and prints its report.
func (s streams) soak(ctx context.Context, o soak.Options) error {
	o.Log = s.err
	report, err := soak.Run(ctx, o)
	if errors.Is(err, soak.ErrUnfit) {
		err = usage("%w", err)
	}
	if err != nil {
		return err
	}
	report.Print(s.out)
	if !report.Survived() {
		return errSurprised
	}
	return nil
}

// needsQuorum reports whether a soak, which has one Redis, cannot sell by a strategy.
func needsQuorum(s declared.Strategy) bool { return s.NeedsQuorum }

func (c *soakCommand) check() error {
	for _, word := range c.Faults {
		if strings.TrimSpace(word) == "" || len(soak.Faults(word)) == 0 {
			return usage("--faults %q: none has that word, want one of %s", word, strings.Join(soak.Faults(), "; "))
		}
	}
	return nil
}

func (c *soakCommand) options(shop *catalog.Catalog) (soak.Options, error) {
	fit := slices.DeleteFunc(slices.Clone(shop.Strategies), needsQuorum)
	strategies, err := named(c.Strategies, fit, shop.ByName)
	if err != nil {
		return soak.Options{}, usage("--strategies: %w, or all", err)
	}
	if i := slices.IndexFunc(strategies, needsQuorum); i >= 0 {
		return soak.Options{}, usage("--strategies: a soak has one Redis, and %s needs several", strategies[i].Name)
	}
	return soak.Options{
		Shop: shop.Program, Redis: string(c.RedisServer), Strategies: strategies, Faults: c.Faults, Shops: c.Shops, Duration: time.Duration(c.Minutes * float64(time.Minute)), Seed: c.Seed,
		Rate: c.Rate, RecoverWithin: c.RecoverWithin,
	}, nil
}

type crashesCommand struct {
	Strategy string        `default:"batched" help:"How to sell: see loadtest list strategies. redlock cannot: it needs several Redis servers."`
	Sales    int64         `default:"1000000" min:"1" max:"100000000" help:"The units of the item. All are sold."`
	Every    time.Duration `default:"2s" min:"100ms" max:"10m" help:"The time between two kills. The shops are killed in turn."`
	Shops    int           `default:"3" min:"2" max:"16" help:"How many shop processes sell."`
	Workers  int           `default:"200" min:"1" max:"1000" help:"Customers who buy at the same time."`
	Binlog   bool          `help:"Have MySQL write a binlog and sync it with each commit, as MySQL does by default."`

	shopSettings  `embed:""`
	redisSettings `embed:""`
}

func (c *crashesCommand) Run(ctx context.Context, s streams) error {
	var by declared.Strategy
	shop, err := c.catalog(ctx, s, func(shop *catalog.Catalog) (err error) {
		if by, err = shop.ByName(c.Strategy); err != nil {
			return usage("--strategy: %w", err)
		}
		if needsQuorum(by) {
			return usage("--strategy: there is one Redis, and %s needs several", by.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer shop.Close()
	return s.soak(ctx, soak.Options{
		Shop: shop.Program, Redis: string(c.RedisServer), Strategies: []declared.Strategy{by}, Shops: c.Shops,
		Sales: c.Sales, Workers: c.Workers, Every: c.Every, Binlog: c.Binlog,
	})
}
