package schedule

import (
	"slices"

	"stocklock/internal/shop/labmode"
)

// options are the ways in which the run can go on.
func (r *run) options() []Option {
	var all []Option
	absentOnes := 0
	arriving := r.arriving()
	for _, p := range r.people {
		if arriving {
			break
		}
		switch p.state {
		case absent:
			// Customers are alike: the second one never comes before the first.
			if absentOnes++; absentOnes == 1 || r.plan.Everything {
				first := r.stage.firstStep(r.plan.Strategy)
				all = append(all, Option{Choice: Choice{Customer: p.customer, Step: first.step}, Request: first.Request,
					RowHeld: r.rowHolder(p, first.rowLock()) != nil})
			}
		case atStep:
			request := Request{Server: p.held.Server, Text: p.held.Text, Tx: p.held.Tx}
			all = append(all, Option{Choice: Choice{Customer: p.customer, Step: p.step}, Request: request,
				Retry: r.pointless(p), RowHeld: r.rowHolder(p, request.rowLock()) != nil})
		}
	}
	if r.eventMayFollow() {
		for _, e := range r.plan.Events {
			all = append(all, r.eventOptions(e.info())...)
		}
	}
	if r.offersArrival() {
		all = append(all, r.eventOptions(Arrive.info())...)
	}
	return all
}

func (r *run) eventMayFollow() bool {
	if r.plan.InARow && r.used > 0 && r.chosen[len(r.chosen)-1].IsStep() {
		return false
	}
	return r.used < r.plan.MaxEvents
}

// rowHolder is a customer other than p for whom a statement with this lock waits, nil for none.
func (r *run) rowHolder(p *person, wanted rowLock) *person {
	for _, other := range r.people {
		if other != p && wanted.waitsFor(other.row) {
			return other
		}
	}
	return nil
}

// arriving says whether the last choice was an arrival: it is there for the lease that passes then.
func (r *run) arriving() bool {
	return !r.plan.Everything && len(r.chosen) > 0 && r.chosen[len(r.chosen)-1].Event == Arrive
}

func (r *run) offersArrival() bool {
	passes := slices.ContainsFunc(r.plan.Events, func(e Event) bool { return e.info().passes })
	return r.plan.LocalClock && passes && r.used < r.plan.MaxEvents && !slices.Contains(r.plan.Events, Arrive)
}

func (r *run) eventOptions(e eventInfo) []Option {
	if r.arriving() && !e.passes && e.Event != Arrive || Inapplicable(r.of, e.Event) != "" {
		return nil
	}
	if !e.hitsOne {
		if !r.plan.Everything && !r.matters(e) {
			return nil
		}
		return []Option{{Choice: Choice{Event: e.Event}}}
	}
	var all []Option
	for _, p := range r.people {
		if r.canHit(e, p) {
			all = append(all, Option{Choice: Choice{Event: e.Event, Customer: p.customer}})
		}
		if p.state == absent && !r.plan.Everything {
			break // customers are alike
		}
	}
	return all
}

// matters says whether an event could change anything now.
func (r *run) matters(e eventInfo) bool {
	switch e.Event {
	case Wait:
		return r.lock.present() || r.plan.LocalClock && slices.ContainsFunc(r.people, func(p *person) bool { return p.state != absent })
	case Forget:
		return r.lock.present() || r.lock.kept != ""
	}
	return len(r.chosen) > 0
}

func (r *run) canHit(e eventInfo, p *person) bool {
	switch {
	case e.Event == Arrive:
		return p.state == absent
	case e.Event == Lose && p.state == absent:
		return !r.of.AtPoints() // what is lost is the answer to the first step
	case e.Event == Lose && r.of.AtPoints() && p.state == atStep && p.held.Server != labmode.MySQLServer:
		return false // the step is no single request
	case p.state == absent || p.state == ended:
		return false
	}
	if r.plan.Everything {
		return true
	}
	switch e.Event {
	case Lose:
		return p.state == atStep
	case Pause:
		return (r.lock.present() || r.of.State.Remaining != "") && p.sent > 0
	case Cut:
		// A customer that is held after its last look at the lock is late with or without Redis, as
		// after pause.
		request := Request{Server: p.held.Server, Text: p.held.Text, Tx: p.held.Tx}
		looks := p.held.Server != labmode.MySQLServer || request.access() == reads
		return r.lock.present() && p.sent > 0 && p.state == atStep && looks && p.row == noRow
	}
	return p.sent > 0
}
