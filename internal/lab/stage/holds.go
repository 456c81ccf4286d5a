package stage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// look asks Redis for the lock and draws the conclusions from what has changed: who took it, and
// who or what ended whose hold. By is the customer whose step came before, 0 for none.
func (r *run) look(ctx context.Context, by schedule.Customer, event schedule.Event) error {
	now, err := r.lookAtLock(ctx)
	if err != nil {
		return err
	}
	before := r.lock
	r.lock = now
	r.leased = r.leased || now.Locked()
	if now.Kept != before.Kept {
		r.version++
		r.wrote[by] = r.version
	}
	last := len(r.holds) - 1
	open := last >= 0 && r.holds[last].To < 0
	if open && event.Passes() {
		r.holds[last].Fresh = false
	}
	if now.Locked() == before.Locked() && now.Lock == before.Lock {
		return nil
	}
	r.version++
	r.changed[by] = r.version
	if open {
		h := &r.holds[last]
		h.To, h.EndedBy, h.EndedEvent = len(r.entries)-1, by, event
		h.Checked = by != 0 && r.lookedBefore(by)
		if h.EndedBy == 0 && !event.Forgets() {
			r.starved(h.Customer)
			r.doubt(h.Customer)
		}
	}
	r.owner = 0
	if !now.Locked() {
		return nil
	}
	if r.of.AtPoints() {
		r.owner = r.holder()
	} else {
		r.owner = r.taker(now, before, by)
	}
	r.holds = append(r.holds, schedule.Hold{Customer: r.owner, From: len(r.entries) - 1, To: -1, Fresh: true})
	return nil
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

// taker is whose lock this is. A value of package redislock begins with the name of the process,
// which distinguishes a lock that was handed on from one that was taken.
func (r *run) taker(now, before schedule.State, by schedule.Customer) schedule.Customer {
	if known := r.ownerOf(now); known != 0 {
		return known
	}
	process, _, _ := strings.Cut(now.Lock, " ")
	if by != 0 && (!before.Locked() || r.ids[firstWord(before.Lock)] != by) {
		if process != now.Lock { // a value of one word is a deadline or made for one try
			r.ids[process] = by
		}
		return by
	}
	// Handed on to who waits: a customer whose process has not been seen in a value yet.
	for _, b := range r.buyers {
		if b.customer != by && b.sent > 0 && b.state != ended && !slices.Contains(slices.Collect(maps.Values(r.ids)), b.customer) {
			r.ids[process] = b.customer
			return b.customer
		}
	}
	return by
}

func (r *run) ownerOf(l schedule.State) schedule.Customer {
	if !l.Locked() {
		return 0
	}
	if known := r.ids[firstWord(l.Lock)]; known != 0 {
		return known
	}
	if l.Lock == r.lock.Lock {
		return r.owner
	}
	return 0
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
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

// renewals is what was seen of the renewals of one customer's lock.
type renewals struct {
	last time.Time // zero before the first
	late time.Duration
}

// noteRenewal takes in what a shop sends on its own about the lock. The machine can make it late: nine
// tenths of a lease after the one before it, the lease may have ended.
func (r *run) noteRenewal(report heldReport) {
	if !report.Own || report.Server == labmode.MySQLServer || !writesOneOf(r.schema.Touches(report.request()), heldKeys(r.items, r.of.State)) {
		return
	}
	name := r.customerOfShop(report.shop)
	if name == "" {
		return
	}
	c := schedule.Customer(name[0])
	seen, now := r.renewed[c], report.at
	// A pause of the shop makes its renewals late on purpose.
	if gap := now.Sub(seen.last); seen.last.After(r.resumed[c]) && gap > r.slot.lease*9/10 {
		seen.late = gap
	}
	seen.last = now
	r.renewed[c] = seen
	r.toldOfLoss(c)
	if n := len(r.holds); n > 0 && slices.ContainsFunc(r.holds, func(h schedule.Hold) bool {
		return h.Customer == c && h.To >= 0 && h.EndedBy == 0 && !h.EndedEvent.Forgets()
	}) {
		r.starved(c)
	}
}

// toldOfLoss spoils a run in which the machine took so long that a holder learned by a renewal that Redis has
// lost its lock.
func (r *run) toldOfLoss(c schedule.Customer) {
	lost := func(h schedule.Hold) bool {
		return h.Customer == c && h.From < r.forgotten && (h.To < 0 || h.EndedEvent.Forgets())
	}
	if r.spoiled == "" && slices.ContainsFunc(r.holds, lost) {
		r.spoiled = spoiledError(fmt.Sprintf("%s's lock was renewed after Redis had lost it, and no time was to pass", c))
	}
}

// starved spoils a run in which a lease ended because its renewal was late although those before it were
// not. A renewal that stops altogether, or that is always late, does not spoil it.
func (r *run) starved(c schedule.Customer) {
	if late := r.renewed[c].late; late > 0 && r.spoiled == "" {
		r.stage.starved.Add(1)
		r.spoiled = spoiledError(fmt.Sprintf("%s's lock was renewed %s after the renewal before, and the lease is %s", c, late.Round(time.Millisecond), r.slot.lease))
	}
}

// doubt has a run count only with a longer lease, if the lease of a lock that renews ended by itself. The
// machine may not have let the shop renew it; a lock that does not renew in time fails then, too.
func (r *run) doubt(c schedule.Customer) {
	hit := func(o schedule.Choice) bool { return !o.IsStep() && o.Event != schedule.Arrive && o.Customer == c }
	if c == 0 || r.of.Standing(declared.Renews) != declared.Has || r.buyer(c).state == ended || slices.ContainsFunc(r.chosen, hit) {
		return
	}
	if r.slot.lease < certainFrom*r.stage.options.Lease {
		r.doubted = doubtedError(fmt.Sprintf("%s's lock was not renewed within its lease of %s", c, r.slot.lease))
	}
}

// certainFrom is how many times the usual lease the lease of a run is that counts in any case.
const certainFrom = 4

func writesOneOf(touches []schedule.Touch, keys []string) bool {
	return slices.ContainsFunc(touches, func(t schedule.Touch) bool {
		key, isKey := t.Key()
		return isKey && t.Does&schedule.Writes != 0 && slices.Contains(keys, key)
	})
}
