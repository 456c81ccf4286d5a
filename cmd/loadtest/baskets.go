package main

import (
	"context"
	"errors"
	"fmt"

	"stocklock/internal/lab/basket"
	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/strategy/declared"
)

// drawnBy has the event under which two customers show that a property is missing. Of the other properties
// no schedule of two different orders shows it.
var drawnBy = map[declared.Property][]schedule.Event{
	declared.Crossable: nil, declared.Whole: {schedule.Kill}, declared.OvertakeProof: {schedule.Pause},
}

// basket runs a cell of several items and tells it. If it fails, the shortest schedule of two customers that
// fails for the same reason is searched, and drawn.
func (c *explainCommand) basket(ctx context.Context, plan matrix.Plan, name string, of basket.Scenario, s streams) error {
	if err := startsAll(plan); err != nil {
		return err
	}
	var way declared.Strategy
	shop, err := c.catalog(ctx, s, func(shop *catalog.Catalog) (err error) {
		if way, err = shop.BasketByName(name); err != nil {
			return usage("explain explains one cell: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer shop.Close()
	plan.Runs, plan.Baskets = 1, []matrix.BasketPair{{Strategy: way, Scenario: of}}
	r, err := measure(ctx, plan, shop, s)
	if err != nil || len(r.Cells) == 0 {
		return err
	}
	told := c.show(r.Cells[0], s)
	events, drawn := drawnBy[of.Attacks]
	circles := len(events) > 0 && !way.Baskets.Meets(declared.Crossable) // each schedule with an event would show a circle
	if c.Mermaid || !drawn || circles || way.Baskets.Meets(of.Attacks) || stage.Unplayable(way) != "" {
		return told
	}
	on, err := stageSettings{shopSettings: c.shopSettings, redisSettings: c.redisSettings, mysqlSettings: c.mysqlSettings, Lease: stageLease}.open(ctx, s, shop, way)
	if err != nil {
		return err
	}
	defer on.Close()
	fmt.Fprintln(s.out)
	survey := explore.Survey{Strategy: way.Name, Baskets: true, Customers: 2, Events: events, Switches: len(events)}
	return errors.Join(told, survey.Run(ctx, on, progress(s), func(r explore.Result) {
		clearProgress(s)
		printResult(s, r)
	}))
}
