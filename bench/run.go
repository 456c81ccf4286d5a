package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/perf/benchfmt"

	"stocklock/bench/lock"
	"stocklock/bench/measure"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/testserver"
)

const (
	// lease is that of locks that are acquired and released. It is long enough that none expires.
	lease = 10 * time.Second
	// keptLease is the lease of locks that are kept. It is short, so that some of them do not take
	// long.
	keptLease  = time.Second
	keptLeases = 4
)

// check finds errors that would otherwise show only after the measurement.
func (p *plan) check() error {
	if p.Loadtest != "" {
		if _, err := exec.LookPath(p.Loadtest); err != nil {
			return fmt.Errorf("--loadtest: %w", err)
		}
	}
	return p.kept.check()
}

// kept is where results are kept and what they are compared with.
type kept struct {
	Save     string `type:"path" placeholder:"FILE" help:"Also write all measurements to this file, in the format of Go's benchmarks: benchstat compares two of them."`
	Baseline string `type:"existingfile" placeholder:"FILE" help:"Also compare this repository's lock, or every row of a scale, with what --save wrote, such as bench/baseline.txt, and say what became worse beyond noise."`

	before []measure.Table // of the baseline
}

func (k *kept) check() error {
	if k.Baseline != "" {
		results, err := measure.Read(k.Baseline)
		if err != nil {
			return fmt.Errorf("--baseline: %w", err)
		}
		k.before = measure.Tables(results)
	}
	if k.Save == "" {
		return nil
	}
	return wholefile.Check(k.Save)
}

// finish compares and saves. The code is [exitWorse] where something became worse. When ctx has ended, the file stays as it
// was: a part of a baseline would never be compared with the rest.
func (k *kept) finish(ctx context.Context, out io.Writer, results []*benchfmt.Result, tables []measure.Table) (code int, err error) {
	if len(results) == 0 {
		return exitFailed, errors.New("nothing was measured")
	}
	if k.Save != "" && ctx.Err() == nil {
		if err := wholefile.Write(k.Save, func(to io.Writer) error { return measure.Write(to, results) }); err != nil {
			return exitFailed, err
		}
	}
	if k.Baseline == "" {
		return exitMeasured, nil
	}
	worse, err := printChanges(out, k.Baseline, k.before, tables)
	switch {
	case err != nil:
		return exitFailed, err
	case worse > 0:
		return exitWorse, nil
	}
	return exitMeasured, nil
}

// run measures the plan and returns the exit code.
func (p plan) run(ctx context.Context, stdout, stderr io.Writer) (code int, err error) {
	needMySQL := slices.ContainsFunc(p.cells, func(c measure.Cell) bool { return c.Section.Name == "mysql" })
	if i := slices.IndexFunc(p.locks, func(l lock.Lock) bool { return l.Etcd }); i >= 0 {
		if missing := testserver.HasEtcd(); missing != nil {
			fmt.Fprintf(stderr, "bench: %s is not measured: %v\n", p.locks[i].Name, missing)
			p.locks = slices.DeleteFunc(slices.Clone(p.locks), func(l lock.Lock) bool { return l.Etcd })
		}
	}
	bench, err := measure.Open(ctx, p.locks, needMySQL)
	if err != nil {
		return exitFailed, err
	}
	defer func() { err = cmp.Or(err, bench.Close()) }()
	config := append(bench.Environment(ctx), measure.Configure("seconds", fmt.Sprint(p.Seconds))...)
	results, err := p.locksInCells(ctx, bench, config, stderr)
	if err == nil && p.Loadtest != "" && ctx.Err() == nil {
		var sales []*benchfmt.Result
		sales, err = p.sell(ctx, config, stderr)
		results = append(results, sales...)
	}
	if err != nil && ctx.Err() == nil {
		return exitFailed, err
	}
	tables := measure.Tables(results)
	for _, t := range tables {
		printTable(stdout, t)
		for _, r := range t.Row(measure.Ours).Results {
			if lost, _ := r.Value(measure.LostUnit); lost > 0 {
				code = exitUnsafe
			}
		}
	}
	compared, err := p.kept.finish(ctx, stdout, results, tables)
	if ctx.Err() != nil {
		fmt.Fprintln(stdout, "interrupted: measurements are missing, and --save has written nothing")
	}
	fmt.Fprintln(stdout, "medians; ±: where the median is with a confidence of 95 %, or the range of fewer than six repetitions")
	fmt.Fprintln(stdout, measure.Environment(&benchfmt.Result{Config: config}))
	return cmp.Or(code, compared), err
}

// locksInCells measures one lock after the other and then repeats all of them, so that a temporary
// slowdown of the machine affects all locks alike. When ctx ends, it returns the results so far.
func (p plan) locksInCells(ctx context.Context, bench *measure.Bench, config []benchfmt.Config, stderr io.Writer) (results []*benchfmt.Result, err error) {
	for repetition := range p.Repeat {
		for _, cell := range p.cells {
			if ctx.Err() != nil {
				return results, nil
			}
			fmt.Fprintf(stderr, "%d/%d  %s %s\n", repetition+1, p.Repeat, cell.Shape.Name, cell.Section.Name)
			var same []*benchfmt.Result
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
					if kind.Name == measure.Ours || kind.Name == measure.Limit {
						return results, err
					}
					sample = measure.Failed(err) // a peer that fails does not end the run
				}
				if sample.Example != "" {
					fmt.Fprintf(stderr, "%s: %s\n", kind.Name, sample.Example)
				}
				same = append(same, measure.NewResult(cell.Name(), kind.Name, config, sample))
			}
			measure.Relate(same, measure.Rate)
			results = append(results, same...)
		}
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
