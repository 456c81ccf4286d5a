package exercise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/testserver"
)

// How many customers buy at once in a cell, and how many units there are under contention. Sales
// can share a commit only where several customers wait.
const (
	customers = 48
	units     = 400
	requests  = units * 9 / 8 // few are for nothing: a batch that is sold out commits, too
)

// slowCommits has each commit wait ten milliseconds, as on a disk that is slow or far away: sales
// wait for each other on every machine. The first two options are MariaDB's, the third is MySQL's.
var slowCommits = append(slices.Clone(testserver.WithBinlog),
	"--loose-binlog-commit-wait-usec=10000", "--loose-binlog-commit-wait-count=1000", "--loose-binlog-group-commit-sync-delay=10000")

// runCells runs the scenarios of the exercise: those that compare first, because only there nothing
// but sales commits. Two items are sold at once at the end, by code that sells one. The first step
// that fails decides.
func (c *Checker) runCells(ctx context.Context, a Answer, done func(string)) (v Verdict, err error) {
	r, err := c.openCells(ctx, a, done)
	if err != nil {
		return Verdict{}, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, step := range []func(context.Context) (Verdict, error){r.compare, r.faults, r.twoItems} {
		if v, err := step(ctx); err != nil || v.Cause != "" {
			return v, err
		}
	}
	return Verdict{}, nil
}

// cells runs the cells of one answer on servers of their own.
type cells struct {
	exercise Exercise
	by       strategy.Description
	servers  *rig.Rig
	store    *stock.Store
	plan     matrix.Plan // what all cells have in common
	done     func(string)
}

// openCells starts a MySQL for the cells, and makes the schema.
func (c *Checker) openCells(ctx context.Context, a Answer, done func(string)) (_ *cells, err error) {
	by, err := c.shop.ByName(a.Name)
	if err != nil {
		return nil, err
	}
	servers, err := rig.New(c.shop.Program)
	if err != nil {
		return nil, err
	}
	r := &cells{exercise: a.Exercise, by: by, servers: servers, done: done}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	mysql, err := servers.MySQL(ctx, slowCommits...)
	if err != nil {
		return nil, err
	}
	r.plan = matrix.Plan{Shop: c.shop.Program, MySQL: mysql.DSN(), Seed: 1, Trace: true}
	r.store, err = audit.Open(ctx, mysql.DSN())
	return r, err
}

func (r *cells) close() error {
	if r.store != nil {
		r.store.Close()
	}
	return r.servers.Close()
}

// pairs are the scenarios of the exercise that compare, or those that do not.
func (r *cells) pairs(compare bool) (pairs []matrix.Pair, err error) {
	for _, name := range r.exercise.Scenarios {
		sc, err := scenario.ByName(name)
		if err != nil {
			return nil, err
		}
		if sc.Comparable == compare {
			pairs = append(pairs, matrix.Pair{Strategy: r.by, Scenario: sc})
		}
	}
	return pairs, nil
}

// compare runs the scenarios in which nothing but sales commits, and holds the number of commits to
// its bound.
func (r *cells) compare(ctx context.Context) (Verdict, error) {
	plan := r.plan
	plan.Workers, plan.Stock, plan.Requests = customers, units, requests
	var err error
	if plan.Pairs, err = r.pairs(true); err != nil || len(plan.Pairs) == 0 {
		return Verdict{}, err
	}
	before, err := countCommits(ctx, r.store)
	if err != nil {
		return Verdict{}, err
	}
	v, sold, err := r.run(ctx, plan)
	if err != nil || v.Cause != "" {
		return v, err
	}
	after, err := commits(ctx, r.store)
	if err != nil {
		return Verdict{}, err
	}
	each, most := float64(after-before)/float64(sold), r.exercise.MaxCommits
	if most > 0 && each > most {
		return Verdict{Cause: TooManyCommits, Said: fmt.Sprintf("%.2f commits for each sale: want at most %.1f", each, most)}, nil
	}
	r.done(fmt.Sprintf("%.2f commits for each sale, at most %.1f wanted", each, most))
	return Verdict{}, nil
}

// faults runs the other scenarios.
func (r *cells) faults(ctx context.Context) (v Verdict, err error) {
	plan := r.plan
	if plan.Pairs, err = r.pairs(false); err != nil || len(plan.Pairs) == 0 {
		return Verdict{}, err
	}
	v, _, err = r.run(ctx, plan)
	return v, err
}

// run runs cells until one does not hold, and returns how many units were sold.
func (r *cells) run(ctx context.Context, plan matrix.Plan) (Verdict, int64, error) {
	status := matrix.NewStatus(io.Discard, false)
	defer status.Close()
	results, err := matrix.Run(ctx, plan, status)
	if err != nil {
		return Verdict{}, 0, err
	}
	if results.Interrupted {
		return Verdict{}, 0, context.Cause(ctx)
	}
	var sold int64
	for _, cell := range results.Cells {
		sold += cell.Sold
		v, err := judge(cell, r.by)
		if err != nil || v.Cause != "" {
			return v, sold, err
		}
		r.done(fmt.Sprintf("%s: held, %d of %d sold", cell.Scenario, cell.Sold, cell.Stock()))
	}
	return Verdict{}, sold, nil
}

// judge is what a cell says of the answer.
func judge(cell trial.Result, by strategy.Description) (Verdict, error) {
	v := Verdict{Cell: by.Name + " under " + cell.Scenario}
	switch cell.Verdict {
	case verdict.Held:
		return Verdict{}, nil
	case verdict.Invalid:
		if cell.Errors == 0 && cell.Remaining > 0 && cell.SoldOut > 0 { // and a later sale found some of them
			v.Cause = Cause(verdict.Left)
			break
		}
		if cell.Errors == 0 {
			return Verdict{}, fmt.Errorf("%s: %s", v.Cell, cell.Problem)
		}
		v.Cause = Crashed
	case verdict.Skipped:
		return Verdict{}, fmt.Errorf("%s: skipped: %s", v.Cell, cell.Problem)
	default:
		v.Cause = Cause(cell.Verdict)
	}
	if v.Said = sentences(cell.Explanation); cell.Problem != "" {
		v.Said = cell.Problem
	}
	v.Said = fmt.Sprintf("%s: %d sold of %d, %d left, %d answers without an order. %s",
		cell.Verdict, cell.Sold, cell.Stock(), cell.Remaining, cell.AnswersWithoutOrder, v.Said)
	return v, nil
}

// countCommits has InnoDB count the commits of writing transactions, and returns their number so
// far.
func countCommits(ctx context.Context, store *stock.Store) (int64, error) {
	if _, err := store.Pool().ExecContext(ctx, "SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'"); err != nil {
		return 0, fmt.Errorf("have MySQL count commits: %w", err)
	}
	return commits(ctx, store)
}

func commits(ctx context.Context, store *stock.Store) (n int64, err error) {
	err = store.Pool().QueryRowContext(ctx, "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rw_commits'").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("ask MySQL for its count of commits: %w", err)
	}
	return n, nil
}
