package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
)

type demoCommand struct {
	Folder   string `arg:"" optional:"" default:"out" help:"The folder for report.html and result.json. It is made where it is missing. Without it out."`
	Seed     uint64 `default:"1" help:"The seed of the fault schedules."`
	programs `embed:""`
}

// Run compares five strategies while nothing goes wrong, and then runs the telling cell of each
// strategy. It keeps both in one report.
func (c *demoCommand) Run(ctx context.Context, s streams) error {
	kept, err := demoFiles(c.Folder)
	if err != nil {
		return err
	}
	type plans struct{ comparison, telling matrix.Plan }
	shop, of, err := askShop(ctx, c.shopSettings, s, func(shop *catalog.Catalog) (of plans, err error) {
		of.comparison, of.telling, err = demoPlans(c.Seed, c.programs, shop)
		return of, err
	})
	if err != nil {
		return err
	}
	defer shop.Close()
	r, err := measure(ctx, of.comparison, shop, s)
	var faults report.Report
	if !r.Interrupted {
		faults, err = measure(ctx, of.telling, shop, s)
	}
	if err != nil && len(r.Cells)+len(faults.Cells) == 0 {
		return err
	}
	if ctx.Err() != nil {
		err = nil // the report says so
	}
	written := kept.write(r, faults, s)
	if err != nil && errors.Is(written, errSurprised) {
		return err
	}
	return errors.Join(err, written)
}

// tellingOfAFew are cells of several items, and on databases of two servers: by a failover both strategies lie, and by an
// old read one oversells.
var tellingOfAFew = []string{
	"locks-unsorted:crossed", "saga:death-between-lines",
	"fenced:async-failover", "conditional:async-failover", "fenced:replica-reads-late", "conditional:replica-reads-late",
}

// demoPlans are the cells that are compared, and the telling ones.
func demoPlans(seed uint64, on programs, shop *catalog.Catalog) (comparison, telling matrix.Plan, err error) {
	plan := matrix.Plan{RedisServer: string(on.RedisServer), Seed: seed}
	comparison = plan
	comparison.Stock = matrix.FaultStock // each unit takes ten milliseconds of its lock
	if comparison, err = choose(comparison, cells.Usual, shop); err != nil {
		return comparison, telling, err
	}
	words := []string{cells.Telling}
	for _, cell := range tellingOfAFew {
		name, _, _ := strings.Cut(cell, ":")
		if _, err := shop.Any(name); err == nil { // a shop of one's own may not
			words = append(words, cell)
		}
	}
	telling, err = choose(plan, words, shop)
	telling.Pairs = slices.DeleteFunc(telling.Pairs, func(p matrix.Pair) bool {
		return p.Scenario.Comparable && slices.Contains(cells.Usual, p.Strategy.Name)
	})
	return comparison, telling, err
}

// demoOutput are the files that a demo leaves.
type demoOutput struct{ reportOutputs }

// demoFiles sees that the files can be written.
func demoFiles(folder string) (o demoOutput, err error) {
	o.Out = []string{filepath.Join(folder, "report.html"), filepath.Join(folder, "result.json")}
	return o, o.check()
}

// write prints the screen with which a demo ends, and writes the files.
func (o demoOutput) write(compared, telling report.Report, s streams) error {
	both := report.Joined(compared, telling)
	s.terminal().Demo(compared, telling)
	fmt.Fprintln(s.out, s.say("report.happened", "n", len(both.Cells), "file", o.Out[0]))
	err := o.finish(both, s, nil)
	s.terminal().Next(both, func(c trial.Result) string { return fromFile(c, o.Out[1]) }, program()+" run all")
	return err
}
