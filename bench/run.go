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
	"stocklock/internal/testserver"
)

const (
	// lease is that of locks that are acquired and released. It is long enough that none expires.
	lease = 10 * time.Second
	// keptLease is the lease of locks that are kept. It is short, so that ten of them do not take
	// long.
	keptLease  = time.Second
	keptLeases = 10
)

// check finds errors that would otherwise show only after the measurement.
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

// measure runs the plan. Unsafe means that this repository's lock lost an update.
func (p plan) measure(ctx context.Context, stdout, stderr io.Writer) (unsafe bool, err error) {
	needMySQL := slices.ContainsFunc(p.cells, func(c measure.Cell) bool { return c.Section.Name == "mysql" })
	if i := slices.IndexFunc(p.locks, func(l lock.Lock) bool { return l.Etcd }); i >= 0 {
		if missing := testserver.HasEtcd(); missing != nil {
			fmt.Fprintf(stderr, "bench: %s is not measured: %v\n", p.locks[i].Name, missing)
			p.locks = slices.DeleteFunc(slices.Clone(p.locks), func(l lock.Lock) bool { return l.Etcd })
		}
	}
	bench, err := measure.Open(ctx, p.locks, needMySQL)
	if err != nil {
		return false, err
	}
	defer func() { err = cmp.Or(err, bench.Close()) }()
	env := environment(bench.RedisVersion(ctx), bench.EtcdVersion(ctx))
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

// locksInCells measures one lock after the other and then repeats all of them, so that a temporary
// slowdown of the machine affects all locks alike. When ctx ends, it returns the results so far.
func (p plan) locksInCells(ctx context.Context, bench *measure.Bench, stderr io.Writer) ([]measure.Results, error) {
	results := make([]measure.Results, len(p.cells))
	for repetition := range p.repeat {
		for i, cell := range p.cells {
			results[i].Cell = cell
			if ctx.Err() != nil {
				continue
			}
			if cell.Shape.Hold > 0 && repetition > 0 {
				continue // renewals follow the clock and do not vary
			}
			fmt.Fprintf(stderr, "%d/%d  %s %s\n", repetition+1, p.repeat, cell.Shape.Name, cell.Section.Name)
			for j := range p.locks {
				// The order changes, so that no lock is always first.
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
					sample = measure.Failed(err) // a peer that fails does not end the run
				}
				results[i].Add(kind.Name, sample)
			}
		}
	}
	results = slices.DeleteFunc(results, func(r measure.Results) bool { return len(r.Locks) == 0 })
	for _, r := range results {
		slices.SortFunc(r.Locks, func(a, b measure.Measured) int { return cmp.Compare(lock.Place(a.Lock), lock.Place(b.Lock)) })
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
