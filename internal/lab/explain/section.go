package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// section is the passage of one request through the lock and the section, as far as it came.
type section struct {
	Request
	at    map[sale.Point]time.Time // the last time it passed the point; the first time for acquiring and acquired
	facts map[sale.Point]map[string]any
	fault sectionFault
	order *stock.Order
	reads []int64   // the stocks that it read: more than one where it tried again
	in    time.Time // when it entered: first read, without a guard
}

// sectionFault is the fault that a request met, with when it lasted. The zero value is none.
type sectionFault struct {
	labmode.Fault
	from, until time.Time
}

func (f sectionFault) met() bool { return f.Action != "" }

func (f sectionFault) lasted() time.Duration { return f.until.Sub(f.from) }

// sections are the requests by the time at which they entered. Those that never entered come last,
// by the time at which they were sent.
func (e Evidence) sections() []*section {
	byID := make(map[string]*section, len(e.Requests))
	all := make([]*section, 0, len(e.Requests))
	for _, r := range e.Requests {
		s := &section{Request: r, at: map[sale.Point]time.Time{}, facts: map[sale.Point]map[string]any{}}
		s.Lease = cmp.Or(r.Lease, e.Lease)
		byID[r.ID] = s
		all = append(all, s)
	}
	for _, event := range e.Events {
		if s := byID[event.Request]; s != nil {
			s.note(event)
		}
	}
	for _, s := range all {
		s.in = first(s.at[sale.Acquired], s.at[sale.Acquiring], s.in)
	}
	for i := range e.Orders {
		if s := byID[e.Orders[i].RequestID]; s != nil && s.order == nil {
			s.order = &e.Orders[i]
		}
	}
	for _, s := range all {
		switch {
		case s.killed():
			if died := e.diedAfter(s.Shop, s.fault.from.Add(-clockTolerance)); died != nil {
				s.fault.until = died.Until
			}
		case s.fault.met() && s.fault.until.IsZero(): // it passed no point after that
			s.fault.until = first(s.LetGo, s.Answered, e.Ended)
			if s.fault.until.Before(s.fault.from) { // it is of a strategy that answers first
				s.fault.until = e.Ended
			}
		}
		if s.Paused && s.fault.Action == labmode.Hold {
			s.fault.Action = labmode.Stop
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
	if s.fault.met() && s.fault.until.IsZero() {
		s.fault.until = e.Time
	}
	if e.Point == sale.Read {
		s.in = first(s.in, e.Time)
		if n, ok := NumberOf(e.Facts, "stock"); ok {
			s.reads = append(s.reads, n)
		}
	}
	if !been || e.Point != sale.Acquiring && e.Point != sale.Acquired {
		s.at[e.Point], s.facts[e.Point] = e.Time, e.Facts
	}
	spec, _ := e.Facts["fault"].(string)
	if fault, err := labmode.ParseFault(spec); err == nil && s.Fault {
		s.fault = sectionFault{Fault: fault, from: e.Time}
	}
}

// clockTolerance is how long after it happened an event may be noted. A busy machine may read the
// announcements of Redis later: after busyTolerance at most. That is tried where nothing else explains
// what happened.
const (
	clockTolerance = 20 * time.Millisecond
	busyTolerance  = 5 * clockTolerance
)

// entered reports whether the request came into the section. A request without a guard is in the
// section when it has read.
func (s *section) entered() bool { return !s.enter().IsZero() }

func (s *section) enter() time.Time { return s.in }

// leave is when it was out again: it had released the lock, or had written, or had died.
// It is the zero time for a request that was never out.
func (s *section) leave() time.Time {
	if s.killed() {
		return s.fault.from
	}
	return first(s.at[sale.Released], s.at[sale.Written], s.at[sale.Stored], s.Answered)
}

// took is the earliest moment at which it is known to have the lock in Redis.
func (s *section) took() time.Time { return first(s.at[sale.Acquiring], s.enter()) }

// wrote is when its order was made. If the shop died before it recorded that, it is the time in
// MySQL.
func (s *section) wrote() time.Time {
	if s.order == nil {
		return s.at[sale.Written]
	}
	return first(s.at[sale.Written], s.order.CreatedAt)
}

func (s *section) killed() bool { return s.fault.Action == labmode.Kill }

// guarded reports whether the strategy has a lock.
func (s *section) guarded() bool { return !s.at[sale.Acquired].IsZero() }

// number returns a fact that was noted at a point.
func (s *section) number(p sale.Point, name string) (int64, bool) {
	return NumberOf(s.facts[p], name)
}

// summed reports whether it read the stock as a sum of rows.
func (s *section) summed() bool { return s.facts[sale.Read][sale.From] == sale.FromSum }

// lockKey is the key of its lock, where that is not the item's.
func (s *section) lockKey() string {
	key, _ := s.facts[sale.Acquired][sale.LockKey].(string)
	return key
}

// NumberOf is a fact that is a number.
func NumberOf(facts map[string]any, name string) (int64, bool) {
	n, _ := facts[name].(json.Number) // the empty one is no number
	v, err := n.Int64()
	return v, err == nil
}

// named is the request as texts name it; nil for none.
func (s *section) named() *Sale {
	if s == nil {
		return nil
	}
	return &Sale{Label(s.ID), s.Shop}
}

var first = cmp.Or[time.Time]

// Period is a time in which a fault or an intervention was active.
type Period struct {
	From, Until time.Time
	Shop        string // empty where it concerned a server
	What        words.Text
}

// Periods are the times in which a fault was active: what requests carried, and what the lab did.
func (e Evidence) Periods() []Period { return e.periodsOf(e.sections()) }

func (e Evidence) periodsOf(sections []*section) []Period {
	var all []Period
	for _, s := range sections {
		if s.fault.met() && !s.killed() {
			all = append(all, Period{s.fault.from, s.fault.until, s.Shop,
				say("span-fault-of-sale", Facts{Holder: s.named(), Fault: s.fault.Action})})
		}
	}
	for _, d := range e.Interventions {
		all = append(all, Period{d.From, first(d.Until, e.Ended), d.Shop,
			say("span-intervention", Facts{Shop: d.Shop, Intervention: d.What})})
	}
	return all
}

// Stall names a sale that says nothing about its strategy, because the machine was too slow. It was inside for longer
// than its lease, which was not to end, and no fault was active on its shop. A hold of another sale there is no such
// fault. It is empty where there is no such sale.
func (e Evidence) Stall() string {
	sections := e.sections()
	faults := e.periodsOf(slices.DeleteFunc(slices.Clone(sections), func(s *section) bool { return s.fault.Action == labmode.Hold }))
	for _, s := range sections {
		since := s.enter()
		if e.heldInMySQL() { // it reads when it has reserved
			since = s.Sent
		}
		if s.enter().IsZero() || s.leave().IsZero() {
			continue
		}
		inside := s.leave().Sub(since)
		if s.Fault || !s.guarded() && !e.heldInMySQL() || inside <= s.Lease || overlaps(faults, s) {
			continue
		}
		return fmt.Sprintf("%s on %s was inside for %s, longer than its lease, which was not to end", Label(s.ID), s.Shop, words.Milliseconds(inside))
	}
	return ""
}

// overlaps says whether anything was done to the shop of a section while it lasted.
func overlaps(faults []Period, s *section) bool {
	return slices.ContainsFunc(faults, func(d Period) bool {
		return (d.Shop == "" || d.Shop == s.Shop) && d.From.Before(s.leave()) && d.Until.After(s.enter())
	})
}
