package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/topology"
	"stocklock/internal/strategy"
)

// topologies runs cells whose database is more than one server.
func (c *runCommand) topologies(ctx context.Context, plan matrix.Plan, shop *catalog.Catalog, s streams) error {
	cases, strategies, err := c.topologyCells(shop)
	if err != nil {
		return err
	}
	if len(plan.Given) > 0 || plan.MySQL != "" || plan.Redis != "" {
		return usage("--topology kills databases: it starts all servers itself, without --shop, --mysql and --redis")
	}
	if c.ExpectOnly {
		s.terminal().ExpectedTopologies(strategies, cases)
		return nil
	}
	plan.Runs = c.Runs
	r, failed := measureTopologies(ctx, plan, cases, strategies, shop, s)
	if failed != nil && len(r.Cells) == 0 {
		return failed
	}
	terminal := c.outputs.beside(s).terminal()
	if c.Draw {
		terminal.Drawings(r)
	}
	terminal.Report(r)
	return errors.Join(failed, c.outputs.finish(r, s))
}

// measureTopologies is [measure] for databases of more than one server.
func measureTopologies(ctx context.Context, plan matrix.Plan, cases []topology.Case, strategies []strategy.Description, shop *catalog.Catalog, s streams) (report.Report, error) {
	status := matrix.NewStatus(s.err, isTerminal(s.err))
	defer status.Close()
	plan.Shop = shop.Program
	r, err := matrix.RunTopologies(ctx, plan, cases, strategies, status)
	r.Environment.Command = commandLine(s.args)
	for i, c := range r.Cells {
		r.Cells[i].Replay = fmt.Sprintf("%s run --topology %s --strategies %s --seed %d --draw", program(), c.Topology, c.Strategy, c.Seed)
	}
	return r, err
}

// topologyCells are the cases of the topologies that are asked for, and the strategies.
func (c *runCommand) topologyCells(shop *catalog.Catalog) ([]topology.Case, []strategy.Description, error) {
	asked := []string{"all"}
	if !slices.Equal(c.Strategies, usualStrategies) {
		asked = c.Strategies
	}
	if len(c.Cells) > 0 || !slices.Equal(c.Scenarios, []string{usualScenario}) {
		return nil, nil, usage("--topology has scenarios of its own, and shares servers between strategies: choose with --strategies, without --cells and --scenarios")
	}
	strategies, err := named(asked, shop.Strategies, shop.ByName)
	if err != nil {
		return nil, nil, usage("--strategies: %w, or all", err)
	}
	topologies, err := named(c.Topology, topology.All, topology.ByName)
	if err != nil {
		return nil, nil, usage("--topology: %w, or all", err)
	}
	var cases []topology.Case
	for _, of := range topology.Cases {
		if slices.ContainsFunc(topologies, func(t topology.Topology) bool { return t.Name == of.Topology.Name }) {
			cases = append(cases, of)
		}
	}
	return cases, strategies, nil
}
