package step

import (
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
)

// options are the ways in which the run can go on.
func (r *run) options() []explore.Option {
	var all []explore.Option
	for i, b := range r.buyers {
		if r.arriving() {
			break
		}
		if b.atStep() || b.state == absent && b.first != nil && !r.mustArrive() {
			o := explore.Option{Choice: schedule.Choice{Customer: b.customer, Step: b.step()}, Touches: r.touches(b),
				Retry: b.state != absent && r.pointless(b), RowHeld: r.schema.IsHeld(i, r.parties())}
			if b.flying != nil { // the party is what waits, and not this one
				o.Touches, o.RowHeld = schedule.Everything(""), false
			}
			all = append(all, o)
		}
		if r.lastToBegin(b) {
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

// lastToBegin says whether those behind a customer have not begun before it does: who can be exchanged begin
// in their order. Of two with baskets, the items can be, too.
func (r *run) lastToBegin(b *buyer) bool {
	alike := (!r.plan.Baskets || len(r.buyers) == 2) && len(r.plan.Requests) == 0
	begun := b.state != absent && (b.first != nil || b.sent > 0)
	return !begun && !r.plan.Everything && alike
}

// parties are the customers as the order of their steps depends on them.
func (r *run) parties() []schedule.Party {
	all := make([]schedule.Party, len(r.buyers))
	for i, b := range r.buyers {
		all[i] = schedule.Party{Next: b.request(b.next()), AtStep: b.atStep(), Waiting: b.state == onRow, Held: b.holds()}
	}
	return all
}

func (r *run) eventMayFollow() bool {
	if r.plan.InARow && r.used > 0 && r.chosen[len(r.chosen)-1].IsStep() {
		return false
	}
	return r.used < r.plan.MaxEvents
}

// arriving says whether the last choice was an arrival: it is there for the lease that passes then.
func (r *run) arriving() bool {
	last := len(r.chosen) - 1
	return !r.plan.Everything && !r.plan.OneShop && last >= 0 && r.chosen[last].Event == schedule.Arrive
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

func (r *run) eventOptions(e schedule.Event) []explore.Option {
	if r.arriving() && !e.Passes() && e != schedule.Arrive || r.inapplicable(e) != "" {
		return nil
	}
	if !e.HitsOne() {
		if !r.canHappen(e) {
			return nil
		}
		return []explore.Option{{Choice: schedule.Choice{Event: e}, Touches: r.eventTouches(e, nil)}}
	}
	var all []explore.Option
	for _, b := range r.buyers {
		if r.canHit(e, b) {
			all = append(all, explore.Option{Choice: schedule.Choice{Event: e, Customer: b.customer}, Touches: r.eventTouches(e, b)})
		}
		if r.lastToBegin(b) {
			break
		}
	}
	return all
}

// whoWaits says what each customer in the run waits for.
func (r *run) whoWaits() string {
	var who []string
	for _, b := range r.buyers {
		if b.state == ended || b.state == absent {
			continue
		}
		what := map[state]string{moving: "works", onRow: "waits in MySQL", onRedis: "waits in Redis", onLock: "waits for the lock", cutOff: "has no answer"}[b.state]
		switch {
		case b.flying != nil:
			what += " with " + b.flying.Text
		case len(b.queue) > 0:
			what = "is held at " + b.queue[0].Text
		case b.state == moving:
			what += " and sends nothing"
		}
		who = append(who, fmt.Sprintf("%s %s", b.customer, what))
	}
	return strings.Join(who, ", ")
}

// why says why a choice cannot be.
func (r *run) why(c schedule.Choice) string {
	cannot := func(format string, args ...any) string {
		return fmt.Sprintf("%s cannot be here: ", c) + fmt.Sprintf(format, args...)
	}
	if why := r.inapplicable(c.Event); why != "" {
		return cannot("%s", why)
	}
	if c.Customer == 0 {
		return cannot("it changes nothing, or everyone has ended")
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
	case b.state == absent || b.atStep():
		return cannot("%s's next step is %s", b.customer, schedule.Choice{Customer: b.customer, Step: b.step()})
	case b.state == onRow:
		return cannot("%s waits for the row", b.customer)
	case b.state == onLock:
		return cannot("%s waits for the lock", b.customer)
	case b.flying != nil:
		return cannot("%s waits for %s", b.customer, schedule.ServerName(b.flying.Server))
	}
	return cannot("%s", r.whoWaits())
}
