package explain

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// section is one request's way through the lock and the section, as far as it came.
type section struct {
	Request
	at    map[sale.Point]time.Time // the last time it came by, but the first for acquiring and acquired
	facts map[sale.Point]map[string]any
	fault struct {
		at    sale.Point
		what  string // such as "sleep 750ms"
		from  time.Time
		until time.Time
	}
	order *stock.Order
	reads int // how often it read: more than once where it tried again
}

// sections are the requests by the time at which they entered; those that never did come last,
// by the time at which they were sent.
func (e Evidence) sections() []*section {
	byID := make(map[string]*section, len(e.Requests))
	all := make([]*section, 0, len(e.Requests))
	for _, r := range e.Requests {
		s := &section{Request: r, at: map[sale.Point]time.Time{}, facts: map[sale.Point]map[string]any{}}
		byID[r.ID] = s
		all = append(all, s)
	}
	for _, event := range e.Events {
		if s := byID[event.Request]; s != nil {
			s.note(event)
		}
	}
	for i := range e.Orders {
		if s := byID[e.Orders[i].RequestID]; s != nil && s.order == nil {
			s.order = &e.Orders[i]
		}
	}
	for _, s := range all {
		switch {
		case s.killed():
			s.fault.until = s.diedUntil(e.Interventions)
		case s.fault.what != "" && s.fault.until.IsZero(): // it came by no point after that
			s.fault.until = first(s.Answered, e.Ended)
		}
	}
	slices.SortStableFunc(all, func(a, b *section) int {
		switch {
		case a.entered() != b.entered():
			if a.entered() {
				return -1
			}
			return 1
		case a.entered():
			return a.enter().Compare(b.enter())
		}
		return a.Sent.Compare(b.Sent)
	})
	return all
}

func (s *section) note(e labmode.Event) {
	_, been := s.at[e.Point]
	if !s.fault.from.IsZero() && s.fault.until.IsZero() && s.fault.at != "" {
		s.fault.until = e.Time
	}
	if e.Point == sale.Read {
		s.reads++
	}
	if !been || e.Point != sale.Acquiring && e.Point != sale.Acquired {
		s.at[e.Point], s.facts[e.Point] = e.Time, e.Facts
	}
	if spec, ok := e.Facts["fault"].(string); ok && s.Fault {
		_, what, _ := strings.Cut(spec, " ")
		s.fault.at, s.fault.what, s.fault.from = e.Point, what, e.Time
	}
}

// diedUntil is when the shop that died under the section was there again.
func (s *section) diedUntil(interventions []Intervention) time.Time {
	for _, d := range interventions {
		if d.Shop == s.Shop && d.What == Dead && !d.From.Before(s.fault.from.Add(-clockTolerance)) {
			return d.Until
		}
	}
	return time.Time{}
}

// Dead is the intervention of a shop that was killed and is being started again.
const Dead = "dead"

// clockTolerance is how much later than it happened an event may be noted.
const clockTolerance = 20 * time.Millisecond

// entered says whether the request came into the section. One without a guard is in
// it when it has read.
func (s *section) entered() bool { return !s.enter().IsZero() }

func (s *section) enter() time.Time {
	return first(s.at[sale.Acquired], s.at[sale.Acquiring], s.at[sale.Read])
}

// leave is when it was out again: it gave the lock back, or had written, or died.
// One that was never out has the zero time.
func (s *section) leave() time.Time {
	if s.killed() {
		return s.fault.from
	}
	return first(s.at[sale.Released], s.at[sale.Written], s.Answered)
}

// took is the earliest moment at which it is known to have the lock in Redis.
func (s *section) took() time.Time { return first(s.at[sale.Acquiring], s.enter()) }

// wrote is when its order was made. A shop that died in between did not note it, but MySQL has it.
func (s *section) wrote() time.Time {
	if s.order == nil {
		return s.at[sale.Written]
	}
	return first(s.at[sale.Written], s.order.CreatedAt)
}

func (s *section) killed() bool { return strings.HasPrefix(s.fault.what, "kill") }

// guarded says whether there was a lock to take at all.
func (s *section) guarded() bool { return !s.at[sale.Acquired].IsZero() }

// number reads a fact.
func (s *section) number(p sale.Point, name string) (int64, bool) {
	n, ok := s.facts[p][name].(json.Number)
	if !ok {
		return 0, false
	}
	v, err := n.Int64()
	return v, err == nil
}

func (s *section) name() string { return label(s.ID) + " on " + s.Shop }

func first(times ...time.Time) time.Time {
	return cmp.Or(times...)
}

// Faults are the times in which a fault was active: what requests carried, and what the
// lab did.
func (e Evidence) Faults() []Intervention {
	var all []Intervention
	for _, s := range e.sections() {
		if s.fault.what == "" || s.killed() {
			continue
		}
		all = append(all, Intervention{From: s.fault.from, Until: s.fault.until, Shop: s.Shop, What: label(s.ID) + " " + pastTense(s.fault.what)})
	}
	for _, d := range e.Interventions {
		if d.Until.IsZero() {
			d.Until = e.Ended
		}
		all = append(all, d)
	}
	return all
}

// pastTense says what a fault did: "sleep 750ms" did "asleep".
func pastTense(fault string) string {
	action, _, _ := strings.Cut(fault, " ")
	switch action {
	case "sleep":
		return "asleep"
	case "stop":
		return "stopped"
	default:
		return "killed"
	}
}
