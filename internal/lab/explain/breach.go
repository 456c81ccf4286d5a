package explain

import (
	"cmp"
	"slices"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// breach is how a second sale came in while another one was inside.
type breach struct {
	cause   verdict.Cause
	why     []words.Text
	inTurn  *Facts       // the last of the releases that each freed the lock of the next holder
	turns   int          // how many there were
	after   []words.Text // what followed
	culprit *section     // a third request that let the second one in; nil for none
}

// texts are the whole explanation. A chain of releases is one sentence, however long it is.
func (b breach) texts() []words.Text {
	texts := slices.Clone(b.why)
	switch {
	case b.turns == 1:
		texts = append(texts, say("release-freed-in-turn", *b.inTurn))
	case b.turns > 1:
		last := *b.inTurn
		last.Count = b.turns
		texts = append(texts, say("releases-freed-in-turn", last))
	}
	return append(texts, b.after...)
}

// breach says what let the intruder in while the older holder was inside.
func (c *inquiry) breach(older, intruder *section) breach {
	both := Facts{Holder: older.named(), Other: intruder.named(), LeaseMS: words.Rounded(older.Lease)}
	switch {
	case older.summed() && intruder.summed():
		return breach{cause: verdict.WriteSkew, why: []words.Text{say("both-summed", both)}}
	case older.lockKey() != intruder.lockKey():
		both.Key, both.OtherKey = older.lockKey(), intruder.lockKey()
		return breach{cause: verdict.WrongKey, why: []words.Text{say("different-locks", both)}}
	case !c.Exclusive && !older.guarded():
		return breach{cause: verdict.NoLock, why: []words.Text{say("nothing-kept-out", both)}}
	case !c.Exclusive && older.Shop != intruder.Shop:
		return breach{cause: verdict.OneProcess, why: []words.Text{say("mutex-of-one-process", both)}}
	}
	for _, h := range c.histories {
		if b := c.breachIn(h, older, intruder); b.cause != "" {
			return b
		}
	}
	if inside := intruder.enter().Sub(older.enter()); c.Unwatched != "" && inside > older.Lease*4/5 {
		both.AfterMS, both.Server = words.Rounded(inside), c.Unwatched
		return c.leaseEnded(older, say("lease-ended-unwatched", both))
	}
	return breach{cause: verdict.Unexplained, why: []words.Text{say("no-reason-seen", both)}}
}

// question is what one server's history can be asked about two sales.
type question struct {
	history         *history
	older, intruder *section
}

// breachIn looks for the reason in what one server announced between the two entries. A release
// can free a lock that its holder had got through an earlier release, and so on. Each answer is
// kept, so that no part of such a chain is searched twice. A breach without a cause is none.
func (c *inquiry) breachIn(h *history, older, intruder *section) breach {
	q := question{h, older, intruder}
	b, known := c.known[q]
	if !known && !c.outOfTime() {
		b = c.search(h, older, intruder)
		c.known[q] = b
	}
	return b
}

func (c *inquiry) search(h *history, older, intruder *section) breach {
	taken, from, to := c.between(h, older, intruder)
	noted := func(what RedisEvent) *Change {
		if i := slices.IndexFunc(h.changes[from:to], func(ch Change) bool { return ch.What == what }); i >= 0 {
			return &h.changes[from+i]
		}
		return nil
	}
	both := Facts{Holder: older.named(), Other: intruder.named(), LeaseMS: words.Rounded(older.Lease)}
	sinceEntry := func(t time.Time) Facts {
		f := both
		f.AfterMS = words.Rounded(t.Sub(older.enter()))
		return f
	}
	if gone := noted(Gone); gone != nil {
		return breach{cause: verdict.Forgotten, why: []words.Text{say(c.whenGone("server-died", "server-emptied"), sinceEntry(gone.Time))}}
	}
	if evicted := noted(eventEvicted); evicted != nil {
		return breach{cause: verdict.Evicted, why: []words.Text{say("lock-evicted", sinceEntry(evicted.Time))}}
	}
	quorum := len(c.histories) > 1 && h.server != Primary
	if !quorum { // where those that get no majority set and delete all the time
		if b := c.foreignRelease(h, from, to, older, intruder); b.cause != "" {
			return b
		}
	}
	if expired := noted(eventExpired); expired != nil && expired.Time.Sub(taken) > older.Lease*4/5 {
		if expired.Time.Before(older.enter()) {
			both.AfterMS = words.Rounded(older.enter().Sub(taken))
			return breach{cause: verdict.LateGrant, why: []words.Text{say("granted-too-late", both)}}
		}
		return c.leaseEnded(older, say("lease-ended", sinceEntry(expired.Time)))
	}
	if anew, since := h.takenOver(from, to, taken, older, intruder); anew != nil && !quorum {
		// Set while it was there: taken over by its value, whatever Redis thinks of its expiry.
		held := anew.Time.Sub(since)
		if d := c.interventionAt(intruder.Shop, intruder.enter()); d != nil && held < older.Lease*4/5 {
			both.AfterMS, both.Intervention = words.Rounded(intruder.enter().Sub(older.enter()).Abs()), d.What
			return breach{cause: verdict.ClockSkew, why: []words.Text{say("clock-ahead", both)}}
		}
		if held > older.Lease*4/5 {
			return c.leaseEnded(older, say("deadline-passed", sinceEntry(anew.Time)))
		}
	}
	return breach{}
}

// stopped says whether the fault of another request stopped the process of a sale while that was inside.
func (c *inquiry) stopped(s *section) bool {
	return c.hit != nil && c.hit != s && c.hit.Shop == s.Shop && c.hit.fault.Action == labmode.Stop && c.hit.fault.from.Before(s.leave()) && c.hit.fault.until.After(s.enter())
}

// takenOver is the change by which the intruder replaced the lock while it was there, and since when
// the older holder had it: it may have taken it over itself. A process that only tries to take the lock
// over replaces it, too, so the last change before the entry counts.
func (h *history) takenOver(from, to int, taken time.Time, older, intruder *section) (anew *Change, since time.Time) {
	since = taken
	for i := from; i < to; i++ {
		if _, free := slices.BinarySearch(h.takes, i); free || h.changes[i].What != eventSet {
			continue
		}
		if anew != nil && h.changes[i].Time.After(intruder.took().Add(clockTolerance/4)) {
			break
		}
		if anew != nil && !anew.Time.After(older.enter()) {
			since = anew.Time
		}
		anew = &h.changes[i]
	}
	return anew, since
}

// leaseEnded says why the older holder was still inside when its lease was over.
func (c *inquiry) leaseEnded(older *section, ended words.Text) breach {
	f := Facts{Holder: older.named(), LastedMS: words.Rounded(older.fault.lasted())}
	if d := c.interventionAt(older.Shop, older.enter().Add(older.Lease*4/5)); d != nil && d.What != Dead {
		f.Intervention = d.What
		return breach{cause: verdict.Unnoticed, why: []words.Text{say("could-not-renew", f), ended}}
	}
	cause, why := c.tookLonger(older, "process-stopped", f)
	return breach{cause: cause, why: []words.Text{why, ended}}
}

// tookLonger says why a sale took longer than its lease. The phrase is for one that its own fault has stopped.
func (c *inquiry) tookLonger(s *section, stopped string, f Facts) (verdict.Cause, words.Text) {
	switch {
	case s.fault.Action == labmode.Stop:
		return verdict.LateWrite, say(stopped, f)
	case s.fault.lasted() > s.Lease:
		return verdict.Overrun, say("worked-longer", f)
	case c.stopped(s):
		f.LastedMS = words.Rounded(c.hit.fault.lasted())
		return verdict.LateWrite, say("its-process-stopped", f)
	default:
		return verdict.Overrun, say("inside-longer", f)
	}
}

// foreignRelease finds the third request whose release freed the lock of the older holder. Either
// the release came late, or the older holder had got the lock of that request in some other way.
func (c *inquiry) foreignRelease(h *history, from, to int, older, intruder *section) breach {
	for i := from; i < to; i++ {
		for n, s := range h.releasersOf(i, older, intruder) {
			if n == mostReleasers && c.late > clockTolerance {
				break
			}
			if s.late() {
				return c.blame(s, older, intruder)
			}
			// A release in time frees another's lock only when its own had gone to that other
			// already.
			if b := c.breachIn(h, s, older); b.cause != "" {
				b.inTurn = &Facts{Third: s.named(), Holder: older.named(), Other: intruder.named()}
				b.turns++
				b.culprit = cmp.Or(b.culprit, s)
				return b
			}
		}
	}
	return breach{}
}

// mostReleasers bounds whose release may have been the cause, where announcements are read late: the
// nearest.
const mostReleasers = 3

// late says whether a fault held up its release.
func (s *section) late() bool {
	return s.fault.met() && (s.fault.Point == sale.Releasing || s.fault.Point == sale.Written)
}

// releasersOf are the requests from before the older holder that were releasing when the key was
// deleted: the likeliest first.
func (h *history) releasersOf(deletion int, older, intruder *section) []*section {
	if len(h.releasing[deletion]) == 0 {
		return nil
	}
	found := slices.DeleteFunc(slices.Clone(h.releasing[deletion]), func(s *section) bool {
		return s == older || s == intruder || !s.enter().Before(older.enter())
	})
	deleted := h.changes[deletion].Time
	slices.SortStableFunc(found, func(a, b *section) int {
		if d := cmp.Compare(a.sinceRelease(deleted), b.sinceRelease(deleted)); d != 0 || a.late() == b.late() {
			return cmp.Or(d, a.enter().Compare(b.enter()))
		}
		if a.late() {
			return -1
		}
		return 1
	})
	return found
}

// blame says what a late release did.
func (c *inquiry) blame(late, older, intruder *section) breach {
	f := Facts{Third: late.named(), Holder: older.named(), Other: intruder.named(),
		LeaseMS: words.Rounded(late.Lease), AfterMS: words.Rounded(late.fault.until.Sub(late.enter()))}
	if late.fault.Point == sale.Releasing {
		return breach{cause: verdict.SplitRelease, why: []words.Text{say("deleted-late", f)}, culprit: late}
	}
	return breach{cause: verdict.ForeignDelete, why: []words.Text{say("released-late", f)}, culprit: late}
}

// whenGone is the phrase of a Redis that lost what it had: it died, or it restarted without its data.
func (e Evidence) whenGone(died, emptied string) string {
	if slices.ContainsFunc(e.Interventions, func(d Intervention) bool { return d.What == "redis-emptied" }) {
		return emptied
	}
	return died
}

// interventionAt is what the lab was doing to a shop at a time, nil for nothing.
func (e Evidence) interventionAt(shop string, at time.Time) *Intervention {
	for _, d := range e.Interventions {
		if d.Shop == shop && !at.Before(d.From) && (d.Until.IsZero() || at.Before(d.Until)) {
			return &d
		}
	}
	return nil
}
