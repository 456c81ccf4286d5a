package survey

import (
	"fmt"
	"slices"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// Ruling is what was seen of one property that a strategy declares.
type Ruling string

const (
	Agrees      Ruling = "agrees"
	Contradicts Ruling = "contradicts"
	NotDecided  Ruling = "not decided"
)

// Judgement is the ruling on one property, with what it rests on.
type Judgement struct {
	Property declared.Property
	Declared declared.Standing
	Ruling   Ruling
	By       words.Text // a schedule or a cell, or why nothing decides
}

// Judge rules on each property of such sales by explorations of them. Those that need no event and those of an attack's
// event count, of as many customers as the attack needs.
func Judge(of declared.Strategy, sales schedule.Sales, results []Result) []Judgement {
	results = slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Reservations != sales.Reservations })
	switch {
	case sales.Reservations:
		return judgeAll(declared.ReservationProperties(), schedule.ReservationAttacks, schedule.ReservationAttacks, *of.Reservations, results)
	case sales.Baskets:
		both := of.Properties // what it lacks with one item explains failures, too
		both.Has |= of.Baskets.Has
		both.NotApplicable |= of.Baskets.NotApplicable
		return judgeAll(declared.BasketProperties(), schedule.BasketAttacks, slices.Concat(schedule.Attacks, schedule.BasketAttacks), both, results)
	}
	all := judgeAll(append(declared.AllProperties(), declared.ReadsSource), schedule.Attacks, schedule.Attacks, of.Everywhere(), results)
	for i, j := range all {
		if j.Property == declared.StorageChecked {
			all[i] = judgeStorage(j, of, results)
		}
	}
	return all
}

// judgeAll rules on properties by the attacks that are on them. Explaining are all whose success says why a schedule
// fails.
func judgeAll(properties []declared.Property, attacks, explaining []schedule.Attack, p declared.Properties, results []Result) (all []Judgement) {
	for _, property := range properties {
		j := Judgement{Property: property, Declared: p.Standing(property), Ruling: NotDecided, By: words.Of("judge.not-attacked")}
		for _, a := range attacks {
			if a.Property == property {
				j = judge(a, explaining, j, p, results)
			}
		}
		all = append(all, j)
	}
	return all
}

func judge(a schedule.Attack, explaining []schedule.Attack, j Judgement, p declared.Properties, results []Result) Judgement {
	if j.Declared == declared.NotApplicable {
		j.By = words.Of("judge.inapplicable")
		return j
	}
	var all seen
	for _, r := range results {
		if r.Event != a.Event || r.Customers < a.Customers {
			continue
		}
		if a.Within && r.AtPoints {
			j.By = words.Of("judge.within")
			continue
		}
		for _, bad := range r.Found.Shortest {
			if !slices.Contains(a.Causes, bad.Outcome.Cause) || explainedBesides(a, explaining, p, bad.Outcome.Cause) {
				continue
			}
			j.By = words.AsItStands(fmt.Sprintf("%s: %s", bad.Outcome.Cause, bad.Schedule))
			j.Ruling = Contradicts
			if j.Declared == declared.Lacks {
				j.Ruling = Agrees
			}
			return j
		}
		if r.NotMet() && j.Declared == declared.Has {
			j.By = r.Unknown()
			continue
		}
		all.add(r)
	}
	switch {
	case all.runs == 0:
		return j
	case !all.unknown.IsZero():
		j.By = all.unknown
	case j.Declared == declared.Has:
		j.Ruling, j.By = Agrees, all.without(words.AsItStands(string(a.Causes[0])))
	case p.Has.Includes(declared.StorageChecked) && !declared.Unchecked.Includes(a.Property):
		j.By = words.Of("judge.refused")
	case !p.Has.Includes(declared.Exclusive) && a.Property != declared.Exclusive:
		j.By = words.Of("judge.open")
	default:
		j.Ruling, j.By = Contradicts, all.without(words.AsItStands(string(a.Causes[0])))
	}
	return j
}

// seen is how much was played of what could decide.
type seen struct {
	runs    int
	unknown words.Text // why something is not known
}

func (s *seen) add(r Result) {
	s.runs += r.Found.Runs
	if s.unknown.IsZero() {
		s.unknown = r.Found.Unknown()
	}
}

func (s seen) without(what words.Text) words.Text {
	return words.Of("judge.without", "n", s.runs, "what", what)
}

// explainedBesides says whether another property that the strategy lacks explains a cause, while
// this one is declared as had.
func explainedBesides(a schedule.Attack, explaining []schedule.Attack, p declared.Properties, c verdict.Cause) bool {
	if p.Standing(a.Property) != declared.Has {
		return false
	}
	return slices.ContainsFunc(explaining, func(other schedule.Attack) bool {
		return other.Property != a.Property && slices.Contains(other.Causes, c) && p.Standing(other.Property) == declared.Lacks
	})
}

// judgeStorage holds a strategy that is checked by the storage to every schedule, except those by what it
// lacks that no check can stand in for.
func judgeStorage(j Judgement, of declared.Strategy, results []Result) Judgement {
	of.Properties.Has |= declared.StorageChecked
	if j.Declared == declared.NotApplicable {
		j.By = words.Of("judge.inapplicable")
		return j
	}
	var all seen
	for _, r := range results {
		all.add(r)
		allowed := schedule.Expected(of, r.Sales, nil, r.Customers).Allowed
		for _, bad := range r.Found.Shortest {
			switch {
			case slices.Contains(allowed, bad.Outcome.Cause):
				continue
			case j.Declared == declared.Has:
				j.Ruling = Contradicts
			case bad.Outcome.Verdict == verdict.Oversold && !schedule.Shows(bad.Outcome.Cause, declared.Exclusive):
				j.Ruling = Agrees // the database took what an overtaken holder wrote
			default:
				continue
			}
			j.By = words.AsItStands(fmt.Sprintf("%s: %s", bad.Outcome.Cause, bad.Schedule))
			return j
		}
	}
	switch {
	case all.runs == 0:
	case !all.unknown.IsZero():
		j.By = all.unknown
	case j.Declared == declared.Has:
		j.Ruling, j.By = Agrees, all.without(words.Of("judge.failure"))
	default:
		j.By = words.Of("judge.not-overtaken")
	}
	return j
}

// Unruled are the surprises of a result on which no ruling rests: that it decides nothing, and those of one shop, of which
// a strategy can have more than is judged.
func (r Result) Unruled() []words.Text {
	return slices.DeleteFunc(slices.Clone(r.Surprises), func(t words.Text) bool {
		return !r.OneShop && (t.Key == notShown || t.Key == notExplained)
	})
}

// Unexplained are the bad schedules whose cause no property explains that the strategy lacks. They
// contradict what it declares as a whole. Those of one item and a strategy that has StorageChecked contradict
// that: no check of the storage makes the others right.
func Unexplained(of declared.Strategy, results []Result) (all []schedule.Record) {
	for _, r := range results {
		if of.Has.Includes(declared.StorageChecked) && !r.Baskets && !r.Reservations {
			continue
		}
		expected := schedule.Expected(of, r.Sales, nil, r.Customers)
		for _, bad := range r.Found.Shortest {
			if !slices.Contains(expected.Allowed, bad.Outcome.Cause) {
				all = append(all, bad)
			}
		}
	}
	return all
}
