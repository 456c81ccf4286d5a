package trial

import (
	"cmp"
	"maps"
	"slices"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// Conclude gives the result its verdict.
func (r *Result) Conclude(j verdict.Judgement) {
	r.Verdict, r.Problem, r.Agreed = j.Kind, j.Problem, 0
	if r.Verdict == r.Expected {
		r.Agreed = 1
	}
}

// judge returns the verdict on the attack, whose counts r has. failed is why the attack or the
// repair could not be made, nil where they were.
func (a *attack) judge(r *Result, evidence explain.Evidence, failed error) verdict.Judgement {
	if failed != nil {
		return verdict.Failed("%v", failed)
	}
	facts := a.facts(r)
	j := facts.Verdict()
	switch why := evidence.Stall(); {
	case j.Kind == verdict.Stuck && (r.Unseen == Another || r.Unseen == ThirdSale):
		r.Unseen, r.Waiting = "", facts.Waiting // no other sale will ever be seen
	case r.Unseen != "" && (j.Kind == verdict.Held || j.Kind == r.Expected):
		return verdict.Failed("this was never seen: %s", r.Unseen)
	case why != "" && j.Kind != r.Expected && j.Kind != verdict.Invalid && a.canStall():
		return verdict.Failed("%s, but the machine stalled: %s", j.Kind, why)
	case j.Kind == verdict.Stuck:
		r.Waiting = facts.Waiting
	}
	return j
}

// canStall reports whether a sale that is inside past its lease can harm others.
func (a *attack) canStall() bool {
	return !a.Of.Properties.Meets(declared.PauseProof) && !a.Of.Properties.Meets(declared.StorageChecked)
}

// Facts are the numbers that the sentences about a verdict have.
func (r Result) Facts() verdict.Facts {
	return verdict.Facts{
		Stock: r.Stock(), Sold: r.Sold, Remaining: r.Remaining, Oversold: r.Oversold, LostUpdates: r.LostUpdates,
		Twice: r.Duplicates, Unordered: r.AnswersWithoutOrder, Denied: r.Denied, Left: r.Left, HalfSold: r.HalfSold, Unclaimed: r.Unclaimed,
		Unpaid: r.Unpaid, Unserved: r.Unserved,
		Errors: r.Errors, FirstError: r.FirstError, Seconds: cmp.Or(r.LoadMS/1000, r.Seconds), Waiting: r.Waiting, Outlasted: r.Outlasted, Starves: r.Starves,
	}
}

// facts are what the verdict on an attack follows from. r has its counts.
func (a *attack) facts(r *Result) verdict.Facts {
	r.FirstError, r.Outlasted = a.firstFailure(), a.outlasted()
	f := r.Facts()
	if a.stuck != nil {
		f.Stuck, f.Waiting, f.Deserted = true, a.stuck.waiting(), a.deserted()
	}
	f.DemandLeft = r.Sold > 0 && (a.Scenario.Comparable || a.demandLeft)
	return f
}

// outlasted reports whether sales whose lock was to be renewed have lost it, and others sold.
func (a *attack) outlasted() bool {
	return a.stuck == nil && a.Scenario.Attacks == declared.Renews && a.Of.Properties.Has.Includes(declared.Renews) &&
		longWorkNeverSells(a.customers.hits)
}

// longWorkNeverSells reports whether every request with a fault lost its lock over it. A lock that
// gives up in time oversells nothing, but it has not kept its promise to renew.
func longWorkNeverSells(hits []*Customer) bool {
	lost := 0
	for _, h := range hits {
		switch {
		case h.first && h.Outcome == load.Sold:
			return false
		case h.first && h.Outcome == load.Lost:
			lost++
		}
	}
	return lost > 0
}

// deserted returns why no shop answers any more, of those that were given by address. The lab
// cannot restart those. It is nil while one answers.
func (a *attack) deserted() error {
	if a.Testbed != nil {
		return nil
	}
	last := map[int]*Customer{}
	for _, h := range a.customers.hits {
		if !h.Sent.IsZero() && (last[h.shop] == nil || h.Sent.After(last[h.shop].Sent)) {
			last[h.shop] = h
		}
	}
	var why error
	for _, shop := range slices.Sorted(maps.Keys(last)) {
		if why = last[shop].Err; why == nil {
			return nil
		}
	}
	return why
}
