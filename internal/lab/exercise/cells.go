package exercise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

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
// but sales commits. Two items are sold at once at the end, by code that sells one.
func (c *Checker) runCells(ctx context.Context, a Answer, done func(string)) (v Verdict, err error) {
	e := a.Exercise
	by, err := c.shop.ByName(a.Name)
	if err != nil {
		return Verdict{}, err
	}
	servers, err := rig.New()
	if err != nil {
		return Verdict{}, err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	mysql, err := servers.MySQL(ctx, slowCommits...)
	if err != nil {
		return Verdict{}, err
	}
	store, err := stock.Open(mysql.DSN())
	if err != nil {
		return Verdict{}, err
	}
	defer store.Close()
	if err := errors.Join(servers.UseShopBinary(c.shop.Program), store.Migrate(ctx, slog.New(slog.DiscardHandler))); err != nil {
		return Verdict{}, err
	}
	var compared, faulty []matrix.Pair
	for _, name := range e.Scenarios {
		sc, err := scenario.ByName(name)
		if err != nil {
			return Verdict{}, err
		}
		pair := matrix.Pair{Strategy: by, Scenario: sc}
		if sc.Comparable {
			compared = append(compared, pair)
		} else {
			faulty = append(faulty, pair)
		}
	}
	plan := matrix.Plan{Shop: c.shop.Program, MySQL: mysql.DSN(), Seed: 1, Workers: customers, Trace: true}
	if len(compared) > 0 {
		plan.Pairs, plan.Stock, plan.Requests = compared, units, requests
		before, err := countCommits(ctx, store)
		if err != nil {
			return Verdict{}, err
		}
		v, sold, err := runPlan(ctx, plan, done)
		if err != nil || v.Cause != "" {
			return v, err
		}
		after, err := commits(ctx, store)
		if err != nil {
			return Verdict{}, err
		}
		each := float64(after-before) / float64(sold)
		if e.MaxCommits > 0 && each > e.MaxCommits {
			return Verdict{Cause: TooManyCommits, Said: fmt.Sprintf("%.2f commits for each sale: want at most %.1f", each, e.MaxCommits)}, nil
		}
		done(fmt.Sprintf("%.2f commits for each sale, at most %.1f wanted", each, e.MaxCommits))
	}
	if len(faulty) > 0 {
		plan.Pairs, plan.Stock, plan.Requests, plan.Workers = faulty, 0, 0, 0
		v, _, err := runPlan(ctx, plan, done)
		if err != nil || v.Cause != "" {
			return v, err
		}
	}
	if v, err := sellTwoItems(ctx, servers, mysql.DSN(), store, by); err != nil || v.Cause != "" {
		return v, err
	}
	done("two items are sold at once")
	return Verdict{}, nil
}

// runPlan runs cells until one does not hold, and returns how many units were sold.
func runPlan(ctx context.Context, plan matrix.Plan, done func(string)) (Verdict, int64, error) {
	status := matrix.NewStatus(io.Discard, false)
	defer status.Close()
	r, err := matrix.Run(ctx, plan, status)
	if err != nil {
		return Verdict{}, 0, err
	}
	if r.Interrupted {
		return Verdict{}, 0, context.Cause(ctx)
	}
	var sold int64
	for _, cell := range r.Cells {
		sold += cell.Sold
		v, err := judge(cell, plan.Pairs[0].Strategy)
		if err != nil || v.Cause != "" {
			return v, sold, err
		}
		done(fmt.Sprintf("%s: held, %d of %d sold", cell.Scenario, cell.Sold, cell.InitialStock))
	}
	return Verdict{}, sold, nil
}

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
		cell.Verdict, cell.Sold, cell.InitialStock, cell.Remaining, cell.AnswersWithoutOrder, v.Said)
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
