package explain

import (
	"context"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/stock"
)

// patience is how long the search for an explanation may take.
const patience = 5 * time.Second

// Explain finds what there is to say of a cell: its first violation, or why nothing moves, or what
// came nearest to breaking it. It returns nil where nothing was sold or nothing is known. When ctx
// ends, or the search takes longer than 5 s, the cause is [verdict.NotInTime].
func Explain(ctx context.Context, e Evidence) *Explanation { return explainWithin(ctx, e, patience) }

func explainWithin(ctx context.Context, e Evidence, patience time.Duration) *Explanation {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	x := newInquiry(ctx, e, clockTolerance).explanation()
	if x != nil && e.Unwatched != "" {
		x.Why = append(x.Why, say("lane-missing", Facts{Server: e.Unwatched}))
	}
	if ctx.Err() != nil {
		took := words.Rounded(time.Since(begun))
		return &Explanation{Cause: verdict.NotInTime, Why: []words.Text{say("not-in-time", Facts{LastedMS: took})}}
	}
	return x
}

// inquiry is evidence put in order.
type inquiry struct {
	Evidence
	ctx       context.Context
	late      time.Duration // how long after a change its announcement may have been read
	sections  []*section    // by when they entered
	hit       *section      // the sale that the play held, killed or cut off, nil for none
	byID      map[string]*section
	byKey     map[string][]*section // those with an idempotency key
	ordered   map[string][]int      // the indexes of orders, by their request and by their key
	byTook    []*section            // those that entered, by when they got the lock
	histories []*history
	known     map[question]breach
}

func newInquiry(ctx context.Context, e Evidence, late time.Duration) *inquiry {
	c := &inquiry{Evidence: e, ctx: ctx, late: late, sections: e.sections(), byID: map[string]*section{}, byKey: map[string][]*section{}, ordered: map[string][]int{}, known: map[question]breach{}}
	for _, s := range c.sections {
		if c.byID[s.ID] = s; s.fault.met() {
			c.hit = s // a play does it to one
		}
		if s.entered() {
			c.byTook = append(c.byTook, s)
		}
		if s.Key != "" {
			c.byKey[s.Key] = append(c.byKey[s.Key], s)
		}
	}
	for i, o := range e.Orders {
		c.ordered[o.RequestID] = append(c.ordered[o.RequestID], i)
		if o.IdempotencyKey != nil {
			c.ordered[*o.IdempotencyKey] = append(c.ordered[*o.IdempotencyKey], i)
		}
	}
	slices.SortStableFunc(c.byTook, func(a, b *section) int { return a.took().Compare(b.took()) })
	c.histories = c.readHistories()
	return c
}

func (c *inquiry) explanation() *Explanation {
	kind, oversold := c.Verdict, c.Verdict == verdict.Oversold
	switch answers := ofAnswers[kind]; {
	case answers != nil:
		return answers(c)
	case kind == verdict.Stuck && c.Outlasted:
		return c.outlasted()
	case kind == verdict.Stuck:
		return c.stuck()
	case oversold && c.countedInRedis():
		return c.countedTwice()
	case oversold && c.heldInMySQL():
		return c.holdGone()
	case verdict.Of(kind).Bad:
		return c.violation()
	case len(c.Orders) == 0 || !c.Traced:
		return nil
	}
	return c.held()
}

func (c *inquiry) outOfTime() bool { return c.ctx.Err() != nil }

// pastTheStock is the first order beyond the initial stock.
func (e Evidence) pastTheStock() (int, bool) {
	var sold int64
	for i, o := range e.Orders {
		if sold += o.Quantity; sold > e.InitialStock {
			return i, true
		}
	}
	return 0, false
}

// clash is the first order that overwrote one which it did not know of. There is none where no order
// had left the stock that was read.
type clash struct {
	late        int // index of the order that overwrote
	overwritten int // of the first one that it overwrote: both read the same stock
}

func (e Evidence) clash() (clash, bool) {
	current := e.InitialStock
	for i, o := range e.Orders {
		if o.StockRead != current {
			same := slices.IndexFunc(e.Orders[:i], func(earlier stock.Order) bool { return earlier.StockRead == o.StockRead })
			return clash{late: i, overwritten: same}, same >= 0
		}
		current = o.StockWritten
	}
	return clash{}, false
}

// violation explains an oversell by what the orders have read where the stock is.
func (c *inquiry) violation() *Explanation {
	found, ok := c.clash()
	if !ok || c.Declared.State.Elsewhere() {
		return &Explanation{Cause: verdict.Unexplained, Why: []words.Text{c.beyond()}}
	}
	lateOrder, overwritten := c.Orders[found.late], c.Orders[found.overwritten]
	late, other := c.of(lateOrder), c.of(overwritten)
	rows := []Row{c.row(found.overwritten), c.row(found.late)}
	if past, ok := c.pastTheStock(); ok && past != found.late {
		rows = append(rows, c.row(past))
	}
	orders := Facts{Stock: lateOrder.StockRead, Order: Number(lateOrder.ID), OtherOrder: Number(overwritten.ID)}
	if !c.Traced || late == nil || other == nil || !late.entered() || !other.entered() {
		return &Explanation{Cause: verdict.Untraced, Rows: rows, Why: []words.Text{say("both-read-untraced", orders)}}
	}
	if x := c.staleCache(other, late, found); x != nil {
		return x
	}
	if c.keptApart(other, late) {
		return c.readUnderLock(other, late, rows, orders)
	}
	older, intruder := late, other
	if intruder.enter().Before(older.enter()) {
		older, intruder = intruder, older
	}
	older, intruder, breach := c.explainOverlap(older, intruder)
	if breach.cause == verdict.Unexplained && c.late < busyTolerance && !c.outOfTime() {
		return newInquiry(c.ctx, c.Evidence, busyTolerance).violation()
	}
	x := &Explanation{Cause: breach.cause, Rows: rows}
	read, oversold := "both-read", "moment-oversold"
	if breach.cause == verdict.WriteSkew {
		read, oversold = "both-appended", "moment-appended"
	}
	x.Why = append(breach.texts(), say(read, Facts{Stock: lateOrder.StockRead, Holder: other.named(), Other: late.named()}))
	d := c.drawing(x, earlier(older.enter(), intruder.enter()))
	d.follow(older, intruder, breach.culprit)
	d.moment(late.wrote(), say(oversold, orders), true)
	d.until(other.wrote()) // which may have been noted later, though it was committed before
	d.both(later(older.enter(), intruder.enter()), earlier(older.leave(), intruder.leave()))
	d.finish()
	return x
}

// beyond says how many units there are orders for, where they are too many.
func (c *inquiry) beyond() words.Text {
	if c.units() <= c.InitialStock { // what is wrong came after the attack, or is no oversell
		return say("no-such-order", Facts{})
	}
	return say("sold-beyond", Facts{Count: int(c.units()), Initial: c.InitialStock})
}

// units are those that there are orders for.
func (e Evidence) units() (sold int64) {
	for _, o := range e.Orders {
		sold += o.Quantity
	}
	return sold
}

// explainOverlap says how the intruder came in. Entries that are close together may have been
// noted the other way round; and a third request may have come in first, and let the intruder in.
func (c *inquiry) explainOverlap(older, intruder *section) (first, second *section, b breach) {
	if b = c.breach(older, intruder); b.cause != verdict.Unexplained {
		return older, intruder, b
	}
	if intruder.enter().Sub(older.enter()) < clockTolerance {
		if swapped := c.breach(intruder, older); swapped.cause != verdict.Unexplained {
			return intruder, older, swapped
		}
	}
	for _, third := range c.sections {
		if c.outOfTime() || third.enter().After(intruder.enter()) {
			break
		}
		if !third.entered() || third == older || third == intruder || third.enter().Before(older.enter()) {
			continue
		}
		if through := c.breach(older, third); through.cause != verdict.Unexplained {
			through.after = append(through.after, say("came-in-behind", Facts{Other: intruder.named(), Third: third.named()}))
			through.culprit = third
			return older, intruder, through
		}
	}
	return older, intruder, b
}

// of is the request that made an order, nil where it is not known.
func (c *inquiry) of(o stock.Order) *section { return c.byID[o.RequestID] }

// rowOf is an order among those of the evidence.
func (e Evidence) rowOf(o stock.Order) Row {
	return e.row(slices.IndexFunc(e.Orders, func(other stock.Order) bool { return other.ID == o.ID }))
}

func (e Evidence) row(i int) Row {
	o := e.Orders[i]
	return Row{ID: Number(o.ID), Request: o.RequestID, Shop: o.Shop, Read: o.StockRead, Written: o.StockWritten, Token: Number(o.Token), Nth: i + 1}
}

// Label is the short name of a request: its number in the run.
func Label(request string) string {
	return "#" + request[strings.LastIndexByte(request, '-')+1:]
}

func earlier(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }

func later(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
