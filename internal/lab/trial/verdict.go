package trial

import (
	"fmt"
	"strings"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/strategy"
)

// verdict is how a cell ended.
type verdict struct {
	kind    scenario.Kind
	problem string // of the harness
	again   bool   // another run of the cell may say more
}

// invalid is the verdict where the harness failed.
func invalid(format string, args ...any) verdict {
	return verdict{kind: scenario.Invalid, problem: strings.TrimSpace(fmt.Sprintf(format, args...))}
}

// spoiled is an invalid verdict that another run of the cell may avoid.
func spoiled(format string, args ...any) verdict {
	v := invalid(format, args...)
	v.again = true
	return v
}

// conclude gives the result its verdict.
func (r *Result) conclude(v verdict) {
	r.Verdict, r.Problem, r.Agreed = v.kind, v.problem, 0
	if r.Verdict == r.Expected {
		r.Agreed = 1
	}
}

// judge returns the verdict that follows from the database's counts.
func judge(r *Result, a *attack) verdict {
	switch {
	case r.Duplicates > 0:
		return invalid("%d requests have more than one order", r.Duplicates)
	case r.Errors > 0:
		return invalid("%d unexpected answers, such as: %s", r.Errors, a.firstFailure())
	case r.Oversold > 0:
		return verdict{kind: scenario.Oversold}
	case r.AnswersWithoutOrder > 0:
		return verdict{kind: scenario.Lied}
	case r.LostUpdates != 0:
		return verdict{kind: scenario.Unbalanced}
	case r.Remaining > 0 && a.stuck == nil && endsSoldOut(a.customers.hits):
		return verdict{kind: scenario.Left}
	case a.stuck != nil && a.deserted() != nil:
		return invalid("no shop answers any more; shops given by --shop must be restarted from outside: %v", a.deserted())
	case a.stuck != nil:
		r.Waiting = a.stuck.waiting()
		return verdict{kind: scenario.Stuck}
	case r.Remaining > 0 && r.Sold > 0 && (a.cell.Scenario.FixedLoad || a.outOfTime):
		return verdict{kind: scenario.Held} // it is degraded: demand was left
	case r.Remaining > 0:
		return invalid("the attack ended with %d of %d unsold", r.Remaining, r.InitialStock)
	case a.cell.Scenario.Attacks == strategy.Renews && a.cell.Strategy.Properties.Has.Includes(strategy.Renews) && longWorkNeverSells(a.customers.hits):
		return verdict{kind: scenario.Stuck}
	case a.missedEveryPoint():
		return spoiled("no fault reached its point")
	default:
		return verdict{kind: scenario.Held}
	}
}

// missedEveryPoint reports whether faults were injected, and none reached its point. A strategy
// without a guard does not have every point.
func (a *attack) missedEveryPoint() bool {
	guarded := a.cell.Strategy.Guard != "nothing"
	return len(a.traces) > 0 && guarded && a.progress.reached == 0 && a.customers.sentFault()
}

// endsSoldOut reports whether the last sale was followed by answers that say sold out.
func endsSoldOut(hits []*hit) bool {
	var sold, soldOut time.Time
	for _, h := range hits {
		switch at := h.Sent.Add(h.Latency); {
		case h.Outcome == load.Sold && at.After(sold):
			sold = at
		case h.Outcome == load.SoldOut && at.After(soldOut):
			soldOut = at
		}
	}
	return soldOut.After(sold)
}

// longWorkNeverSells reports whether every request with a fault lost its lock over it. A lock that
// gives up in time oversells nothing, but it has not kept its promise to renew.
func longWorkNeverSells(hits []*hit) bool {
	lost := 0
	for _, h := range hits {
		switch {
		case h.injection.HasFault() && h.Outcome == load.Sold:
			return false
		case h.injection.HasFault() && h.Outcome == load.Lost:
			lost++
		}
	}
	return lost > 0
}

// deserted returns why no shop answers any more, of those that were given by address. The lab
// cannot restart those. It is nil while one answers.
func (a *attack) deserted() error {
	if a.bench.Testbed != nil {
		return nil
	}
	last := map[int]*hit{}
	for _, h := range a.customers.hits {
		if !h.Sent.IsZero() && (last[h.shop] == nil || h.Sent.After(last[h.shop].Sent)) {
			last[h.shop] = h
		}
	}
	var why error
	for _, h := range last {
		if why = h.Err; why == nil {
			return nil
		}
	}
	return why
}

// firstFailure is an answer that should not be, and what its shop's log says of it.
func (a *attack) firstFailure() string {
	for _, h := range a.customers.hits {
		if h.Outcome != load.Failed {
			continue
		}
		answer := fmt.Sprintf("%d %s", h.Status, h.Body)
		if a.bench.Testbed == nil {
			return answer
		}
		return answer + "\nthe shop's log: " + a.bench.Testbed.Shops[h.shop].LogLine(`"request":"`+h.id+`"`)
	}
	return ""
}
