package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
)

// decideBaskets is for customers each of whom buys one unit of each item, and there are enough for all. In the end
// ordinary customers have bought until one was refused.
func (r *Record) decideBaskets() {
	o, quiet := &r.Outcome, r.Played.Quiet()
	purchases := o.purchases()
	f := count.Facts(maps.Values(purchases))
	f.Stock = o.Stock
	sold := make([]int64, o.Items+1)
	for _, order := range o.Orders {
		sold[order.Item]++
	}
	refused := int64(0)
	for customer, answer := range o.Answers {
		if len(purchases[customer].Orders) == 0 && (answer == string(load.SoldOut) || quiet && load.Outcome(answer).Denies()) {
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
	r.rule(f)
}

// causeOfRefusal is why customers were refused what could be had.
func (r *Record) causeOfRefusal() verdict.Cause {
	if r.Outcome.Items <= 1 {
		for _, c := range Customers(r.Customers) {
			switch {
			case r.Outcome.Ordinary == string(load.SoldOut) || r.refused(c) <= 0:
			case r.keptOut(c):
				return verdict.Prolonged
			case r.turnedAway(c) && r.Deadlocks() > 0:
				return verdict.Deadlock
			case r.turnedAway(c):
				return verdict.TurnedAway
			}
		}
		return verdict.Unreturned
	}
	for _, answer := range r.Outcome.Answers {
		if answer != string(load.Sold) && answer != string(load.Busy) {
			return verdict.Unreturned
		}
	}
	return verdict.CrossedLocks
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
// by rows that a transaction has locked. An item can be had by both, of two customers.
type Possession struct {
	Items int // how many there are, which each customer buys

	has   map[thing]string
	waits map[string]thing // by customer
}

// thing is what one customer has at a time.
type thing struct {
	item int // from 1
	row  bool
}

// After notes what an entry changes.
func (p *Possession) After(e Entry) {
	if p.has == nil {
		p.has, p.waits = map[thing]string{}, map[string]thing{}
	}
	who := e.Customer
	inMySQL := e.Server == labmode.MySQLServer
	of := thing{e.Item, inMySQL}
	name := strings.TrimRight(e.Choice.Step, "0123456789")
	ends := name == "commit" || name == "rollback" || strings.Contains(e.Answer, "Error 1213")
	counter := strings.Contains(e.Sent, "}:units") // its key has the item's, too
	acquires := !inMySQL && !counter && (name == "set" || name == "setnx" || name == "acquire")
	refused := acquires && (e.Answer == "0" || strings.HasPrefix(e.Answer, "[2 ")) // queued
	if acquires && e.Item == 0 {                                                   // the locks of all items, or none
		for of.item = 1; refused && of.item < p.Items && (p.has[of] == "" || p.has[of] == who); {
			of.item++
		}
	}
	if waited, ok := p.waits[who]; ok && e.Choice.IsStep() && name != "release" && !(acquires && of == waited) {
		p.has[waited] = who // it was served meanwhile
		delete(p.waits, who)
	}
	switch {
	case !e.Choice.IsStep():
	case inMySQL && ends:
		maps.DeleteFunc(p.has, func(t thing, holder string) bool { return t.row && holder == who })
		delete(p.waits, who)
	case of.item == 0:
	case name == "release":
		if p.has[of] == who {
			delete(p.has, of)
		}
		delete(p.waits, who)
	case !e.Blocked.IsZero() && e.Answer == "", refused:
		p.waits[who] = of
	case inMySQL && !e.Tx, !inMySQL && !acquires:
	default:
		for p.has[of] = who; e.Item == 0 && of.item < p.Items; p.has[of] = who {
			of.item++
		}
		delete(p.waits, who)
	}
}

// Put fills in a state.
func (p *Possession) Put(s *State) {
	s.Has, s.Waiting = make([]string, p.Items), nil
	for i := range p.Items {
		lock, row := p.has[thing{i + 1, false}], p.has[thing{i + 1, true}]
		if s.Has[i] = cmp.Or(lock, row); row != "" && row != s.Has[i] {
			s.Has[i] += ", " + row
		}
	}
	for who, waited := range p.waits {
		s.Waiting = append(s.Waiting, fmt.Sprintf("%s for %d", who, waited.item))
	}
	slices.Sort(s.Waiting)
}

// circle is the first circle of customers each of whom waits for what the next one has, in a line. It is
// empty where there was none.
func (r Record) circle(in *words.Language) string {
	p := Possession{Items: r.Outcome.Items}
	for _, e := range r.Entries {
		ended := strings.Contains(e.Answer, "Error 1213") && e.Item != 0 // by MySQL, when the circle was closed
		if waited := e; !e.Blocked.IsZero() || ended {
			waited.Answer, waited.Blocked = "", words.Of("blocked.row")
			p.After(waited)
		} else {
			p.After(e)
		}
		for _, c := range Customers(r.Customers) {
			begin := c.String()
			line, who := begin, begin
			for range r.Customers {
				waited := p.waits[who]
				next := p.has[waited]
				if next == "" || next == who {
					break
				}
				line += in.Say(words.Of("schedule.link", "item", waited.item, "next", next))
				if who = next; who == begin {
					return in.Say(words.Of("schedule.circle", "line", line))
				}
			}
		}
		if ended {
			p.After(e)
		}
	}
	return ""
}
