package main

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/stage"
	"stocklock/internal/strategy"
)

// stageSettings are what schedules are played on.
type stageSettings struct {
	shopSettings `embed:""`

	Lease time.Duration `default:"300ms" min:"100ms" max:"2s" help:"The lease of every lock. One whose shortest lease is longer makes it that. A run that the machine is too slow for is made again."`
}

// open starts what schedules of these strategies are played on. The caller closes it before the
// catalog.
func (o stageSettings) open(ctx context.Context, s streams, shop *catalog.Catalog, of ...strategy.Description) (*stage.Stage, error) {
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
	return stage.Open(ctx, shop, stage.Options{Lease: o.Lease})
}
