package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/soak"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/strategy/declared"
)

type soakCommand struct {
	Strategies    []string      `arg:"" optional:"" name:"strategy" help:"How to sell, all at the same time, or all: see loadtest list strategies. Without one: fenced-relative, for-update, conditional and batched. Strategies that may be mixed sell the same items, which are restocked and corrected meanwhile, and their orders cancelled. Any other strategy has items of its own. redlock is not among them: it needs several Redis servers. Nor is a strategy whose lock is in etcd."`
	For           time.Duration `default:"10m" min:"6s" max:"168h" help:"How long faults are injected. Making all items before and counting them afterwards take half a minute more, and minutes for a day."`
	Seed          uint64        `default:"1" help:"The seed of the fault schedule: the same seed makes the same schedule."`
	Faults        []string      `placeholder:"WORD" help:"Inject only faults with one of these words in their names, such as failover. Without it all: ${faults}."`
	Shops         int           `default:"3" min:"1" max:"16" help:"How many shop processes sell."`
	Rate          int           `default:"40" min:"10" max:"10000" help:"Orders a second, over all strategies."`
	RecoverWithin time.Duration `default:"5s" min:"1s" max:"10m" help:"How soon after a fault every shop must sell again by every strategy."`

	Save string `type:"path" placeholder:"FILE" help:"Also write the counts to this file, as a line in the format of Go's benchmarks."`

	Sales     *int64        `placeholder:"UNITS" min:"1" max:"100000000" help:"Instead: sell out one item of so many units by one strategy, batched by default, as fast as orders are answered. Meanwhile the shops are killed in turn, and nothing else goes wrong."`
	KillEvery time.Duration `default:"2s" min:"100ms" max:"10m" help:"With --sales: the time between two kills."`
	Workers   int           `default:"200" min:"1" max:"1000" help:"With --sales: customers who buy at the same time."`

	servers `embed:""`
}

// Help is shown under the flags.
func (*soakCommand) Help() string {
	return `Examples:

    loadtest soak --for 1m --faults 'kill -9 of MySQL'
    loadtest soak none set-ex-nx --for 1m            # strategies that do not survive
    loadtest soak --sales 1000000                    # a million sales, and a kill every two seconds

Exit codes: 0 survived, 1 something was found, 2 bad usage, 3 the harness failed, or no fault was met, which decides nothing.`
}

func (c *soakCommand) Run(ctx context.Context, s streams, parsed *kong.Context) error {
	if err := c.check(parsed); err != nil {
		return err
	}
	if c.Save != "" {
		if err := wholefile.Check(c.Save); err != nil {
			return usage("--save: %w", err)
		}
	}
	shop, o, err := askShop(ctx, c.shopSettings, s, c.options)
	if err != nil {
		return err
	}
	defer shop.Close()
	o.Log = s.err
	report, err := soak.Run(ctx, o)
	if errors.Is(err, soak.ErrUnfit) {
		err = usage("%w", err)
	}
	if err != nil && len(report.Findings) > 0 { // the exit code says that something was found, and nothing else would say why
		for _, found := range report.Findings {
			fmt.Fprintln(s.out, "found:", found)
		}
		fmt.Fprintln(s.err, "loadtest:", err)
		return errFound
	}
	if err != nil {
		return err
	}
	report.Print(s.out)
	if why := report.Undecided(); why != "" {
		return errors.New("the soak decides nothing: " + why) // nor is it saved as a measurement
	}
	if c.Save != "" {
		err = wholefile.Write(c.Save, report.Save)
	}
	return s.failed(!report.Survived(), err)
}

// check refuses flags of one form of soak in the other, and faults that there are not.
func (c *soakCommand) check(parsed *kong.Context) error {
	others, why := []string{"kill-every", "workers"}, "is of a soak with --sales"
	if c.Sales != nil {
		others, why = []string{"for", "seed", "faults", "rate", "recover-within"}, "is not of a soak with --sales"
	}
	if flag := among(others, parsed); flag != "" {
		return usage("%s %s", flag, why)
	}
	for _, word := range c.Faults {
		if strings.TrimSpace(word) == "" || len(soak.Faults(word)) == 0 {
			return usage("--faults %q: none has that word, want one of %s", word, strings.Join(soak.Faults(), "; "))
		}
	}
	return nil
}

// mostOrders bounds a soak: with the usual --rate, it is two weeks.
const mostOrders = 50_000_000

// needsMore reports whether a soak, which has one Redis and no etcd, cannot sell by a strategy.
func needsMore(s declared.Strategy) bool { return s.NeedsQuorum || s.NeedsEtcd }

func (c *soakCommand) options(shop *catalog.Catalog) (o soak.Options, err error) {
	if len(c.Strategies) == 0 && c.Sales != nil {
		c.Strategies = []string{"batched"}
	} else if len(c.Strategies) == 0 {
		c.Strategies = []string{"fenced-relative", "for-update", "conditional", "batched"}
	}
	fit := slices.DeleteFunc(slices.Clone(shop.Strategies), needsMore)
	strategies, err := cells.Named(c.Strategies, fit, shop.ByName)
	if err != nil {
		return o, usage("%w", err)
	}
	if i := slices.IndexFunc(strategies, needsMore); i >= 0 {
		return o, usage("a soak has one Redis, and %s needs several, or an etcd", strategies[i].Name)
	}
	o = soak.Options{Shop: shop.Program, Redis: string(c.RedisServer), MySQLSet: c.MySQLSet, Strategies: strategies, Shops: c.Shops}
	if c.Sales == nil {
		// Half of the turns are for repeats, and a sold-out item or a subject's limit can take one away.
		if least := 4 * float64(c.Shops*len(strategies)) / c.RecoverWithin.Seconds(); float64(c.Rate) < least {
			return o, usage("--rate %d: too few to see within --recover-within %s that each of %d shops sells by each of %d strategies: want --rate %.0f at least",
				c.Rate, c.RecoverWithin, c.Shops, len(strategies), math.Ceil(least))
		}
		if orders := c.Rate * int(c.For.Seconds()); orders > mostOrders {
			return o, usage("--rate %d and --for %s are %d orders: want at most %d, whose items are made before", c.Rate, c.For, orders, mostOrders)
		}
		o.Faults, o.Duration, o.Seed, o.Rate, o.RecoverWithin = c.Faults, c.For, c.Seed, c.Rate, c.RecoverWithin
		return o, nil
	}
	switch o.Sales, o.Every, o.Workers = *c.Sales, c.KillEvery, c.Workers; {
	case len(strategies) != 1:
		return o, usage("--sales is for one strategy")
	case c.Shops < 2:
		return o, usage("--sales kills one shop after the other: want two --shops at least")
	}
	return o, nil
}
