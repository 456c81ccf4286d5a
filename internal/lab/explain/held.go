package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/sale"
)

// held explains what would have broken a weaker lock, and what prevented it.
func (c *inquiry) held() *Explanation {
	hit := c.hardestHit()
	if hit == nil {
		return nil
	}
	next := c.nextAfter(hit)
	if hit.fault.what == "" {
		next = cmp.Or(c.whoWaitedFor(hit), next)
	}
	x := &Explanation{}
	d := c.drawing(first(hit.enter(), hit.Sent))
	d.follow(hit)
	if next != nil {
		d.follow(next)
	}
	var at time.Time
	x.Cause, x.Sentence, at = c.whyHeld(hit, next)
	d.moment(at, danger(x.Cause, hit, next), false)
	d.finish(x)
	return x
}

// hardestHit is the request that its fault hit inside the section; where no request carried
// a fault, the first one that entered a second time, or else the one most others waited for.
func (c *inquiry) hardestHit() *section {
	var best *section
	most := -1
	for i, s := range c.sections {
		if !s.entered() {
			break
		}
		if s.fault.what != "" {
			return s
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

// lookedAt is among how many the one is looked for that most others waited for.
const lookedAt = 200

// nextAfter is who entered next, and bought something if anybody did.
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

// whoWaitedFor is the first of those who came while another one was inside, and entered later.
func (c *inquiry) whoWaitedFor(hit *section) *section {
	for _, s := range c.sections[slices.Index(c.sections, hit)+1:] {
		if s.entered() && s.wants(hit) {
			return s
		}
	}
	return nil
}

// wants says whether a request came while another one was inside.
func (s *section) wants(hit *section) bool { return s != nil && s.Sent.Before(hit.leave()) }

// danger says what a weaker lock would have come to at the moment.
func danger(prevented Cause, hit, next *section) string {
	other := "another"
	if next != nil {
		other = next.name()
	}
	switch prevented {
	case Refused:
		return "unchecked, this write would have gone over the order of " + other
	case Outlived:
		return "a lease that nobody renews would be over here, with the holder inside"
	case Told:
		return "a holder that is not told of its loss would write here"
	case Expired:
		return "a lock without an expiry would be held for ever"
	case NotOwner:
		return "a release that checks no owner would free the lock of " + other + " here"
	case Majority:
		return "a lock on that one server would be lost"
	case Reentered:
		return "a lock that is not reentrant would wait for itself here"
	}
	if !next.wants(hit) {
		return "without protection another sale would have read the same stock here"
	}
	return "without protection both would have read the same stock here"
}

// whyHeld says what prevented the harm, and when the harm was nearest.
func (c *inquiry) whyHeld(hit, next *section) (Cause, string, time.Time) {
	leaseEnd := hit.enter().Add(c.Lease)
	if hit.fault.what == "" {
		return c.whyHeldInPeace(hit, next)
	}
	struck := fmt.Sprintf("%s was %s at the point %s", hit.name(), pastTense(hit.fault.what), hit.fault.at)
	if !hit.killed() {
		struck += " for " + ms(hit.fault.until.Sub(hit.fault.from))
	}
	if d := c.deedAt(hit.Shop, hit.fault.until.Add(-time.Millisecond)); d != nil && !hit.killed() {
		struck += ", " + d.What
	}
	switch {
	case hit.killed() && !hit.guarded() && hit.at[sale.Acquiring].IsZero():
		return NoLease, struck + ". Its connection to MySQL ended with it, and with that everything it had locked there.", hit.fault.from
	case hit.killed():
		freed := c.freedAfter(hit)
		if freed == nil || next == nil {
			return Expired, struck + ". Its lock freed itself when its lease was over.", leaseEnd
		}
		return Expired, fmt.Sprintf("%s. Its lock freed itself %s after it was taken, and %s went on.", struck, ms(freed.Time.Sub(hit.enter())), next.name()), freed.Time
	case hit.Outcome == "fenced":
		return Refused, struck + c.overtaken(hit, next) + " When it wrote, the database refused it: its fencing token was older than the fence on the row.", hit.leave()
	case hit.Outcome == "lost":
		return Told, struck + ". Its lock told it in time that the lease could not be kept, and it wrote nothing.", first(hit.fault.until, leaseEnd)
	case !hit.guarded() && hit.reads > 1:
		return Refused, struck + ". Its write was refused because the row had changed since it had read it; it read again and wrote on what it found.", hit.fault.until
	case !hit.guarded() && !c.Exclusive:
		return NobodyMet, struck + ". Nothing protects it, but nobody wrote between its read and its write.", hit.fault.until
	case !hit.guarded():
		return NoLease, struck + ". It holds no lease that could end: the database decides at the write, or keeps the row locked until the commit.", hit.fault.until
	}
	if renewals := c.renewals(hit); renewals > 0 && (next == nil || next.enter().After(hit.fault.until)) {
		return Outlived, fmt.Sprintf("%s. Its lease was renewed %d times meanwhile, and nobody else got in.", struck, renewals), leaseEnd
	}
	if c.died() {
		return Majority, struck + ", and one of the servers died. Most of the others still had its lock, and nobody else got a majority.", hit.fault.until
	}
	if next != nil && next.enter().Before(hit.leave()) && (hit.fault.at == sale.Written || hit.fault.at == sale.Releasing) {
		return NotOwner, fmt.Sprintf("%s. Its lease was over and %s had the lock; its release found that the lock was not its own, and freed nothing.", struck, next.name()), first(hit.at[sale.Released], hit.fault.until)
	}
	outlasted := hit.fault.until.Sub(hit.enter()) > c.Lease
	switch {
	case outlasted && !c.Recovers:
		return Outlived, struck + ". Its lock has no expiry that could end meanwhile, and nobody else got in.", leaseEnd
	case outlasted && len(c.Changes) > 0: // so that a renewal would have been seen
		return Outlived, struck + ". Its lease was over meanwhile, but nobody else got in before it was done.", leaseEnd
	}
	return KeptOut, struck + ". The lock kept everybody else out until it was done.", hit.fault.until
}

func (c *inquiry) whyHeldInPeace(hit, next *section) (Cause, string, time.Time) {
	at := first(hit.at[sale.Read], hit.enter())
	switch {
	case hit.Nested && hit.guarded():
		return Reentered, fmt.Sprintf("%s asked a second time for the lock that it had, and was let in as its holder.", hit.name()), at
	case !hit.guarded() && !c.Exclusive:
		return NobodyMet, fmt.Sprintf("Nothing protects %s, but no other sale was between its read and its write at the same time.", hit.name()), at
	case !hit.guarded():
		return NoLease, fmt.Sprintf("%s and the others go by the row itself: the database lets one write at a time, and refuses or delays who has seen an older stock.", hit.name()), at
	case !next.wants(hit):
		return KeptOut, fmt.Sprintf("Nobody else came while %s was in its section.", hit.name()), at
	default:
		return KeptOut, fmt.Sprintf("%s wanted to read while %s was between its read and its write, and got the lock only when it was free (+%s).",
			next.name(), hit.name(), ms(next.enter().Sub(hit.enter()))), at
	}
}

// overtaken says who came in meanwhile.
func (c *inquiry) overtaken(hit, next *section) string {
	if next == nil || next.enter().After(hit.leave()) {
		return "."
	}
	how := ""
	switch c.breach(hit, next).cause {
	case Failover:
		how = " its Redis died, the replica that took over had never heard of its lock,"
	case Overrun, Paused, CutOff:
		how = " its lease ended,"
	}
	return fmt.Sprintf(",%s and %s got the lock.", how, next.name())
}

// freedAfter is when Redis said that the lock of a dead holder was gone.
func (c *inquiry) freedAfter(hit *section) *Change {
	for _, ch := range c.Changes {
		if ch.What == "expired" && ch.Time.After(hit.enter()) {
			return &ch
		}
	}
	return nil
}

// renewals counts how often the hold's expiry was moved, as the busiest server saw it.
func (c *inquiry) renewals(hit *section) int {
	byServer := map[string]int{}
	most := 0
	for _, ch := range c.Changes {
		if ch.What == "expire" && ch.Time.After(hit.enter().Add(c.Lease/5)) && ch.Time.Before(first(hit.fault.until, hit.leave())) {
			byServer[ch.Server]++
			most = max(most, byServer[ch.Server])
		}
	}
	return most
}

// died says whether one of several servers did.
func (c *inquiry) died() bool {
	return slices.ContainsFunc(c.Changes, func(ch Change) bool { return ch.What == Gone && strings.Contains(ch.Server, " of ") })
}
