package schedule

import (
	"context"
	"strings"
)

// look asks Redis for the lock and draws the conclusions from what has changed: who took it, and
// who or what ended whose hold. By is the customer whose step came before, 0 for none.
func (r *run) look(ctx context.Context, by Customer, event Event) error {
	now, err := r.lookAtLock(ctx)
	if err != nil {
		return err
	}
	before := r.lock
	r.lock = now
	r.leased = r.leased || now.present()
	if now.kept != before.kept {
		r.version++
		r.wrote[by] = r.version
	}
	last := len(r.tenures) - 1
	open := last >= 0 && r.tenures[last].to < 0
	if open && event != "" && event.info().passes {
		r.tenures[last].fresh = false
	}
	if open && now.present() {
		r.tenures[last].noExpiry = now.ttl == -1
	}
	if now.present() == before.present() && now.value == before.value {
		return nil
	}
	r.version++
	r.changed[by] = r.version
	if open {
		t := &r.tenures[last]
		t.to, t.endedBy, t.endedEvent = len(r.entries)-1, by, event
		t.checked = by != 0 && r.lookedBefore(by)
	}
	r.owner = 0
	if !now.present() {
		return nil
	}
	if r.of.AtPoints() {
		r.owner = r.holder()
	} else {
		r.owner = r.taker(now, before, by)
	}
	r.tenures = append(r.tenures, tenure{customer: r.owner, from: len(r.entries) - 1, to: -1, noExpiry: now.ttl == -1, fresh: true})
	return nil
}

// holder is who has acquired last, by the word of its shop, and 0 until that is known: see
// [run.acquired]. A sale acquires once: who has held the lock already does not hold it again.
func (r *run) holder() Customer {
	if r.has != 0 && r.holdOf(r.has) >= 0 {
		return 0
	}
	return r.has
}

// acquired notes that a customer's lock, whose requests cannot be seen, says that it is held.
func (r *run) acquired(c Customer) {
	r.has = c
	if last := len(r.tenures) - 1; last >= 0 && r.tenures[last].to < 0 && r.tenures[last].customer == 0 {
		r.tenures[last].customer, r.owner = c, c
	}
}

// taker is whose lock this is. A value of package redislock begins with the name of the process,
// which tells a lock that was handed on from one that was taken.
func (r *run) taker(now, before lockLook, by Customer) Customer {
	if known := r.ownerOf(now); known != 0 {
		return known
	}
	process, _, _ := strings.Cut(now.value, " ")
	if by != 0 && (!before.present() || r.ids[firstWord(before.value)] != by) {
		if process != now.value { // a value of one word is a deadline or made for one try
			r.ids[process] = by
		}
		return by
	}
	// Handed on to who waits: a customer whose process has not been seen in a value yet.
	for _, p := range r.people {
		if p.customer != by && p.sent > 0 && p.state != ended && !r.named(p.customer) {
			r.ids[process] = p.customer
			return p.customer
		}
	}
	return by
}

func (r *run) named(c Customer) bool {
	for _, known := range r.ids {
		if known == c {
			return true
		}
	}
	return false
}

func (r *run) ownerOf(l lockLook) Customer {
	if !l.present() {
		return 0
	}
	if known := r.ids[firstWord(l.value)]; known != 0 {
		return known
	}
	if l.value == r.lock.value {
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
func (r *run) lookedBefore(c Customer) bool {
	n := 0
	for i := len(r.entries) - 1; i >= 0; i-- {
		e := r.entries[i]
		if e.customer != c || e.Request == nil {
			continue
		}
		if n++; n == 2 {
			return e.Server != "mysql" && e.Request.access() == reads
		}
	}
	return false
}
