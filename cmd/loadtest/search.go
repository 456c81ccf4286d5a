package main

import (
	"context"
	"fmt"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/survey"
	"stocklock/internal/strategy/declared"
)

// drawnBy has the event under which two customers show that a property is missing. Of the other properties
// no schedule of two different orders shows it.
var drawnBy = map[declared.Property][]schedule.Event{
	declared.Crossable: nil, declared.Whole: {schedule.Kill}, declared.OvertakeProof: {schedule.Pause},
}

// search looks for the shortest schedule of two customers that fails for the reason for which a cell of several items
// fails, and draws it.
func search(ctx context.Context, of matrix.Pair, shop *catalog.Catalog, started servers, s streams) error {
	way := of.Strategy
	events, drawn := drawnBy[of.Scenario.Attacks]
	circles := len(events) > 0 && !way.Baskets.Meets(declared.Crossable) // each schedule with an event would show a circle
	if !of.Scenario.OfBaskets() || !drawn || circles || way.Baskets.Meets(of.Scenario.Attacks) || step.Unplayable(way) != "" {
		return nil
	}
	stage := stageSettings{servers: started, Lease: stageLease}
	on, err := stage.open(ctx, s, shop, 0, way)
	if err != nil {
		return err
	}
	defer on.Close()
	fmt.Fprintln(s.out)
	asked := survey.Plan{Strategy: way.Name, Sales: salesOf(asBaskets), Customers: 2, Events: events, Switches: len(events)}
	return asked.Run(ctx, on, progress(s), func(r survey.Result) {
		s.moving("")
		printResult(s, r, stage.again())
	})
}
