package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/soak"
	"stocklock/internal/strategy/ladder"
)

type soakCommand struct {
	Minutes       float64       `default:"10" help:"How long faults are struck. Warming up and counting take about half a minute more."`
	Seed          uint64        `default:"1" help:"What the schedule of faults is made from: the same seed, the same schedule."`
	Strategies    []string      `default:"fenced,for-update,optimistic,conditional" help:"How to sell, all at the same time, each on items of its own, or all: ${strategies}; but for redlock, which needs several Redis servers."`
	Faults        []string      `placeholder:"WORD" help:"Strike only faults with one of these words in their names, such as failover. Without it all: ${faults}."`
	Shops         int           `default:"3" help:"How many shop processes sell."`
	Rate          int           `default:"40" help:"Orders a second, over all strategies."`
	RecoverWithin time.Duration `default:"5s" help:"How soon after a fault every shop must sell again by every strategy."`
}

func (c *soakCommand) Run(ctx context.Context, s streams) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	o.Log = s.err
	report, err := soak.Run(ctx, o)
	if err != nil {
		return err
	}
	report.Print(s.out)
	if !report.Survived() {
		return errSurprised
	}
	return nil
}

func (c *soakCommand) options() (soak.Options, error) {
	fit := slices.DeleteFunc(ladder.All(), needsQuorum) // a soak has one Redis
	strategies, err := named(c.Strategies, fit, ladder.ByName)
	if err != nil {
		return soak.Options{}, usage("--strategies: %w, or all", err)
	}
	if i := slices.IndexFunc(strategies, needsQuorum); i >= 0 {
		return soak.Options{}, usage("--strategies: a soak has one Redis, and %s needs several", strategies[i].Name)
	}
	for _, word := range c.Faults {
		if strings.TrimSpace(word) == "" || len(soak.Faults(word)) == 0 {
			return soak.Options{}, usage("--faults %q: none has that word, want one of %s", word, strings.Join(soak.Faults(), "; "))
		}
	}
	for _, limit := range []struct {
		flag          string
		value, lo, hi float64
		unit          string
	}{
		{"--minutes", c.Minutes, 0.1, 10_000, ""},
		{"--shops", float64(c.Shops), 1, 16, ""},
		{"--rate", float64(c.Rate), 10, 10_000, ""},
		{"--recover-within", c.RecoverWithin.Seconds(), 1, 600, "s"},
	} {
		if !(limit.value >= limit.lo && limit.value <= limit.hi) { // also what is no number
			return soak.Options{}, usage("%s is %g%s, want %g to %g%s", limit.flag, limit.value, limit.unit, limit.lo, limit.hi, limit.unit)
		}
	}
	return soak.Options{
		Strategies: strategies, Faults: c.Faults, Shops: c.Shops, Duration: time.Duration(c.Minutes * float64(time.Minute)), Seed: c.Seed,
		Rate: c.Rate, RecoverWithin: c.RecoverWithin,
	}, nil
}
