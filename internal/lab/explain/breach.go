package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/sale"
)

// breach is how a second holder came in.
type breach struct {
	cause    Cause
	sentence string
	culprit  *section // a third request that opened the door, if one did
}

// breach says what let the intruder in while the older holder was inside.
func (c *inquiry) breach(older, intruder *section) breach {
	if !c.Exclusive {
		if !older.guarded() {
			return breach{NoLock, fmt.Sprintf("Nothing kept %s out while %s was between its read and its write.", intruder.name(), older.name()), nil}
		}
		return breach{OneProcess, fmt.Sprintf("%s had a mutex of its own process, which %s does not know: each was alone in its process, and not in the section.",
			older.name(), intruder.name()), nil}
	}
	for _, server := range c.servers() {
		if b, ok := c.breachOf(server, older, intruder); ok {
			return b
		}
	}
	return breach{Unexplained, fmt.Sprintf("%s came in while %s was inside, and the trace does not show why.", intruder.name(), older.name()), nil}
}

// Primary is the server that has the lock where there is no quorum.
const Primary = "redis"

// servers are those that announced changes.
func (e Evidence) servers() []string {
	var names []string
	for _, ch := range e.Changes {
		if !slices.Contains(names, ch.Server) {
			names = append(names, ch.Server)
		}
	}
	slices.Sort(names)
	return names
}

// breachOf looks at what one server announced between the two entries.
func (c *inquiry) breachOf(server string, older, intruder *section) (breach, bool) {
	taken, changes := c.between(server, older, intruder)
	noted := func(what string) *Change {
		if i := slices.IndexFunc(changes, func(ch Change) bool { return ch.What == what }); i >= 0 {
			return &changes[i]
		}
		return nil
	}
	if gone := noted(Gone); gone != nil {
		return breach{Failover, fmt.Sprintf("%s had the lock when its Redis died (%s); the replica that took over had never heard of it, and gave the lock to %s while %s was inside.",
			older.name(), since(older, gone.Time), intruder.name(), older.name()), nil}, true
	}
	quorum := len(c.servers()) > 1 && server != Primary
	if !quorum { // where those that get no majority set and delete all the time
		if b, ok := c.foreignRelease(changes, older, intruder); ok {
			return b, true
		}
	}
	if expired := noted("expired"); expired != nil && expired.Time.Sub(taken) > c.Lease*4/5 {
		if expired.Time.Before(older.enter()) {
			return breach{LateGrant, fmt.Sprintf("Redis gave the lock to %s %s before %s learned of it: its lease of %s was over by then, and %s got the lock.",
				older.name(), ms(older.enter().Sub(taken)), older.Shop, ms(c.Lease), intruder.name()), nil}, true
		}
		return c.leaseEnded(older, intruder, fmt.Sprintf("lease of %s ended in Redis (%s)", ms(c.Lease), since(older, expired.Time))), true
	}
	if anew := noted("set"); anew != nil && !quorum {
		// Set while it was there: taken over by its value, whatever Redis thinks of its expiry.
		held := anew.Time.Sub(taken)
		if d := c.deedAt(intruder.Shop, intruder.enter()); d != nil && held < c.Lease*4/5 {
			return breach{ClockSkew, fmt.Sprintf("%s took the lock over from %s, whose lease of %s had begun only %s before: %s has its %s, and judges other holders' deadlines by it.",
				intruder.name(), older.name(), ms(c.Lease), ms(intruder.enter().Sub(older.enter()).Abs()), intruder.Shop, d.What), nil}, true
		}
		if held > c.Lease*4/5 {
			return c.leaseEnded(older, intruder, fmt.Sprintf("deadline of %s passed, and %s took the lock over (%s)", ms(c.Lease), intruder.name(), since(older, anew.Time))), true
		}
	}
	return breach{}, false
}

// between are the changes after the one that gave the older holder the lock, until the
// intruder was in, give or take what it takes to note one.
func (c *inquiry) between(server string, older, intruder *section) (taken time.Time, changes []Change) {
	var all []Change
	for _, ch := range c.Changes {
		if ch.Server == server && ch.Time.Before(intruder.enter().Add(clockTolerance)) {
			all = append(all, ch)
		}
	}
	at, there := -1, false
	for i, ch := range all {
		switch ch.What {
		case "set", "hset", "hincrby":
			if !there && (!ch.Time.After(older.enter()) || at < 0 || c.isLateNote(all[at:i], ch, older)) {
				at = i
			}
			there = true
		case "del", "expired", Gone:
			there = false
		}
	}
	if at < 0 {
		return older.enter(), all
	}
	return all[at].Time, all[at+1:]
}

// isLateNote says whether a change that was noted after the holder had its lock is the one that gave
// it: the lock was free before, as far as was noted, and nobody else got it just then.
func (c *inquiry) isLateNote(before []Change, ch Change, holder *section) bool {
	if ch.Time.Sub(holder.enter()) > clockTolerance/4 || before[len(before)-1].Time.After(holder.enter()) {
		return false
	}
	return !slices.ContainsFunc(c.sections, func(s *section) bool {
		return s != holder && s.took().After(ch.Time.Add(-clockTolerance/4)) && s.took().Before(ch.Time.Add(clockTolerance/2))
	})
}

// leaseEnded says why the older holder was still inside when its lease was over.
func (c *inquiry) leaseEnded(older, intruder *section, how string) breach {
	went := fmt.Sprintf("%s then got the lock while %s was still inside.", intruder.name(), older.name())
	if d := c.deedAt(older.Shop, older.enter().Add(c.Lease/2)); d != nil && d.What != Dead {
		return breach{CutOff, fmt.Sprintf("%s was %s, so that it could not renew, and did not notice: its %s. %s", older.name(), d.What, how, went), nil}
	}
	switch {
	case strings.HasPrefix(older.fault.what, "stop"):
		return breach{Paused, fmt.Sprintf("%s stood still for %s (SIGSTOP) after its last look at the lock: its %s. %s",
			older.name(), ms(older.fault.until.Sub(older.fault.from)), how, went), nil}
	case older.fault.what != "":
		return breach{Overrun, fmt.Sprintf("%s worked for %s, longer than its lease: its %s. %s",
			older.name(), ms(older.fault.until.Sub(older.fault.from)), how, went), nil}
	default:
		return breach{Overrun, fmt.Sprintf("%s was inside for longer than its lease: its %s. %s", older.name(), how, went), nil}
	}
}

// foreignRelease finds the third request whose release freed the older holder's lock: one that
// came late, or one whose own lock the older holder had got in some other way.
func (c *inquiry) foreignRelease(changes []Change, older, intruder *section) (breach, bool) {
	for _, ch := range changes {
		if ch.What != "del" {
			continue
		}
		for _, s := range c.releasersOf(ch, older, intruder) {
			if s.late() {
				return c.blame(s, older, intruder), true
			}
			// Whoever releases in time frees another's lock only when its own had gone to that other already.
			if b, ok := c.breachOf(ch.Server, s, older); ok {
				b.sentence += fmt.Sprintf(" The release of %s then freed the lock of %s in turn, and %s got in while %s was inside.",
					s.name(), older.name(), intruder.name(), older.name())
				b.culprit = cmp.Or(b.culprit, s)
				return b, true
			}
		}
	}
	return breach{}, false
}

// late says whether a fault held up its release.
func (s *section) late() bool {
	return s.fault.what != "" && (s.fault.at == sale.Releasing || s.fault.at == sale.Written)
}

// releasersOf are the requests from before the older holder that were releasing when the key was
// deleted, give or take what it takes to note that: the likeliest first.
func (c *inquiry) releasersOf(deleted Change, older, intruder *section) []*section {
	off := map[*section]time.Duration{}
	var found []*section
	for _, s := range c.sections {
		from, to := s.at[sale.Releasing], s.at[sale.Released]
		if s == older || s == intruder || from.IsZero() || !s.enter().Before(older.enter()) || deleted.Time.Before(from) {
			continue
		}
		if !to.IsZero() {
			off[s] = max(deleted.Time.Sub(to), 0)
		}
		if off[s] < clockTolerance {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b *section) int {
		if d := cmp.Compare(off[a], off[b]); d != 0 || a.late() == b.late() {
			return d
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
	held := ms(late.fault.until.Sub(late.enter()))
	went := fmt.Sprintf("; %s got in while %s was inside.", intruder.name(), older.name())
	if late.fault.at == sale.Releasing {
		return breach{SplitRelease, fmt.Sprintf("%s went on with its release %s after it got the lock, past its lease of %s, and deleted the lock that was %s's by then",
			late.name(), held, ms(c.Lease), older.name()) + went, late}
	}
	return breach{LateRelease, fmt.Sprintf("%s released %s after it got the lock, when its lease of %s was over, and freed the lock that was %s's by then",
		late.name(), held, ms(c.Lease), older.name()) + went, late}
}

// deedAt is what the lab was doing to a shop at a time.
func (e Evidence) deedAt(shop string, at time.Time) *Intervention {
	for _, d := range e.Interventions {
		if d.Shop == shop && !at.Before(d.From) && (d.Until.IsZero() || at.Before(d.Until)) {
			return &d
		}
	}
	return nil
}

func since(s *section, t time.Time) string { return "+" + ms(t.Sub(s.enter())) }
