// Package declaredtest tests strategies by what they declare.
package declaredtest

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/strategytest"
)

// Subject returns a strategy for the tests of package strategytest, with what it declares.
func Subject(s strategy.Strategy, d declared.Strategy) strategytest.Subject {
	return strategytest.Subject{
		Strategy:  s,
		Points:    d.Points,
		Oversells: !d.Meets(declared.Exclusive),
		ByClock:   !d.Meets(declared.ClockFree),
		Expires:   d.Lease.Kept == declared.LeaseInExpiry,
		Starves:   d.Starves,
		Elsewhere: d.Counts(),
		Prepare: func(ctx context.Context, store *stock.Store, itemID uint64) error {
			return store.Transact(ctx, func(tx stock.Tx) error {
				for _, statement := range d.State.Setup {
					if _, _, err := tx.Exec(statement, itemID); err != nil {
						return err
					}
				}
				return nil
			})
		},
		Lacks: func(t *testing.T, deps strategy.Deps) string {
			if len(d.NeedsCommand) == 0 || KnownCommand(t, deps.Redis, d.NeedsCommand) != "" {
				return ""
			}
			return "needs a Redis that knows " + strings.Join(d.NeedsCommand, " or ")
		},
	}
}

// KnownCommand returns the first of these commands that a Redis server knows, or nothing.
func KnownCommand(t *testing.T, client redis.UniversalClient, commands []string) string {
	t.Helper()
	known, err := declared.KnownCommand(t.Context(), client, commands)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// Consistent holds what strategies declare against itself.
func Consistent(t *testing.T, of []declared.Strategy) {
	t.Helper()
	for _, s := range of {
		for field, text := range map[string]string{"Source": s.Source, "Guard": s.Guard, "Decrement": s.Decrement, "Telling": s.Telling} {
			if text == "" || strings.ContainsAny(text, "\n|") {
				t.Errorf("strategy %s: %s is %q, want one line that fits into a table", s.Name, field, text)
			}
		}
		if s.AnswersFirst == s.Has.Includes(declared.DurableAnswers) {
			t.Errorf("strategy %s: durable-answers must be had, and only where it does not answer first", s.Name)
		}
		if stale := s.Standing(declared.FreshRead) != declared.NotApplicable; stale != (len(s.State.Copies) > 0) || stale != s.Passes(sale.Viewed) {
			t.Errorf("strategy %s: fresh-read applies, and there are copies, where it has a view", s.Name)
		}
		if s.Has&s.NotApplicable != 0 || s.NotApplicable.Includes(declared.Exclusive) {
			t.Errorf("strategy %s: a property is had and does not apply, or exclusive does not apply", s.Name)
		}
	}
}
