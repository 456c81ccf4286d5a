package explain

import (
	"fmt"
	"strings"
	"time"

	"stocklock/internal/sale"
)

// stuck explains why nothing sells any more: who has the lock, with what expiry, and who waits.
func (c *inquiry) stuck() *Explanation {
	x := &Explanation{}
	holder := c.lastHolder()
	if holder == nil {
		x.Cause, x.Sentence = Unexplained, "Nobody sells, and the trace shows no holder."
		if !c.Traced {
			x.Cause = Untraced
		}
		return x
	}
	x.Cause, x.Sentence = c.whyStuck(holder)
	x.Sentence += c.lockAsItIs()
	d := c.drawing(holder.enter())
	d.follow(holder)
	if waiter := c.waiterFor(holder); waiter != nil {
		d.follow(waiter)
	}
	d.moment(c.noWayOut(holder), "from here on nobody can get the lock", true)
	d.until(holder.enter().Add(4 * c.Lease))
	d.finish(x)
	return x
}

// lastHolder is who entered last and did not get out in order, or for want of such a one who
// entered last.
func (c *inquiry) lastHolder() *section {
	var last *section
	for _, s := range c.sections {
		if !s.entered() {
			continue
		}
		if c.waitsForItself(s) {
			return s // they are all alike: the first one tells it best
		}
		if last == nil || s.fault.what != "" || last.fault.what == "" {
			last = s
		}
	}
	return last
}

// waitsForItself says whether a request has the lock and asks for it again in vain.
func (c *inquiry) waitsForItself(s *section) bool {
	return s.Nested && s.guarded() && s.at[sale.Read].IsZero() && s.order == nil
}

func (c *inquiry) whyStuck(s *section) (Cause, string) {
	switch {
	case c.waitsForItself(s):
		return SelfDeadlock, fmt.Sprintf("%s has the lock and asks for it a second time: it waits for itself until its wait of %s is over, and so does every sale after it.",
			s.name(), ms(first(s.at[sale.Releasing], s.Answered, c.Ended).Sub(s.enter())))
	case s.killed() && s.fault.at == sale.Acquiring:
		return DeadTaking, fmt.Sprintf("%s was killed right after Redis had given it the lock, before anything gave the lock an expiry.", s.name())
	case s.killed():
		return DeadHolder, fmt.Sprintf("%s was killed at the point %s, inside its section, and its lock does not expire.", s.name(), s.fault.at)
	}
	if d := c.deedAt(s.Shop, first(s.at[sale.Releasing], s.leave()).Add(-time.Millisecond)); d != nil {
		return LostRelease, fmt.Sprintf("%s was %s when it gave the lock back: its release never came to Redis, and its lock does not expire.", s.name(), d.What)
	}
	return Unexplained, fmt.Sprintf("%s was the last to have the lock.", s.name())
}

// lockAsItIs says what Redis had at the end, and how many asked in vain.
func (c *inquiry) lockAsItIs() string {
	waiting := 0
	for _, r := range c.Requests {
		if first(r.Answered, r.Sent).After(c.Ended.Add(-3 * c.Lease)) {
			waiting++
		}
	}
	var now string
	switch {
	case len(c.Locks) == 0:
		now = "Redis has no lock on the item"
	case c.Locks[0].TTL < 0:
		now = "Redis still has " + c.Locks[0].Key + ", with no expiry"
	default:
		now = fmt.Sprintf("Redis has %s for another %s", c.Locks[0].Key, ms(c.Locks[0].TTL))
	}
	who := "1 request"
	if waiting != 1 {
		who = fmt.Sprintf("%d requests", waiting)
	}
	return fmt.Sprintf(" At the end %s, and %s had asked in vain during the last three leases.", now, who)
}

// waiterFor is the first request that asked while the holder had the lock, and was told busy.
func (c *inquiry) waiterFor(holder *section) *section {
	for _, s := range c.sections {
		if s != holder && !s.entered() && strings.EqualFold(s.Outcome, "busy") && s.Answered.After(holder.enter()) {
			return s
		}
	}
	return nil
}

// noWayOut is the moment from which on nothing could move any more.
func (c *inquiry) noWayOut(s *section) time.Time {
	if c.waitsForItself(s) {
		return s.enter().Add(time.Millisecond)
	}
	if s.killed() {
		return s.fault.from
	}
	return first(s.at[sale.Released], s.leave())
}
