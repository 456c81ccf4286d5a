package main

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/strategy"
)

// stageSettings are what schedules are played on.
type stageSettings struct {
	shopSettings `embed:""`

	Lease time.Duration `default:"300ms" min:"100ms" max:"2s" help:"The lease of every lock. A run that the machine is too slow for is made again."`
}

// open starts what schedules are played on. The caller closes it before the catalog.
func (o stageSettings) open(ctx context.Context, s streams, shop *catalog.Catalog) (*schedule.Stage, error) {
	if isTerminal(s.err) {
		fmt.Fprint(s.err, "starting MySQL, Redis and the shops …")
		defer fmt.Fprint(s.err, "\r\x1b[2K")
	}
	return schedule.OpenStage(ctx, shop, schedule.StageOptions{Lease: o.Lease})
}

// notStepped is why a strategy cannot be stepped through, empty where it can.
func notStepped(s strategy.Description) string {
	switch {
	case s.NeedsQuorum:
		return "it asks several servers at once, and a schedule has one step at a time"
	case s.State.Remaining != "":
		return "it keeps stock in other places than the item's row, and a schedule reads only that"
	case s.AnswersFirst:
		return "it writes after it has answered, and a schedule ends with the answers"
	}
	return ""
}
