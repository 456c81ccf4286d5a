package explain

import (
	"slices"
	"time"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// ofAnswers explain the verdicts on answers that the orders contradict.
var ofAnswers = map[verdict.Kind]func(*inquiry) *Explanation{
	verdict.Twice:  (*inquiry).orderedTwice,
	verdict.Lied:   (*inquiry).neverWritten,
	verdict.Denied: (*inquiry).disowned,
	verdict.Left:   (*inquiry).sentAway,
}

// ordersOf are the orders of the purchase of a request, in the order of their commits.
func (c *inquiry) ordersOf(r Request) (orders []stock.Order) {
	of := slices.Clone(c.ordered[r.ID])
	if r.Key != "" {
		of = append(of, c.ordered[r.Key]...)
	}
	slices.Sort(of)
	for _, i := range slices.Compact(of) {
		orders = append(orders, c.Orders[i])
	}
	return orders
}

// neverWritten explains answers that said sold and have no order.
func (c *inquiry) neverWritten() *Explanation {
	var lied *section
	count := 0
	for _, s := range c.sections {
		if s.Outcome != "sold" || len(c.ordersOf(s.Request)) > 0 {
			continue
		}
		if count++; lied == nil || s.Answered.Before(lied.Answered) {
			lied = s
		}
	}
	if lied == nil {
		return noSuchOrder()
	}
	f := Facts{Holder: lied.named()}
	x := &Explanation{Cause: verdict.Unexplained, Why: []words.Text{say("answered-no-order", f)}}
	var killed *section
	moment := first(lied.at[sale.Answered], lied.Answered)
	point, at := lied.last()
	if died := c.diedAfter(lied.Shop, at); died != nil && point != sale.Written {
		x.Cause = verdict.NoOrder
		if hit := c.hit; hit != nil && hit.killed() && hit.Shop == lied.Shop && hit.fault.from.Before(died.From.Add(clockTolerance)) {
			killed = hit
		}
		f.Other = killed.named()
		f.Point, f.AfterMS = point, words.Rounded(died.From.Sub(lied.enter()))
		x.Why = append(x.Why, say("died-before-order", f))
		moment = died.From
	} else {
		x.Why = append(x.Why, say("no-reason-for-answer", f))
	}
	if c.Declared.AnswersFirst {
		x.Why = append(x.Why, say("answers-first", f))
	}
	if count > 1 {
		x.Why = append(x.Why, say("so-were-others", Facts{Count: count - 1}))
	}
	return c.drawn(x, moment, say("moment-order-lost", f), moment, lied, killed)
}

func noSuchOrder() *Explanation {
	return &Explanation{Cause: verdict.Unexplained, Why: []words.Text{say("no-such-order", Facts{})}}
}

// last is the last point that a request passed, and when.
func (s *section) last() (point sale.Point, at time.Time) {
	for _, p := range sale.Points {
		if t := s.at[p]; !t.Before(at) && !t.IsZero() {
			point, at = p, t
		}
	}
	return point, at
}

// diedAfter is the first death of a shop after a time, nil for none.
func (e Evidence) diedAfter(shop string, at time.Time) *Intervention {
	var died *Intervention
	for i, d := range e.Interventions {
		if d.What == Dead && d.Shop == shop && !d.From.Before(at) && (died == nil || d.From.Before(died.From)) {
			died = &e.Interventions[i]
		}
	}
	return died
}

// disowned explains orders whose customers were rejected. Whether an answer is one of those says the rule of the verdict, by
// that answer and those of its purchase that deny nothing.
func (c *inquiry) disowned() *Explanation {
	for _, s := range c.sections {
		if !load.Outcome(s.Outcome).Denies() {
			continue
		}
		orders := c.ordersOf(s.Request)
		p := count.Purchase{Orders: make([]count.Order, len(orders))}
		purchase := []*section{s}
		if s.Key != "" {
			purchase = c.byKey[s.Key]
		}
		for _, r := range purchase {
			if of := load.Outcome(r.Outcome); r == s || !of.Denies() {
				p.Answers = append(p.Answers, count.Answer{Outcome: of, Sent: r.Sent, At: r.Answered})
			}
		}
		if p.Facts().Denied == 0 {
			continue
		}
		f := Facts{Holder: s.named(), Outcome: s.Outcome, Order: Number(orders[0].ID)}
		x := &Explanation{Cause: verdict.Denial, Why: []words.Text{say("rejected-with-order", f)}, Rows: []Row{c.rowOf(orders[0])}}
		return c.drawn(x, first(s.Answered, s.leave()), say("moment-rejected", f), time.Time{}, s)
	}
	return noSuchOrder()
}

// orderedTwice explains two orders of one purchase.
func (c *inquiry) orderedTwice() *Explanation {
	for _, s := range c.sections {
		orders := c.ordersOf(s.Request)
		if len(orders) < 2 {
			continue
		}
		f := Facts{Holder: s.named(), OtherOrder: Number(orders[0].ID), Order: Number(orders[1].ID)}
		x := &Explanation{Cause: verdict.SoldAgain, Why: []words.Text{say("ordered-twice", f)}, Rows: []Row{c.rowOf(orders[0]), c.rowOf(orders[1])}}
		if s.fault.Action == labmode.Lose && !s.fault.until.IsZero() {
			f.AfterMS = words.Rounded(s.fault.until.Sub(s.enter()))
			x.Cause, x.Why = verdict.UnknownCommit, append(x.Why, say("commit-answer-lost", f))
		}
		return c.drawn(x, first(orders[1].CreatedAt, s.leave()), say("moment-ordered-twice", f), time.Time{}, s, c.of(orders[1]))
	}
	return noSuchOrder()
}

// sentAway explains units that were left, although customers were answered as sold out.
func (c *inquiry) sentAway() *Explanation {
	away, left := c.byID[c.SentAway], c.InitialStock-c.units()-c.SoldLater
	for _, s := range c.sections {
		if c.SentAway == "" && left > 0 && s.Outcome == "sold_out" && (away == nil || s.Answered.After(away.Answered)) {
			away = s // the last one: nothing was sold after its answer
		}
	}
	if away == nil {
		return noSuchOrder()
	}
	f := Facts{Holder: away.named(), Stock: left, Initial: c.InitialStock}
	x := &Explanation{Cause: verdict.Unexplained, Why: []words.Text{say("sent-away", f)}}
	if left <= 0 {
		x.Why[0] = say("sent-away-early", f)
	}
	var dead *section
	if taken := c.takings(); c.countedInRedis() && c.Declared.AnswersFirst && taken > len(c.Orders) {
		f.Count, f.Stock = taken, int64(len(c.Orders))
		x.Cause, x.Why = verdict.Unreturned, append(x.Why, say("counted-out", f))
	} else if c.diedWithUnits() {
		dead = c.hit
		f.Third, f.Point = dead.named(), dead.fault.Point
		x.Cause, x.Why = verdict.Unreturned, append(x.Why, say("died-with-units", f))
	} else {
		x.Why = append(x.Why, say("no-reason-for-answer", f))
	}
	return c.drawn(x, first(away.Answered, away.Sent), say("moment-sent-away", f), time.Time{}, away, dead)
}

// diedWithUnits says whether Redis had counted out the units of the sale with which its shop was killed, and that has no
// order.
func (c *inquiry) diedWithUnits() bool {
	if c.hit == nil || !c.hit.killed() || c.hit.order != nil || !c.countedInRedis() {
		return false
	}
	_, counted := c.hit.number(sale.Read, "stock")
	return counted
}

// takings counts how often the counter was lowered during the attack, as the busiest server announced
// it. Redis announces what raises a counter alike, which a strategy that answers first never does.
func (c *inquiry) takings() int {
	byServer, most := map[string]int{}, 0
	for _, ch := range c.Changes {
		if (ch.What == "incrby" || ch.What == "decrby") && ch.Time.Before(c.Ended.Add(busyTolerance)) {
			byServer[ch.Server]++
			most = max(most, byServer[ch.Server])
		}
	}
	return most
}
