package step

import (
	"context"
	"maps"
	"slices"
	"strings"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
)

// noLock is what a look at a lock that is free finds. A look fills in the lock and what is kept in Redis.
var noLock = schedule.State{TTLMS: -2}

// look asks Redis for the lock and draws the conclusions from what has changed: who took it, and
// who or what ended whose hold. By is the customer whose step came before, 0 for none.
func (r *run) look(ctx context.Context, by schedule.Customer, event schedule.Event) error {
	before := r.lock
	now, changed, err := r.lookAtLock(ctx, by)
	if err != nil {
		return err
	}
	r.lock = now
	r.leased = r.leased || now.Locked()
	r.keepsFor(now.Ends)
	if now.Kept != before.Kept {
		r.change(r.wrote, by)
	}
	last := len(r.holds) - 1
	open := last >= 0 && r.holds[last].To < 0
	if open && event.Passes() {
		r.holds[last].Fresh = false
	}
	if !changed {
		return nil
	}
	r.change(r.changed, by)
	if open {
		h := &r.holds[last]
		h.To, h.EndedBy, h.EndedEvent = len(r.entries)-1, by, event
		h.Checked = by != 0 && r.lookedBefore(by)
		if h.EndedBy == 0 && !event.Forgets() {
			r.starve(h.Customer)
			r.doubtEnd(h.Customer)
		}
	}
	if r.owner = 0; !now.Locked() {
		return nil
	}
	if r.unseen {
		r.owner = r.holder()
	} else {
		r.owner = r.taker(now, before, by)
	}
	r.holds = append(r.holds, schedule.Hold{Customer: r.owner, From: len(r.entries) - 1, To: -1, Fresh: true})
	return nil
}

// change notes that a customer has changed something, 0 for an event.
func (r *run) change(what map[schedule.Customer]int, by schedule.Customer) {
	r.version++
	what[by] = r.version
}

// lookedBefore says whether the last request of a customer was preceded by one that read the lock's
// owner.
func (r *run) lookedBefore(c schedule.Customer) bool {
	n := 0
	for _, e := range slices.Backward(r.entries) {
		if e.Choice.Customer != c || !e.Choice.IsStep() {
			continue
		}
		if n++; n == 2 {
			return e.Server != labmode.MySQLServer && e.Request().IsLook(r.schema)
		}
	}
	return false
}

// taker is whose lock this is. A value of package redislock begins with the name of the process,
// which distinguishes a lock that was handed on from one that was taken.
func (r *run) taker(now, before schedule.State, by schedule.Customer) schedule.Customer {
	if known := r.ownerOf(now, before); known != 0 {
		return known
	}
	process := firstWord(now.Lock)
	if by != 0 && (!before.Locked() || r.ids[firstWord(before.Lock)] != by) {
		if process != now.Lock { // a value of one word is a deadline or made for one try
			r.ids[process] = by
		}
		return by
	}
	// Handed on to who waits: a customer whose process has not been seen in a value yet.
	for _, b := range r.buyers {
		if b.customer != by && b.last != nil && b.state != ended && !slices.Contains(slices.Collect(maps.Values(r.ids)), b.customer) {
			r.ids[process] = b.customer
			return b.customer
		}
	}
	return by
}

// ownerOf is whose lock this is, by what was seen before, 0 where that is not known.
func (r *run) ownerOf(now, before schedule.State) schedule.Customer {
	switch {
	case !now.Locked():
		return 0
	case r.ids[firstWord(now.Lock)] != 0:
		return r.ids[firstWord(now.Lock)]
	case now.Lock == before.Lock:
		return r.owner
	}
	return 0
}

// holder is who has acquired last, by the word of its shop, and 0 until that is known: see
// [run.acquired]. A sale acquires once: who has held the lock already does not hold it again.
func (r *run) holder() schedule.Customer {
	if slices.ContainsFunc(r.holds, func(h schedule.Hold) bool { return h.Customer == r.has }) {
		return 0
	}
	return r.has
}

// acquired notes that a customer's lock, whose requests cannot be seen, says that it is held.
func (r *run) acquired(c schedule.Customer) {
	r.has = c
	if last := len(r.holds) - 1; last >= 0 && r.holds[last].To < 0 && r.holds[last].Customer == 0 {
		r.holds[last].Customer, r.owner = c, c
	}
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}
