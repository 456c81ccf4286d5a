package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/basket"
	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/strategy"
)

// baskets runs cells of several items.
func (c *runCommand) baskets(ctx context.Context, plan matrix.Plan, shop *catalog.Catalog, s streams) error {
	pairs, err := c.selection.basketPairs(shop)
	if err != nil {
		return err
	}
	if err := startsAll(plan); err != nil {
		return err
	}
	if len(c.Topology) > 0 {
		return usage("--baskets and --topology have scenarios of their own: want one of the two")
	}
	if c.Results != "" {
		return usage("--baskets measures no requests: want --json, --html, --csv or --markdown in place of --results")
	}
	if c.ExpectOnly {
		s.terminal().ExpectedBaskets(shop.Baskets, func(way, scenario string) bool {
			return slices.ContainsFunc(pairs, func(p matrix.BasketPair) bool { return p.Strategy.Name == way && p.Scenario.Name == scenario })
		})
		return nil
	}
	plan.Runs = c.Runs
	r, failed := measureBaskets(ctx, plan, pairs, shop, s)
	if failed != nil && len(r.Cells) == 0 {
		return failed
	}
	terminal := c.outputs.beside(s).terminal()
	if c.Draw {
		terminal.Stories(r)
	}
	terminal.Report(r)
	return errors.Join(failed, c.outputs.finish(r, s))
}

// startsAll refuses servers and shops that are given.
func startsAll(plan matrix.Plan) error {
	if len(plan.Given) > 0 || plan.MySQL != "" || plan.Redis != "" {
		return usage("several items: the scenarios stop and kill shops, and empty Redis: the lab starts all of them itself, without --shop, --mysql and --redis")
	}
	return nil
}

// drawnBy has the event under which two customers show that a property is missing. Of the other properties
// no schedule of two different orders shows it.
var drawnBy = map[strategy.Property][]schedule.Event{
	strategy.Crossable: nil, strategy.Whole: {schedule.Kill}, strategy.OvertakeProof: {schedule.Pause},
}

// basket runs a cell of several items and tells it. If it fails, the shortest schedule of two customers that
// fails for the same reason is searched, and drawn.
func (c *explainCommand) basket(ctx context.Context, plan matrix.Plan, name string, of basket.Scenario, s streams) error {
	if err := startsAll(plan); err != nil {
		return err
	}
	shop, err := c.catalog(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	way, err := shop.BasketByName(name)
	if err != nil {
		return usage("explain explains one cell: %w", err)
	}
	plan.Runs = 1
	r, err := measureBaskets(ctx, plan, []matrix.BasketPair{{Strategy: way, Scenario: of}}, shop, s)
	if err != nil || len(r.Cells) == 0 {
		return err
	}
	told := c.show(r.Cells[0], s)
	events, drawn := drawnBy[of.Attacks]
	circles := len(events) > 0 && !way.Baskets.Meets(strategy.Crossable) // each schedule with an event would show a circle
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

// measureBaskets is [measure] for cells of several items.
func measureBaskets(ctx context.Context, plan matrix.Plan, pairs []matrix.BasketPair, shop *catalog.Catalog, s streams) (report.Report, error) {
	status := matrix.NewStatus(s.err, isTerminal(s.err))
	defer status.Close()
	plan.Shop = shop.Program
	r, err := matrix.RunBaskets(ctx, plan, pairs, status)
	if address, ok := errors.AsType[*matrix.AddressError](err); ok {
		return r, usage("--%w", address)
	}
	r.Environment.Command = commandLine(s.args)
	for i, c := range r.Cells {
		r.Cells[i].Replay = fmt.Sprintf("%s run --baskets --cells %s --seed %d --draw", program(), c.Name(), c.Seed)
	}
	return r, err
}

// basketPairs are the cells that are asked for, way by way.
func (s selection) basketPairs(shop *catalog.Catalog) ([]matrix.BasketPair, error) {
	ways, scenarios := []string{"all"}, []string{"all"}
	if !slices.Equal(s.Strategies, usualStrategies) {
		ways = s.Strategies
	}
	if !slices.Equal(s.Scenarios, []string{usualScenario}) {
		scenarios = s.Scenarios
	}
	if len(s.Cells) > 0 {
		ways, scenarios = nil, nil
	}
	wanted := s.Cells
	for _, cell := range wanted {
		way, scenario, ok := strings.Cut(cell, ":")
		if !ok {
			return nil, usage("--cells %q: want WAY:SCENARIO", cell)
		}
		ways, scenarios = append(ways, way), append(scenarios, scenario)
	}
	chosenWays, err := named(ways, shop.Baskets, shop.BasketByName)
	if err != nil {
		return nil, usage("--strategies or --cells, with --baskets: %w, or all", err)
	}
	chosenScenarios, err := named(scenarios, basket.All, basket.ByName)
	if err != nil {
		return nil, usage("--scenarios or --cells, with --baskets: %w, or all", err)
	}
	var pairs []matrix.BasketPair
	for _, way := range chosenWays {
		for _, sc := range chosenScenarios {
			if len(wanted) == 0 || slices.Contains(wanted, way.Name+":"+sc.Name) {
				pairs = append(pairs, matrix.BasketPair{Strategy: way, Scenario: sc})
			}
		}
	}
	return pairs, nil
}
