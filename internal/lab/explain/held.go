package explain

import (
	"cmp"
	"slices"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// held explains what would have broken a weaker lock, and what prevented it.
func (c *inquiry) held() *Explanation {
	hit := c.hardestHit()
	if hit == nil {
		return nil
	}
	next := c.nextAfter(hit)
	if !hit.fault.met() {
		next = cmp.Or(c.firstThatWaitedFor(hit), next)
	}
	x := &Explanation{}
	d := c.drawing(x, first(hit.enter(), hit.Sent))
	d.follow(hit, next)
	var at time.Time
	x.Cause, x.Why, at = c.whyHeld(hit, next)
	d.moment(at, danger(x.Cause, hit, next), false)
	d.finish()
	return x
}

// hardestHit is the request that the play hit inside the section. Without one, it is the first that entered a second
// time, or else the one that most others waited for.
func (c *inquiry) hardestHit() *section {
	if c.hit != nil && c.hit.entered() {
		return c.hit
	}
	var best *section
	most := -1
	for i, s := range c.sections {
		if !s.entered() {
			break
		}
		if s.Nested && s.order != nil {
			return s
		}
		if s.order == nil || i > lookedAt {
			continue
		}
		waited := 0
		for _, other := range c.sections[i:min(i+lookedAt, len(c.sections))] {
			if other.Sent.Before(s.leave()) && other.enter().After(s.leave()) {
				waited++
			}
		}
		if waited > most {
			best, most = s, waited
		}
	}
	return best
}

// lookedAt is among how many requests the one is looked for that most others waited for.
const lookedAt = 200

// nextAfter is the request that entered next, and bought something if any did.
func (c *inquiry) nextAfter(hit *section) *section {
	after := c.sections[slices.Index(c.sections, hit)+1:]
	i := slices.IndexFunc(after, func(s *section) bool { return s.entered() && s.order != nil })
	if i < 0 {
		i = slices.IndexFunc(after, (*section).entered)
	}
	if i < 0 {
		return nil
	}
	return after[i]
}

// firstThatWaitedFor is the first request that came while another one was inside and that entered
// later.
func (c *inquiry) firstThatWaitedFor(hit *section) *section {
	for _, s := range c.sections[slices.Index(c.sections, hit)+1:] {
		if s.entered() && s.wants(hit) {
			return s
		}
	}
	return nil
}

// wants says whether a request came while another one was inside.
func (s *section) wants(hit *section) bool { return s != nil && s.Sent.Before(hit.leave()) }

// dangers say what would have happened to a weaker lock at the moment, by what prevented it.
var dangers = map[verdict.Cause]string{
	verdict.Refused:     "moment-unchecked-write",
	verdict.Outlived:    "moment-lease-over",
	verdict.LossNoticed: "moment-unaware-write",
	verdict.Expired:     "moment-no-expiry",
	verdict.NotOwner:    "moment-unchecked-release",
	verdict.Majority:    "moment-one-server",
	verdict.Reentered:   "moment-not-reentrant",
	verdict.OneOrder:    "moment-sold-again",
}

func danger(prevented verdict.Cause, hit, next *section) words.Text {
	phrase := "moment-other-sale"
	if next.wants(hit) {
		phrase = "moment-both"
	}
	return say(cmp.Or(dangers[prevented], phrase), Facts{Other: next.named()})
}

// hold is what the rules of [inquiry.whyHeld] look at: the request that was hit hardest, and the
// request that entered next, nil for none.
type hold struct {
	*inquiry
	hit, next *section
}

// rule is one reason for which a cell can hold.
type rule struct {
	applies func(h hold) bool
	cause   verdict.Cause
	phrase  string
	at      func(h hold) time.Time // when the harm was nearest
}

// rulesUnderFault are for a request that met its fault. The first that applies says why it did no
// harm.
var rulesUnderFault = []rule{
	{hold.lostAnswer, verdict.OneOrder, "one-order-without-answer", hold.ordered},
	{hold.diedDone, verdict.Durable, "done-before-its-end", hold.ordered},
	{hold.diedCounted, verdict.NoLease, "counted-and-ordered", hold.ordered},
	{hold.diedHolding, verdict.Expired, "hold-ended", hold.leaseEnd},
	{hold.diedWithoutLock, verdict.NoLease, "connection-ended", hold.faultBegan},
	{hold.diedWithoutLease, verdict.NoLease, "ended-with-it", hold.faultBegan},
	{hold.diedAndFreed, verdict.Expired, "freed-itself-for-next", hold.freed},
	{hold.diedAndNext, verdict.Expired, "lease-over-for-next", hold.leaseEnd},
	{hold.died, verdict.Expired, "nobody-came-after", hold.leaseEnd},
	{hold.fencedOff, verdict.Refused, "fence-refused", hold.left},
	{hold.conflicted, verdict.Refused, "snapshot-refused", hold.left},
	{hold.lostItsLock, verdict.LossNoticed, "learned-of-the-loss", hold.faultOverOrLeaseEnd},
	{hold.holdRefused, verdict.Refused, "hold-refused", hold.left},
	{hold.wroteNothing, verdict.Refused, "wrote-nothing", hold.left},
	{hold.counted, verdict.NoLease, "counted-and-ordered", hold.ordered},
	{hold.holds, verdict.NoLease, "hold-stood", hold.faultOver},
	{hold.readAgain, verdict.Refused, "read-again", hold.faultOver},
	{hold.unprotected, verdict.NobodyMet, "nobody-wrote-between", hold.faultOver},
	{hold.unguarded, verdict.NoLease, "database-decides", hold.faultOver},
	{hold.renewedThroughout, verdict.Outlived, "lease-renewed", hold.leaseEnd},
	{hold.aServerForgot, verdict.Majority, "majority-knew", hold.faultOver},
	{hold.releasedAnothers, verdict.NotOwner, "release-freed-nothing", hold.released},
	{hold.outlastedWithoutExpiry, verdict.Outlived, "lock-has-no-expiry", hold.leaseEnd},
	{hold.outlastedUnnoticed, verdict.Outlived, "nobody-took-over", hold.leaseEnd},
	{hold.keptOut, verdict.KeptOut, "kept-out-until-done", hold.faultOver},
	{hold.rowLocked, verdict.KeptOut, "row-kept-until-commit", hold.faultOver},
	{hold.subtracted, verdict.Subtracted, "subtracted", hold.ordered},
	{hold.always, verdict.Unexplained, "no-reason-for-hold", hold.faultOver},
}

// rulesWithoutFault are for a request without a fault.
var rulesWithoutFault = []rule{
	{hold.enteredAgain, verdict.Reentered, "entered-again", hold.read},
	{hold.unprotected, verdict.NobodyMet, "nobody-between", hold.read},
	{hold.counted, verdict.NoLease, "counted-once", hold.read},
	{hold.unguarded, verdict.NoLease, "row-decides", hold.read},
	{hold.nobodyWaited, verdict.KeptOut, "nobody-came", hold.read},
	{hold.always, verdict.KeptOut, "waited-its-turn", hold.read},
}

// whyHeld says what prevented the harm, and when the harm was nearest.
func (c *inquiry) whyHeld(hit, next *section) (verdict.Cause, []words.Text, time.Time) {
	h := hold{c, hit, next}
	rules, why := rulesWithoutFault, []words.Text(nil)
	if hit.fault.met() {
		rules, why = rulesUnderFault, []words.Text{h.whatHit()}
	}
	r := rules[slices.IndexFunc(rules, func(r rule) bool { return r.applies(h) })]
	if r.phrase == "fence-refused" {
		why = append(why, h.overtaken()...)
	}
	return r.cause, append(why, say(r.phrase, h.facts(r))), r.at(h)
}

func (h hold) facts(r rule) Facts {
	f := Facts{Holder: h.hit.named(), Other: h.next.named()}
	switch r.phrase {
	case "freed-itself-for-next":
		f.AfterMS = words.Rounded(h.freed().Sub(h.hit.enter()))
	case "lease-renewed":
		f.Count = h.renewals()
	case "waited-its-turn", "lease-over-for-next":
		f.AfterMS, f.LeaseMS = words.Rounded(h.next.enter().Sub(h.hit.enter())), words.Rounded(h.hit.Lease)
	case "hold-ended", "hold-refused", "hold-stood":
		f.LeaseMS, f.AfterMS = words.Rounded(h.hit.Lease), words.Rounded(h.hit.leave().Sub(h.hit.enter()))
	case "read-again":
		f.Initial, f.Stock = h.hit.reads[0], h.hit.reads[len(h.hit.reads)-1]
	case "subtracted":
		f.Stock = h.hit.order.StockRead
	case "wrote-nothing", "one-order-without-answer":
		f.Outcome = h.hit.Outcome
	}
	if h.hit.order != nil {
		f.Order = Number(h.hit.order.ID)
	}
	return f
}

func (h hold) whatHit() words.Text {
	f := Facts{Holder: h.hit.named(), Fault: h.hit.fault.Action, Point: h.hit.fault.Point}
	if !h.hit.killed() {
		f.LastedMS = words.Rounded(h.hit.fault.lasted())
		if d := h.interventionAt(h.hit.Shop, h.hit.fault.until.Add(-time.Millisecond)); d != nil {
			f.Intervention = d.What
		}
	}
	return say("fault-hit", f)
}

// overtaken says which request entered during the fault, and how.
func (h hold) overtaken() []words.Text {
	if h.next == nil || h.next.enter().After(h.hit.leave()) {
		return nil
	}
	phrase := "next-got-the-lock"
	switch h.breach(h.hit, h.next).cause {
	case verdict.Forgotten:
		phrase = h.whenGone("server-died-next-got-it", "server-emptied-next-got-it")
	case verdict.Evicted:
		phrase = "lock-evicted-next-got-it"
	case verdict.Overrun, verdict.LateWrite, verdict.Unnoticed:
		phrase = "lease-ended-next-got-it"
	}
	return []words.Text{say(phrase, Facts{Other: h.next.named()})}
}

func (h hold) always() bool { return true }

// lostAnswer is of a sale that did not get the answer to its COMMIT.
func (h hold) lostAnswer() bool { return h.hit.fault.Action == labmode.Lose && h.hit.order != nil }

func (h hold) died() bool { return h.hit.killed() }

func (h hold) diedWithoutLock() bool {
	return h.died() && !h.hit.guarded() && h.hit.at[sale.Acquiring].IsZero()
}

// diedDone is of a sale that had nothing left to do but to answer.
func (h hold) diedDone() bool {
	return h.died() && h.hit.order != nil && h.hit.wrote().Before(h.hit.fault.from) && (h.unguarded() || !h.hit.at[sale.Released].IsZero())
}

// diedCounted wants the order of a sale whose units Redis had counted out.
func (h hold) diedCounted() bool { return h.died() && h.counted() }

// diedHolding wants all units in orders in the end, those of the dead sale too.
func (h hold) diedHolding() bool {
	return h.died() && h.heldInMySQL() && h.hit.order == nil && h.units() == h.InitialStock
}

// diedWithoutLease is of a lock that nothing ends but its holder's end.
func (h hold) diedWithoutLease() bool {
	return h.died() && h.Recovers && h.Declared.Name != "" && h.Declared.Lease.Kept == declared.NoLease
}

func (h hold) diedAndFreed() bool { return h.died() && !h.freed().IsZero() && h.next != nil }

func (h hold) diedAndNext() bool {
	return h.died() && h.next != nil && h.next.enter().After(h.hit.enter())
}

// holdRefused is of a sale that confirmed after the end of its hold.
func (h hold) holdRefused() bool {
	return h.heldInMySQL() && h.hit.order == nil && h.hit.Outcome == "conflict" && h.hit.leave().Sub(h.hit.enter()) > h.hit.Lease
}

// wroteNothing is of a sale that its fault kept from selling at all.
func (h hold) wroteNothing() bool {
	return h.hit.order == nil && h.hit.Outcome != "sold" && (h.unguarded() || h.hit.Outcome == "error")
}

// counted is of a sale whose units Redis had counted out.
func (h hold) counted() bool { return h.countedInRedis() && h.hit.order != nil }

// holds is of a sale that held its units in MySQL, and sold them.
func (h hold) holds() bool {
	return h.heldInMySQL() && h.hit.order != nil && h.hit.wrote().Sub(h.hit.enter()) < h.hit.Lease
}

func (h hold) fencedOff() bool { return h.hit.Outcome == "fenced" }

// rowLocked is of a sale before whose end the next one had the lock, and read what it had committed all the
// same.
func (h hold) rowLocked() bool {
	if h.hit.order == nil || h.next == nil || !h.hit.guarded() {
		return false
	}
	read, known := h.next.number(sale.Read, "stock")
	return known && read <= h.hit.order.StockWritten
}

// subtracted is of a sale that was overtaken, and whose write found what the other one had left.
func (h hold) subtracted() bool {
	o := h.hit.order
	return o != nil && h.next != nil && h.next.order != nil && h.next.wrote().Before(h.hit.wrote()) && o.StockRead <= h.next.order.StockWritten
}

// conflicted is of a sale under a lock that wrote over what had changed since it had read.
func (h hold) conflicted() bool {
	return h.hit.guarded() && h.hit.order == nil && h.hit.Outcome == "conflict"
}

func (h hold) lostItsLock() bool { return h.hit.Outcome == "lost" }

func (h hold) unguarded() bool { return !h.hit.guarded() }

func (h hold) unprotected() bool { return h.unguarded() && !h.Exclusive }

func (h hold) readAgain() bool {
	reads := h.hit.reads
	return h.unguarded() && h.hit.order != nil && len(reads) > 1 && reads[0] != reads[len(reads)-1]
}

func (h hold) renewedThroughout() bool { return h.renewals() > 0 && h.keptOut() }

// keptOut says that nobody entered before the fault was over.
func (h hold) keptOut() bool { return h.next == nil || h.next.enter().After(h.hit.fault.until) }

// aServerForgot says whether one of several lost the lock: that of a single server ends the lock
// with it.
func (h hold) aServerForgot() bool {
	return h.keptOut() && slices.ContainsFunc(h.Changes, func(ch Change) bool {
		return (ch.What == Gone || ch.What == eventEvicted) && ch.Server != Primary && ch.Server != Replica
	})
}

func (h hold) releasedAnothers() bool {
	return h.next != nil && h.next.enter().Before(h.hit.leave()) && h.hit.late() && h.Declared.Standing(declared.OwnerChecked) == declared.Has
}

func (h hold) outlasted() bool { return h.hit.fault.until.Sub(h.hit.enter()) > h.hit.Lease }

func (h hold) outlastedWithoutExpiry() bool { return h.outlasted() && !h.Recovers && h.keptOut() }

// outlastedUnnoticed wants announcements, among which a renewal would have been seen.
func (h hold) outlastedUnnoticed() bool { return h.outlasted() && h.keptOut() && len(h.Changes) > 0 }

func (h hold) enteredAgain() bool { return h.hit.Nested && h.hit.guarded() }

func (h hold) nobodyWaited() bool { return !h.next.wants(h.hit) }

func (h hold) leaseEnd() time.Time { return h.hit.enter().Add(h.hit.Lease) }

func (h hold) faultBegan() time.Time { return h.hit.fault.from }

func (h hold) faultOver() time.Time { return h.hit.fault.until }

func (h hold) faultOverOrLeaseEnd() time.Time { return first(h.hit.fault.until, h.leaseEnd()) }

func (h hold) ordered() time.Time { return h.hit.wrote() }

func (h hold) left() time.Time { return h.hit.leave() }

func (h hold) released() time.Time { return first(h.hit.at[sale.Released], h.hit.fault.until) }

func (h hold) read() time.Time { return first(h.hit.at[sale.Read], h.hit.enter()) }

// freed is when Redis announced that the lock of a dead holder had expired; zero where it did not
// before the next one had it.
func (h hold) freed() time.Time {
	for _, ch := range h.Changes {
		if h.next != nil && ch.Time.After(h.next.enter().Add(clockTolerance)) {
			break
		}
		if ch.What == eventExpired && ch.Time.After(h.hit.fault.from) {
			return ch.Time
		}
	}
	return time.Time{}
}

// renewals counts how often the expiry of the lock was moved, as the busiest server announced it.
func (h hold) renewals() int {
	from, until := h.hit.enter().Add(h.hit.Lease/5), first(h.hit.fault.until, h.hit.leave())
	most := 0
	for _, of := range h.histories {
		n := 0
		for i, ch := range of.changes {
			// One that tries in vain sets the key of a minority, with an expiry.
			tried := i > 0 && of.changes[i-1].What.Writes() && near(of.changes[i-1].Time, ch.Time)
			if ch.What == eventExpire && ch.Time.After(from) && ch.Time.Before(until) && !tried {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
