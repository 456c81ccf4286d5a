package main

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/schedule"
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
