package stage

import (
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
)

// options are the ways in which the run can go on.
func (r *run) options() []Option {
	var all []Option
	for _, b := range r.buyers {
		if r.arriving() {
			break
		}
		if b.state == atStep || b.state == absent && !r.mustArrive() {
			all = append(all, Option{Choice: schedule.Choice{Customer: b.customer, Step: b.step}, Touches: r.touches(b),
				Retry: r.pointless(b), RowHeld: r.schema.IsHeld(int(b.customer-'A'), r.parties())})
		}
		if b.state == absent && !r.plan.Everything && r.alike() {
			break // the second one never comes before the first
		}
	}
	if r.eventMayFollow() {
		for _, e := range r.plan.Events {
			all = append(all, r.eventOptions(e)...)
		}
	}
	if r.offersArrival() {
		all = append(all, r.eventOptions(schedule.Arrive)...)
	}
	return all
}

// alike says whether the customers can be exchanged. Of two with baskets, the items can be, too.
func (r *run) alike() bool { return !r.plan.Baskets || len(r.buyers) == 2 }

func (r *run) eventMayFollow() bool {
	if r.plan.InARow && r.used > 0 && r.chosen[len(r.chosen)-1].IsStep() {
		return false
	}
	return r.used < r.plan.MaxEvents
}

// arriving says whether the last choice was an arrival: it is there for the lease that passes then.
func (r *run) arriving() bool {
	return !r.plan.Everything && !r.plan.OneShop && arriving(r.chosen)
}

// mustArrive says that a customer who comes may have no step: it can join what others have under way in the
// same process.
func (r *run) mustArrive() bool {
	return r.plan.OneShop && !r.plan.Everything && slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state != absent && b.state != ended })
}

// offersArrival says whether it matters when a customer comes, apart from its first step: to a clock of its
// process, or to those who are in the same process.
func (r *run) offersArrival() bool {
	if r.plan.OneShop && !slices.Contains(r.plan.Events, schedule.Arrive) {
		return len(r.chosen) > 0
	}
	passes := slices.ContainsFunc(r.plan.Events, schedule.Event.Passes)
	return r.plan.LocalClock && passes && r.used < r.plan.MaxEvents && !slices.Contains(r.plan.Events, schedule.Arrive)
}

func (r *run) eventOptions(e schedule.Event) []Option {
	if r.arriving() && !e.Passes() && e != schedule.Arrive || Inapplicable(r.of, e) != "" {
		return nil
	}
	if !e.HitsOne() {
		if !r.plan.Everything && !r.matters(e) {
			return nil
		}
		return []Option{{Choice: schedule.Choice{Event: e}, Touches: r.eventTouches(e, nil)}}
	}
	var all []Option
	for _, b := range r.buyers {
		if r.canHit(e, b) {
			all = append(all, Option{Choice: schedule.Choice{Event: e, Customer: b.customer}, Touches: r.eventTouches(e, b)})
		}
		if b.state == absent && !r.plan.Everything && r.alike() {
			break
		}
	}
	return all
}

// matters says whether an event could change anything now.
func (r *run) matters(e schedule.Event) bool {
	switch e {
	case schedule.Wait:
		return r.lock.Locked() || (r.plan.LocalClock || r.timed) && slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state != absent })
	case schedule.Lag:
		return true
	case schedule.Forget:
		return r.lock.Locked() || r.lock.Kept != ""
	}
	return len(r.chosen) > 0
}

func (r *run) canHit(e schedule.Event, b *buyer) bool {
	switch {
	case e == schedule.Arrive:
		return b.state == absent
	case e == schedule.Lose && b.state == absent:
		return !r.of.AtPoints() // what is lost is the answer to the first step
	case e == schedule.Lose && r.of.AtPoints() && b.state == atStep && b.held.Server != labmode.MySQLServer:
		return false // the step is no single request
	case b.state == absent || b.state == ended:
		return false
	}
	if r.plan.Everything {
		return true
	}
	switch e {
	case schedule.Lose:
		return b.state == atStep
	case schedule.Pause:
		return (r.lock.Locked() || r.timed || r.of.State.Scattered()) && b.sent > 0
	case schedule.Cut:
		// A customer that is held after its last look at the lock is late with or without Redis, as
		// after pause.
		looks := b.held.Server != labmode.MySQLServer || r.request(b).IsLook(r.schema)
		return r.lock.Locked() && b.sent > 0 && b.state == atStep && looks && len(b.tx) == 0
	}
	return b.sent > 0
}

// whoWaits says what each customer in the shops waits for.
func (r *run) whoWaits() string {
	var who []string
	for _, b := range r.buyers {
		if b.state == ended || b.state == absent {
			continue
		}
		what := map[state]string{moving: "works after", atStep: "is held at", onRow: "waits for a row with", onLock: "waits for the lock after", cutOff: "has no answer to"}[b.state]
		who = append(who, fmt.Sprintf("%s %s %s", b.customer, what, b.step))
	}
	return strings.Join(who, ", ")
}

// why says why a choice cannot be.
func (r *run) why(c schedule.Choice) string {
	cannot := func(format string, args ...any) string {
		return fmt.Sprintf("%s cannot be here: ", c) + fmt.Sprintf(format, args...)
	}
	if why := Inapplicable(r.of, c.Event); why != "" {
		return cannot("%s", why)
	}
	if c.Customer == 0 {
		return cannot("everyone has ended")
	}
	if int(c.Customer-'A') >= len(r.buyers) {
		return fmt.Sprintf("%s: there is no customer %s: this run has %s to %s", c, c.Customer, r.buyers[0].customer, r.buyers[len(r.buyers)-1].customer)
	}
	b := r.buyer(c.Customer)
	switch {
	case b.state == ended:
		return cannot("%s has ended: it was answered with %s", b.customer, b.answer)
	case !c.IsStep() && c.Event == schedule.Arrive:
		return cannot("%s has come already", b.customer)
	case !c.IsStep() && b.state == absent:
		return cannot("%s has not come yet", b.customer)
	case b.state == absent || b.state == atStep:
		return cannot("%s's next step is %s", b.customer, schedule.Choice{Customer: b.customer, Step: b.step})
	case b.state == onRow:
		return cannot("%s waits for the row", b.customer)
	case b.state == onLock:
		return cannot("%s waits for the lock", b.customer)
	}
	return cannot("%s waits for %s", b.customer, schedule.ServerName(b.held.Server))
}
