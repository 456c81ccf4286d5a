package trial

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

func TestJudge(t *testing.T) {
	overrun, err := scenario.ByName("overrun")
	if err != nil {
		t.Fatal(err)
	}
	with := func(sc scenario.Scenario, hits ...*hit) *attack {
		a := &attack{cell: Cell{Scenario: sc}, customers: &customers{hits: hits}}
		return a
	}
	stuckWith := func(hits ...*hit) *attack {
		a := with(scenario.Scenario{}, hits...)
		a.stuck = &standstill{}
		return a
	}
	lost := &hit{first: true, Answer: load.Answer{Outcome: load.Lost}}
	longSold := &hit{first: true, Answer: load.Answer{Outcome: load.Sold}}
	sold := &hit{Answer: load.Answer{Outcome: load.Sold}}
	soldOut := &hit{Answer: load.Answer{Outcome: load.SoldOut, Latency: time.Second}}
	later := &hit{Answer: load.Answer{Outcome: load.Sold, Latency: 2 * time.Second}}
	renewing := func(a *attack) *attack {
		a.cell.Strategy.Properties.Has = declared.Renews
		return a
	}
	for _, tt := range []struct {
		what string
		r    Result
		a    *attack
		want verdict.Kind
	}{
		{"all sold, no more", Result{}, &attack{customers: &customers{}}, verdict.Held},
		{"more orders than stock", Result{Oversold: 1}, &attack{customers: &customers{}}, verdict.Oversold},
		{"oversold first, stuck later", Result{Oversold: 1, Remaining: 3}, stuckWith(), verdict.Oversold},
		{"nothing moves", Result{Remaining: 3}, stuckWith(), verdict.Stuck},
		{"nothing moves, and one shop answers", Result{Remaining: 3}, stuckWith(
			&hit{Answer: load.Answer{Sent: time.Now(), Err: errors.New("refused")}}, &hit{shop: 1, Answer: load.Answer{Sent: time.Now()}}), verdict.Stuck},
		{"no shop answers", Result{Remaining: 3}, stuckWith(
			&hit{Answer: load.Answer{Sent: time.Now()}}, &hit{Answer: load.Answer{Sent: time.Now().Add(time.Second), Err: errors.New("refused")}}), verdict.Invalid},
		{"the attack ended too early", Result{Remaining: 3}, &attack{customers: &customers{}}, verdict.Invalid},
		{"the load ended with units left", Result{Remaining: 3, Sold: 9}, with(scenario.Scenario{FixedLoad: true}, sold), verdict.Held},
		{"the load ended, and nothing was sold", Result{Remaining: 3}, with(scenario.Scenario{FixedLoad: true}), verdict.Invalid},
		{"time was up while it sold", Result{Remaining: 3, Sold: 9}, &attack{customers: &customers{}, outOfTime: true}, verdict.Held},
		{"an answer without an order", Result{AnswersWithoutOrder: 1}, &attack{customers: &customers{}}, verdict.Lied},
		{"an answer without an order, and oversold", Result{AnswersWithoutOrder: 1, Oversold: 1}, &attack{customers: &customers{}}, verdict.Oversold},
		{"an answer without an order, and units left", Result{AnswersWithoutOrder: 1, Remaining: 3}, with(scenario.Scenario{}, sold, soldOut), verdict.Lied},
		{"units that are in no order and not left", Result{LostUpdates: -2}, &attack{customers: &customers{}}, verdict.Unbalanced},
		{"units that are in an order and left", Result{LostUpdates: 1, Remaining: 3, Sold: 9}, with(scenario.Scenario{FixedLoad: true}, sold), verdict.Unbalanced},
		{"units that vanished, and sold out with units left", Result{LostUpdates: -2, Remaining: 3, Left: 3}, with(scenario.Scenario{}, sold, soldOut), verdict.Unbalanced},
		{"lost updates that oversold", Result{LostUpdates: 2, Oversold: 2}, &attack{customers: &customers{}}, verdict.Oversold},
		{"an answer without an order, whose unit vanished", Result{LostUpdates: -1, AnswersWithoutOrder: 1}, &attack{customers: &customers{}}, verdict.Lied},
		{"sold out with units left", Result{Remaining: 3, Left: 3}, with(scenario.Scenario{}, sold, soldOut), verdict.Left},
		{"sold out while units were left, and all sold in the end", Result{Left: 3}, &attack{customers: &customers{}}, verdict.Left},
		{"units left, and the last one was sold", Result{Remaining: 3}, with(scenario.Scenario{}, soldOut, later), verdict.Invalid},
		{"two orders for one purchase", Result{Duplicates: 1}, &attack{customers: &customers{}}, verdict.Twice},
		{"two orders for one purchase, and oversold", Result{Duplicates: 1, Oversold: 1}, &attack{customers: &customers{}}, verdict.Oversold},
		{"two orders for one purchase, and none for another", Result{Duplicates: 1, AnswersWithoutOrder: 1}, &attack{customers: &customers{}}, verdict.Twice},
		{"an order whose customer was answered busy", Result{Denied: 1}, &attack{customers: &customers{}}, verdict.Denied},
		{"an order whose customer was answered busy, and an answer without one", Result{Denied: 1, AnswersWithoutOrder: 1}, &attack{customers: &customers{}}, verdict.Lied},
		{"an order whose customer was answered busy, and units left", Result{Denied: 1, Left: 1, LostUpdates: 1}, &attack{customers: &customers{}}, verdict.Denied},
		{"an answer that should not be", Result{Errors: 1, Left: 3}, &attack{customers: &customers{}}, verdict.Invalid},
		{"an answer that should not be, and oversold", Result{Errors: 1, Oversold: 5}, &attack{customers: &customers{}}, verdict.Oversold},
		{"an answer that should not be, and units that vanished", Result{Errors: 1, LostUpdates: -1}, &attack{customers: &customers{}}, verdict.Unbalanced},
		{"all long work lost its lock", Result{}, renewing(with(overrun, lost, lost, sold)), verdict.Stuck},
		{"one long work sold", Result{}, renewing(with(overrun, lost, longSold)), verdict.Held},
		{"all long work lost a lock that does not renew", Result{}, with(overrun, lost, lost, sold), verdict.Held},
		{"long work lost its lock to another fault", Result{}, with(scenario.Scenario{}, lost), verdict.Held},
	} {
		if v := tt.a.facts(&tt.r).Verdict(); v.Kind != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, v.Kind, tt.want)
		}
	}
}

func TestFollowReadsATraceThatIsBeingWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines := make(chan string, 2)
	go traceFile{path: file}.follow(ctx, func(line []byte) { lines <- string(line) })
	f.WriteString("one\nt")
	if got := <-lines; got != "one\n" {
		t.Errorf("the first line is %q", got)
	}
	f.WriteString("wo\n")
	if got := <-lines; got != "two\n" {
		t.Errorf("the second line, which was written in two parts, is %q", got)
	}
}
