package explain

import (
	"slices"
	"sort"
	"time"

	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
)

// locks adds a column for each Redis that announced something, with the times in which it had the
// lock.
func (d *drawing) locks() {
	for _, h := range d.histories {
		r := lockReader{drawing: d, column: len(d.x.Columns)}
		r.read(h.changes)
		d.x.Columns = append(d.x.Columns, Column{Kind: LockColumn, Name: say("lane-lock", Facts{Server: h.server}), Spans: r.spans})
	}
}

// lockReader follows the announcements of one server: the spans in which it had the lock, and the
// steps of its column.
type lockReader struct {
	*drawing
	column   int
	spans    []Span
	since    time.Time  // the zero time while the lock is free
	set      words.Text // the step that took it
	setDrawn bool
	renewals int
}

// maxRenewals is how many renewals of one hold are shown.
const maxRenewals = 5

func (r *lockReader) read(changes []Change) {
	for i, ch := range changes {
		switch {
		case ch.What.Frees():
			r.freed(ch.Time, ch.What)
		case ch.What == eventExpire:
			r.renewed(ch.Time)
		case ch.What.Writes() && r.since.IsZero():
			r.taken(ch.Time, changes[i+1:])
		case ch.What == eventSet:
			r.replaced(ch.Time)
		}
	}
	r.spanUntil(r.to)
}

func (r *lockReader) taken(at time.Time, next []Change) {
	r.begin(at)
	step := say("step-set", Facts{})
	if len(next) > 0 && next[0].What == eventExpire && next[0].Time.Sub(at) < clockTolerance {
		until := r.to
		if i := slices.IndexFunc(next, func(ch Change) bool { return ch.What.Frees() || ch.What == eventSet }); i >= 0 {
			until = next[i].Time
		}
		step.Key = "step-set-expiring"
		if holder := r.heldBy(at, until); holder != nil {
			step = say("step-set", Facts{LeaseMS: words.Rounded(holder.Lease)})
		}
	}
	r.takes(at, step)
}

func (r *lockReader) replaced(at time.Time) {
	r.spanUntil(at)
	r.begin(at)
	r.takes(at, say("step-set-anew", Facts{}))
}

func (r *lockReader) takes(at time.Time, step words.Text) {
	r.set, r.setDrawn = step, r.lockStep(at, step, false)
}

func (r *lockReader) begin(at time.Time) { r.since, r.renewals = at, 0 }

func (r *lockReader) renewed(at time.Time) {
	if r.since.IsZero() || at.Sub(r.since) <= clockTolerance {
		return
	}
	if r.renewals++; r.renewals <= maxRenewals {
		r.becomes(at, "step-renewed")
	}
}

func (r *lockReader) freed(at time.Time, how RedisEvent) {
	phrase := "step-deleted"
	switch how {
	case eventExpired:
		phrase = "step-expired"
	case eventEvicted:
		phrase = "step-evicted"
	case Gone:
		phrase = "step-server-died"
	}
	r.becomes(at, phrase)
	r.spanUntil(at)
	r.since = time.Time{}
}

// becomes adds a step that is shown at any time where the lock is that of a followed request. The
// step that took the lock is shown with it: without that one in the drawing, neither is.
func (r *lockReader) becomes(at time.Time, phrase string) {
	if r.since.IsZero() || r.since.Before(r.from) {
		return
	}
	holder := r.heldBy(r.since, at)
	followed := holder != nil && slices.Contains(r.holders, holder)
	if r.lockStep(at, say(phrase, Facts{}), followed) && !r.setDrawn {
		r.step(r.since, r.column, r.column, r.set)
		r.setDrawn = true
	}
}

func (r *lockReader) spanUntil(at time.Time) {
	if r.since.IsZero() || !at.After(r.from) || len(r.spans) == maxSpans {
		return
	}
	name := ""
	if s := r.heldBy(r.since, at); s != nil {
		name = Label(s.ID)
	}
	if span, ok := r.span(r.since, at, Locked, words.AsItStands(name)); ok {
		r.spans = append(r.spans, span)
	}
}

// lockStep adds a step only near what the followed requests do, or while they are inside if it is
// about their lock: other requests take and release the lock all the time.
func (r *lockReader) lockStep(at time.Time, text words.Text, theirs bool) (drawn bool) {
	for _, s := range r.holders {
		if !s.entered() {
			continue
		}
		until := first(s.leave(), r.to)
		if s.killed() {
			until = until.Add(s.Lease + clockTolerance)
		}
		if near(at, s.enter()) || near(at, s.at[sale.Released]) || near(at, s.fault.until) ||
			theirs && at.After(s.enter()) && at.Before(until) {
			return r.step(at, r.column, r.column, text)
		}
	}
	return false
}

func near(a, b time.Time) bool { return a.Sub(b).Abs() < clockTolerance/4 }

// heldBy is the request that had the lock between two times, nil where it is not known.
func (d *drawing) heldBy(from, to time.Time) *section {
	i := sort.Search(len(d.byEntry), func(i int) bool { return near(d.byEntry[i].enter(), from) || d.byEntry[i].enter().After(from) })
	if i == len(d.byEntry) || !d.byEntry[i].enter().Before(to.Add(clockTolerance/4)) {
		return nil
	}
	distance := func(i int) time.Duration { return d.byEntry[i].enter().Sub(from).Abs() }
	for i+1 < len(d.byEntry) && distance(i+1) < distance(i) { // the one before can have had it shortly
		i++
	}
	return d.byEntry[i]
}
