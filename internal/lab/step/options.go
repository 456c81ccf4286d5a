package step

import (
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/words"
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
	begun := b.state != absent && (b.first != nil || b.last != nil)
	return !begun && !r.plan.Everything && alike
}

// parties are the customers as the order of their steps depends on them.
func (r *run) parties() []schedule.Party {
	all := make([]schedule.Party, len(r.buyers))
	for i, b := range r.buyers {
		all[i] = schedule.Party{Next: b.request(b.next()), AtStep: b.atStep(), Waiting: b.state == onRow, Ended: b.state == ended, Held: b.holds()}
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
	if r.arriving() && !e.Passes() && e != schedule.Arrive || !r.inapplicable(e).IsZero() {
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
			if by := r.mayWaitFor(b); b.state == onRow && by != 0 {
				what += ", for what " + by.String() + " holds"
			}
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
func (r *run) why(c schedule.Choice) words.Text {
	because := func(why words.Text) words.Text { return words.Of("cannot", "choice", c.String(), "why", why) }
	if why := r.inapplicable(c.Event); !why.IsZero() {
		return because(why)
	}
	if c.Customer == 0 {
		return because(words.Of("cannot.nothing"))
	}
	if int(c.Customer-'A') >= len(r.buyers) {
		return words.Of("cannot.nobody", "choice", c.String(), "who", c.Customer.String(), "first", r.buyers[0].customer.String(), "last", r.buyers[len(r.buyers)-1].customer.String())
	}
	b := r.buyer(c.Customer)
	cannot := func(key string, facts ...any) words.Text {
		return because(words.Of("cannot."+key, append(facts, "who", b.customer.String())...))
	}
	switch {
	case b.state == ended:
		return cannot("ended", "answer", b.answer)
	case !c.IsStep() && c.Event == schedule.Arrive:
		return cannot("come")
	case !c.IsStep() && b.state == absent:
		return cannot("absent")
	case b.state == absent || b.atStep():
		return cannot("next", "step", schedule.Choice{Customer: b.customer, Step: b.step()}.String())
	case b.state == onRow:
		return cannot("row")
	case b.state == onLock:
		return cannot("lock")
	case b.flying != nil:
		return cannot("server", "server", schedule.ServerName(b.flying.Server))
	}
	return cannot("silent")
}
