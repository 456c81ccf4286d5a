package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/strategy"
)

// stageSettings are what schedules are played on.
type stageSettings struct {
	ShopBinary string        `env:"LOADTEST_SHOP_BINARY" placeholder:"FILE" help:"The shop to start, with strategies of its own. Without it the one of this checkout, or the program shop beside this one."`
	Lease      time.Duration `default:"300ms" min:"100ms" max:"2s" help:"The lease of every lock. A run that the machine is too slow for is made again."`
}

// open starts what schedules are played on. The caller closes it.
func (o stageSettings) open(ctx context.Context, s streams) (*schedule.Stage, error) {
	if isTerminal(s.err) {
		fmt.Fprint(s.err, "starting MySQL, Redis and the shops …")
		defer fmt.Fprint(s.err, "\r\x1b[2K")
	}
	return schedule.OpenStage(ctx, schedule.StageOptions{Lease: o.Lease, Shop: o.ShopBinary})
}

// chosen is one strategy as its shop describes it.
type chosen struct {
	strategy.Description
	declared strategy.Properties
}

// chooseStrategies finds strategies among those that the shop has.
func chooseStrategies(ctx context.Context, stage *schedule.Stage, names []string) ([]chosen, error) {
	all, err := stage.Strategies(ctx)
	if err != nil {
		return nil, err
	}
	var there []string
	for _, d := range all {
		there = append(there, d.Name)
	}
	if slices.Contains(names, "all") {
		names = there
	}
	var found []chosen
	for _, name := range names {
		i := slices.Index(there, name)
		if i < 0 {
			return nil, usage("no strategy %q: want one of %s", name, strings.Join(there, ", "))
		}
		declared, err := all[i].Properties()
		if err != nil {
			return nil, usage("%w", err)
		}
		found = append(found, chosen{all[i], declared})
	}
	return found, nil
}

// notStepped is why a strategy cannot be stepped through, empty where it can.
func (c chosen) notStepped() string {
	switch {
	case c.NeedsQuorum:
		return "it asks several servers at once, and a schedule has one step at a time"
	case c.KeepsState:
		return "it keeps stock in other places than the item's row, and a schedule reads only that"
	case c.AnswersFirst:
		return "it writes after it has answered, and a schedule ends with the answers"
	case c.Background:
		return "goroutines beside the sales write its orders, and a schedule has the requests of the sales"
	}
	return ""
}
