package explain

import (
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
)

// stuck explains why nothing sells any more: which request has the lock, with what expiry, and how
// many wait.
func (c *inquiry) stuck() *Explanation {
	holder := c.lastHolder()
	if holder == nil {
		x := &Explanation{Cause: verdict.Unexplained, Why: []words.Text{say("no-holder-seen", Facts{})}}
		if !c.Traced {
			x.Cause = verdict.Untraced
		}
		return x
	}
	end := holder.enter().Add(4 * c.Lease)
	if c.Fenced {
		x := &Explanation{Cause: verdict.FencedOut, Why: []words.Text{say("fence-refuses-all", Facts{Count: c.sinceLastSale(load.Fenced)})}}
		return c.drawn(x, first(holder.at[sale.Releasing], holder.leave()), say("moment-fenced", Facts{}), end, holder)
	}
	cause, why := c.whyStuck(holder)
	x := &Explanation{Cause: cause, Why: []words.Text{why, c.lockLeft(), say("asked-in-vain", Facts{Count: c.sinceLastSale(load.Busy)})}}
	return c.drawn(x, c.noWayOut(holder), say("moment-no-way-out", Facts{}), end, holder, c.waiterFor(holder))
}

// outlasted tells of a sale that lost its lock over its work. All others may have sold.
func (c *inquiry) outlasted() *Explanation {
	x := c.held()
	if x != nil {
		x.Cause = verdict.Overrun
	}
	return x
}

// lastHolder is the request that waits for itself, or that the play hit, or else the last that entered.
func (c *inquiry) lastHolder() *section {
	var last *section
	for _, s := range c.sections {
		if !s.entered() {
			continue
		}
		if c.waitsForItself(s) {
			return s // they are all alike, and the first one shows it best
		}
		last = s
	}
	if c.hit != nil && c.hit.entered() {
		return c.hit
	}
	return last
}

// waitsForItself says whether a request has the lock and asks for it again in vain.
func (c *inquiry) waitsForItself(s *section) bool {
	return s.Nested && s.guarded() && s.at[sale.Read].IsZero() && s.order == nil
}

func (c *inquiry) whyStuck(s *section) (verdict.Cause, words.Text) {
	f := Facts{Holder: s.named()}
	if len(c.Locks) > 0 {
		f.LeaseMS = max(0, words.Rounded(c.Locks[0].TTL))
	}
	switch {
	case c.waitsForItself(s):
		f.LastedMS = words.Rounded(first(s.at[sale.Releasing], s.Answered, c.Ended).Sub(s.enter()))
		return verdict.SelfDeadlock, say("waits-for-itself", f)
	case s.killed() && len(c.Locks) > 0 && c.Locks[0].TTL >= 0:
		f.Point = s.fault.Point
		return verdict.Prolonged, say("killed-inside", f)
	case s.killed() && s.fault.Point == sale.Acquiring:
		return verdict.DiedTaking, say("killed-taking", f)
	case s.killed():
		f.Point = s.fault.Point
		return verdict.NoExpiry, say("killed-inside", f)
	}
	if d := c.interventionAt(s.Shop, first(s.at[sale.Releasing], s.leave()).Add(-time.Millisecond)); d != nil {
		f.Intervention = d.What
		return verdict.LostRelease, say("release-lost", f)
	}
	return verdict.Unexplained, say("last-holder", f)
}

func (c *inquiry) lockLeft() words.Text {
	switch {
	case len(c.Locks) == 0:
		return say("no-lock-left", Facts{})
	case c.Locks[0].TTL < 0:
		return say("lock-without-expiry", Facts{Key: c.Locks[0].Key})
	default:
		return say("lock-with-expiry", Facts{Key: c.Locks[0].Key, LeaseMS: words.Rounded(c.Locks[0].TTL)})
	}
}

// sinceLastSale counts the requests with an outcome that were sent after the last sale.
func (c *inquiry) sinceLastSale(outcome load.Outcome) (n int) {
	var sold time.Time
	for _, s := range c.sections {
		if s.order != nil { // a repeat of a purchase is answered as sold, and sells nothing
			sold = later(sold, s.Answered)
		}
	}
	for _, s := range c.sections {
		if s.Outcome == string(outcome) && s.Sent.After(sold) {
			n++
		}
	}
	return n
}

// waiterFor is the first request that asked while the holder had the lock and that was rejected as
// busy.
func (c *inquiry) waiterFor(holder *section) *section {
	for _, s := range c.sections {
		if s != holder && !s.entered() && s.Outcome == string(load.Busy) && s.Answered.After(holder.enter()) {
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
