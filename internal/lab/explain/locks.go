package explain

import (
	"slices"
	"time"

	"stocklock/internal/sale"
)

// locks adds a lane for each Redis that announced something, with the times in
// which it had the lock. It returns their places by name.
func (d *drawing) locks() map[string]int {
	places := map[string]int{}
	var servers []string
	for _, ch := range d.Changes {
		if !slices.Contains(servers, ch.Server) {
			servers = append(servers, ch.Server)
		}
	}
	slices.Sort(servers)
	for _, server := range servers {
		places[server] = len(d.lanes)
		lane := Lane{Kind: LockLane, Name: "lock in " + server}
		d.lanes = append(d.lanes, lane)
		d.lanes[places[server]].Spans = d.lockSpans(server, places[server])
	}
	return places
}

// lockSpans follows one server's announcements. It also adds their steps.
func (d *drawing) lockSpans(server string, lane int) []Span {
	var spans []Span
	var since time.Time // the zero time while the key is not there
	lastStep, renewals := time.Time{}, 0
	// What becomes of a followed request's lock is told whenever it happens.
	becomes := func(at time.Time, what string) {
		followed := since.IsZero()
		for _, s := range d.holders {
			followed = followed || s.entered() && label(s.ID) == d.heldBy(since, at)
		}
		d.lockStep(at, lane, what, followed)
	}
	upTo := func(at time.Time) {
		if !since.IsZero() {
			if span, ok := d.span(since, at, Locked, d.heldBy(since, at)); ok && at.After(d.from) && len(spans) < maxSpans {
				spans = append(spans, span)
			}
		}
		since = time.Time{}
	}
	ended := func(at time.Time, how string) {
		becomes(at, how)
		upTo(at)
	}
	var changes []Change
	for _, ch := range d.Changes {
		if ch.Server == server {
			changes = append(changes, ch)
		}
	}
	for i, ch := range changes {
		switch ch.What {
		case "set", "hset", "hincrby":
			if since.IsZero() {
				since, renewals = ch.Time, 0
				expires := i+1 < len(changes) && changes[i+1].What == "expire" && changes[i+1].Time.Sub(ch.Time) < clockTolerance
				if expires {
					d.lockStep(ch.Time, lane, "set for "+ms(d.Lease), false)
				} else {
					d.lockStep(ch.Time, lane, "set, no expiry", false)
				}
				lastStep = ch.Time
			} else if ch.What == "set" {
				d.lockStep(ch.Time, lane, "set anew", false)
				upTo(ch.Time)
				since, renewals, lastStep = ch.Time, 0, ch.Time
			}
		case "expire":
			if !since.IsZero() && ch.Time.Sub(lastStep) > clockTolerance {
				if renewals++; renewals <= 5 {
					becomes(ch.Time, "renewed")
				}
			}
		case "expired":
			ended(ch.Time, "expired")
		case "del":
			ended(ch.Time, "deleted")
		case Gone:
			ended(ch.Time, "server died")
		}
	}
	if !since.IsZero() && since.Before(d.to) {
		if span, ok := d.span(since, d.to, Locked, d.heldBy(since, d.to)); ok {
			spans = append(spans, span)
		}
	}
	return spans
}

// lockStep is told only near what the followed requests do, or while they are inside if it is
// about their lock: the lock goes from hand to hand all the time.
func (d *drawing) lockStep(at time.Time, lane int, text string, theirs bool) {
	for _, s := range d.holders {
		if !s.entered() {
			continue
		}
		until := first(s.leave(), d.to)
		if s.killed() {
			until = until.Add(d.Lease + clockTolerance)
		}
		if near(at, s.enter()) || near(at, s.at[sale.Released]) || near(at, s.fault.until) ||
			theirs && at.After(s.enter()) && at.Before(until) {
			d.step(at, lane, lane, text)
			return
		}
	}
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() < clockTolerance/4 }

// heldBy names who had a lock that Redis had between two times.
func (d *drawing) heldBy(from, to time.Time) string {
	for _, s := range d.sections {
		if s.entered() && s.enter().After(from.Add(-clockTolerance/4)) && s.enter().Before(to.Add(clockTolerance/4)) {
			return label(s.ID)
		}
	}
	return ""
}
