package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"stocklock/bench/lock"
	"stocklock/bench/measure"
	"stocklock/internal/lab/wholefile"
)

const (
	lease = 10 * time.Second // of locks that are taken and left: so long that none ends by itself
	// Of locks that are kept: short, so that many leases do not take long.
	keptLease  = time.Second
	keptLeases = 10
)

// check finds, before anything is measured, what would fail only afterwards.
func (p plan) check() error {
	if p.loadtest != "" {
		if _, err := exec.LookPath(p.loadtest); err != nil {
			return fmt.Errorf("--loadtest: %w", err)
		}
	}
	if p.json == "" {
		return nil
	}
	return wholefile.Check(p.json)
}

// measure does everything that was asked for. Unsafe means that an update was lost under our own lock.
func (p plan) measure(ctx context.Context, stdout, stderr io.Writer) (unsafe bool, err error) {
	needMySQL := slices.ContainsFunc(p.cells, func(c measure.Cell) bool { return c.Section.Name == "mysql" })
	bench, err := measure.Open(ctx, needMySQL)
	if err != nil {
		return false, err
	}
	defer func() { err = cmp.Or(err, bench.Close()) }()
	env := environment(bench.RedisVersion(ctx))
	results, err := p.locksInCells(ctx, bench, stderr)
	if err != nil {
		return false, err
	}
	for _, r := range results {
		printCell(stdout, r)
	}
	var shop []shopRatio
	if p.loadtest != "" && ctx.Err() == nil {
		if shop, err = p.sell(ctx, stderr); err != nil && ctx.Err() == nil {
			return false, err
		}
	}
	printShop(stdout, shop)
	targets := targetsOf(results, shop)
	printTargets(stdout, targets)
	if ctx.Err() != nil {
		fmt.Fprintln(stdout, "interrupted: measurements are missing")
	}
	fmt.Fprintln(stdout, env)
	if p.json != "" {
		if err := writeJSON(p.json, env, p, results, shop, targets); err != nil {
			return false, err
		}
	}
	for _, r := range results {
		for _, s := range r.Lock(ours).Samples {
			unsafe = unsafe || s.LostUpdates > 0
		}
	}
	return unsafe, nil
}

// locksInCells measures one lock after the other, and then all of them again: whatever slows the machine
// down for a while is shared out. When ctx ends it, the results are what there is.
func (p plan) locksInCells(ctx context.Context, bench *measure.Bench, stderr io.Writer) ([]measure.Results, error) {
	results := make([]measure.Results, len(p.cells))
	for repetition := range p.repeat {
		for i, cell := range p.cells {
			results[i].Cell = cell
			if ctx.Err() != nil {
				continue
			}
			if cell.Shape.Hold > 0 && repetition > 0 {
				continue // renewals go by the clock: they are the same every time
			}
			fmt.Fprintf(stderr, "%d/%d  %s %s\n", repetition+1, p.repeat, cell.Shape.Name, cell.Section.Name)
			for j := range p.locks {
				// Nobody always comes first.
				kind := p.locks[(j+repetition)%len(p.locks)]
				if cell.Shape.Hold > 0 && !kind.Keeps || cell.Shape.Pairs && (kind.Local || kind.Name == measure.Raw) {
					continue
				}
				sample, err := bench.Run(ctx, p.trial(kind, cell))
				if ctx.Err() != nil {
					break
				}
				if err != nil {
					if kind.Name == ours || kind.Name == limit {
						return nil, err
					}
					sample = measure.Failed(err) // a peer that fails is reported, and not the end
				}
				results[i].Add(kind.Name, sample)
			}
		}
	}
	results = slices.DeleteFunc(results, func(r measure.Results) bool { return len(r.Locks) == 0 })
	for _, r := range results {
		slices.SortFunc(r.Locks, func(a, b measure.Measured) int { return cmp.Compare(place(a.Lock), place(b.Lock)) })
	}
	return results, nil
}

func (p plan) trial(kind lock.Lock, cell measure.Cell) measure.Trial {
	t := measure.Trial{Lock: kind, Shape: cell.Shape, Section: cell.Section, Lease: lease, For: p.duration}
	if cell.Shape.Hold > 0 {
		t.Lease, t.For = keptLease, keptLeases*keptLease
	}
	return t
}

// place is where a lock stands in the list.
func place(name string) int {
	return slices.IndexFunc(lock.All, func(l lock.Lock) bool { return l.Name == name })
}
