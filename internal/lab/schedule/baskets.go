package schedule

import (
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/shop/labmode"
)

// decideBaskets is [Outcome.decide] where each customer buys one unit of each item, and there are enough for
// all. In the end ordinary customers have bought until one was refused.
func (o *Outcome) decideBaskets(events []Event) {
	f := verdict.Facts{Stock: o.Stock, DemandLeft: true}
	sold, rows := make([]int64, o.Items+1), map[string]int{}
	for _, order := range o.Orders {
		sold[order.Item]++
		rows[order.Customer]++
	}
	refused := int64(0)
	for customer, answer := range o.Answers {
		had := rows[customer]
		f.Twice += int64(max(0, had-1) / o.Items)
		if had%o.Items != 0 {
			f.HalfSold++
		}
		switch {
		case answer == string(load.Sold) && had == 0:
			f.Unordered++
		case load.Outcome(answer).Denies() && had > 0:
			f.Denied++
		case answer == string(load.SoldOut), len(events) == 0 && load.Outcome(answer).Denies():
			refused++
		}
	}
	ended := o.Ordinary == string(load.SoldOut)
	for _, units := range sold[1:] {
		f.Oversold += max(0, units-o.Stock)
		if ended {
			f.Unclaimed += max(0, o.Stock-units)
		}
	}
	f.Left = min(refused, o.Afterwards)
	f.Stuck = !ended
	o.Verdict = f.Verdict().Kind
	o.N = verdict.Of(o.Verdict).Count(f)
}

// causeOfRefusal is why customers were refused baskets that could be had.
func (r *Record) causeOfRefusal() Cause {
	for _, answer := range r.Outcome.Answers {
		if answer != string(load.Sold) && answer != string(load.Busy) {
			return Unreturned
		}
	}
	return CrossedLocks
}

// Deadlocks counts the transactions of a run that MySQL has ended because they waited for each other.
func (r Record) Deadlocks() (n int) {
	for _, e := range r.Entries {
		if strings.Contains(e.Answer, "Error 1213") {
			n++
		}
	}
	return n
}

// Possession is who has which of several items at a moment, and who waits for which: by locks in Redis, and
// by rows that a transaction has locked.
type Possession struct {
	has   map[int]string // by item
	waits map[string]int // by customer
}

// After notes what an entry changes.
func (p *Possession) After(e Entry) {
	if p.has == nil {
		p.has, p.waits = map[int]string{}, map[string]int{}
	}
	who := e.Customer
	inMySQL := e.Server == labmode.MySQLServer
	name := strings.TrimRight(e.Choice.Step, "0123456789")
	ends := name == "commit" || name == "rollback" || strings.Contains(e.Answer, "Error 1213")
	acquires := !inMySQL && (name == "set" || name == "setnx" || name == "acquire")
	if waited := p.waits[who]; waited != 0 && e.Choice.IsStep() && name != "release" && !(acquires && e.Item == waited) {
		p.has[waited] = who // it was served meanwhile
		delete(p.waits, who)
	}
	switch {
	case !e.Choice.IsStep():
	case inMySQL && ends:
		p.free(who, 0)
		delete(p.waits, who)
	case e.Item == 0:
	case name == "release":
		p.free(who, e.Item)
		delete(p.waits, who)
	case e.Blocked != "" && e.Answer == "", acquires && (e.Answer == "0" || strings.HasPrefix(e.Answer, "[2 ")): // queued
		p.waits[who] = e.Item
	case inMySQL && !e.Tx, !inMySQL && !acquires:
	default:
		p.has[e.Item] = who
		if p.waits[who] == e.Item {
			delete(p.waits, who)
		}
	}
}

// free takes an item from a customer, or all for 0.
func (p *Possession) free(who string, item int) {
	for i, holder := range p.has {
		if holder == who && (item == 0 || item == i) {
			delete(p.has, i)
		}
	}
}

// Put fills in a state of so many items.
func (p *Possession) Put(s *State, items int) {
	s.Has, s.Waiting = make([]string, items), nil
	for i := range items {
		s.Has[i] = p.has[i+1]
	}
	for who, item := range p.waits {
		s.Waiting = append(s.Waiting, fmt.Sprintf("%s for %d", who, item))
	}
	slices.Sort(s.Waiting)
}

// circle is the first circle of customers each of whom waits for what the next one has, in a line. It is
// empty where there was none.
func (r Record) circle() string {
	var p Possession
	for _, e := range r.Entries {
		ended := strings.Contains(e.Answer, "Error 1213") && e.Item != 0 // by MySQL, when the circle was closed
		if waited := e; e.Blocked != "" || ended {
			waited.Answer, waited.Blocked = "", "a row"
			p.After(waited)
		} else {
			p.After(e)
		}
		for _, c := range Customers(r.Customers) {
			begin := c.String()
			line, who := begin, begin
			for range r.Customers {
				item := p.waits[who]
				next := p.has[item]
				if item == 0 || next == "" || next == who {
					break
				}
				line += fmt.Sprintf(" ──waits for──▶ item %d ──held by──▶ %s", item, next)
				if who = next; who == begin {
					return line
				}
			}
		}
		if ended {
			p.After(e)
		}
	}
	return ""
}
