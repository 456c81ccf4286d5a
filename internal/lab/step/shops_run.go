package step

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// shopsRun is a run on shops of this repository: of one item, or of those of baskets.
type shopsRun struct {
	*run
	shops     *Shops
	slot      *slot
	of        declared.Strategy
	items     []uint64
	customers []*shopper

	sending sync.WaitGroup // the requests of the customers

	timed bool // something was sent by which a lease can be kept where no look finds it
}

// shopper is a customer of a shop.
type shopper struct {
	*buyer
	lines   []uint64 // the items that it buys, in its order
	shop    *rig.TestbedShop
	arrived time.Duration   // of the machine's time in the run
	asked   map[string]bool // what it was held at before, with baskets

	begins            string // the command with which a try of its lock begins
	retry             bool   // it is held at that again
	tryFrom, tryUntil int    // the run's version when the try before this one, and this one, were made

	conn    uint64 // MySQL's number of the connection that has sent the last statement
	cut     bool
	refused bool // it has passed the point waiting, and has sent nothing since
	keptOut bool // it has passed that, and nothing of it has come to MySQL since
	ordered bool // its open transaction has inserted an order
	written bool // its order is committed
}

func (r *shopsRun) at(b *buyer) *shopper { return r.customers[b.customer-'A'] }

// How long to wait for what.
const (
	restLimit = 8 * time.Second       // beyond which a run has failed
	lockAfter = 20 * time.Millisecond // silence after which the lock is looked at: a shop may be at work
	dropAfter = 2 * time.Second       // or a lease if that is longer: the shop has dropped what it was to write
)

// shopReplied is how a shop has answered a request of a customer.
type shopReplied struct {
	customer        schedule.Customer
	request, answer string
	more            bool // it has another one to send
}

func (r *shopsRun) arrive(ctx context.Context, b *buyer) {
	s := r.at(b)
	s.arrived = r.machineTime()
	r.sending.Go(func() {
		list, more := r.requests(b.customer), true
		for i := 0; more; i++ {
			answer := ""
			answer, more = list[i].Send(ctx, Address{URL: s.shop.URL, Staff: s.shop.Staff, Strategy: r.plan.Strategy, Items: s.lines, ID: b.id})
			more = more && i+1 < len(list)
			select {
			case r.messages <- shopReplied{b.customer, list[i].Name, answer, more}:
			case <-ctx.Done():
				return
			}
		}
	})
}

// requests are those of a customer: a purchase where the plan says nothing.
func (r *shopsRun) requests(c schedule.Customer) []Request {
	if list := r.plan.Requests[c]; len(list) > 0 {
		return list
	}
	return []Request{{Name: "buy", Send: func(ctx context.Context, to Address) (string, bool) {
		return r.slot.buy(ctx, to.URL, to.Items, to.Strategy, to.ID), false
	}}}
}

// handle takes in what a shop reports, and how it answers.
func (r *shopsRun) handle(_ context.Context, m any) error {
	if a, ok := m.(shopReplied); ok {
		b := r.buyer(a.customer)
		if a.more {
			r.note(schedule.Entry{Customer: b.customer.String(), Note: words.Of("note.request", "who", b.customer.String(), "request", a.request, "answer", a.answer)})
			return nil
		}
		if a.answer == string(load.Busy) {
			r.answeredBusy(r.at(b), a.answer)
		}
		if b.answer = a.answer; a.answer == load.NoAnswer { // its shop has ended: else the report on its last request comes another way, and is slower
			r.noAnswer(b)
		}
		if !r.goesOn(b) { // what is held is beside the sale
			r.dropHeld(b)
		}
		r.replied(b, a.answer)
		return nil
	}
	report := m.(heldReport)
	if r.plan.MaxSilence > 0 && report.loose() {
		return UnheldError{"Redis"}
	}
	if report.Own && report.Server != labmode.MySQLServer && writesOneOf(r.schema.Touches(report.request()), heldKeys(r.items, r.of.State)) {
		if name := r.customerOfShop(report.shop); name != "" {
			r.noteRenewal(schedule.Customer(name[0]), report.at)
		}
	}
	i := slices.IndexFunc(r.buyers, func(b *buyer) bool { return b.id == report.Sale })
	switch {
	case report.Refused:
		if i >= 0 {
			r.customers[i].refused, r.customers[i].keptOut = true, true
		}
	case i >= 0 && report.Hold != 0 && r.buyers[i].occupied():
		report.release(false) // a goroutine beside the sale sent it, and it is shown when it is done
	case i < 0 || report.Own || report.Done != 0 && !r.buyers[i].has(report.Done):
		if r.plan.Observe {
			at := r.note(schedule.Entry{Own: true, Customer: r.customerOfShop(report.shop), Server: report.Server, Sent: report.Text, Answer: report.Answer})
			r.entries[at].Item = r.itemOf(report.Server, report.Text)
		}
	case report.Hold != 0:
		h := report.held()
		r.hold(r.buyers[i], h)
		r.holdsAt(r.customers[i], h, report)
	case r.buyers[i].flying == nil && len(r.buyers[i].queue) > 0:
		return slowError{why: fmt.Sprintf("%s was held for more than %s, and its shop went on", r.buyers[i].customer, labmode.HoldLimit)}
	default:
		r.done(r.customers[i], report)
	}
	return nil
}

func (r *shopsRun) dropHeld(b *buyer) {
	for _, h := range b.queue {
		h.release(h)
	}
	b.queue = nil
}

// occupied says whether the sale itself can send nothing now: it has ended, is held, or has no answer yet.
func (b *buyer) occupied() bool { return b.state == ended || len(b.queue) > 0 || b.flying != nil }

// has says whether a request of this number is the last that a customer has sent, or is held at.
func (b *buyer) has(number uint64) bool {
	h := b.next()
	return h != nil && h.id == number
}

func (r *shopsRun) customerOfShop(name string) string {
	for _, b := range r.buyers {
		if strings.HasSuffix(name, fmt.Sprintf("-%d", b.customer-'A'+1)) {
			return b.customer.String()
		}
	}
	return ""
}

// done takes in that a request was answered.
func (r *shopsRun) done(s *shopper, report heldReport) {
	if s.flying == nil {
		return
	}
	ends := report.Name == "commit" || report.Name == "rollback" || report.Lost || strings.Contains(report.Answer, "Error 1213")
	a := answer{text: report.Answer, ends: ends, open: s.flying.Tx && !ends, failed: strings.HasPrefix(report.Answer, "error: ")}
	a.matched = !a.failed && report.Answer != "no row" && report.Answer != "0 rows"
	if report.Server == labmode.MySQLServer {
		s.written = s.written || s.ordered && report.Name == "commit"
		s.ordered = !ends && (s.ordered || a.open && a.matched && strings.HasPrefix(report.Text, "INSERT") && strings.Contains(report.Text, "orders"))
		if s.flying.conn != 0 {
			s.conn = s.flying.conn
		}
		if report.Lost && s.flying.conn != 0 { // the shop has hung up, which it cannot do with a COMMIT
			defer clear(s.named)
		}
	}
	if r.acquires(s.buyer) && report.Answer == labmode.AcquiredAnswer {
		r.acquired(s.customer)
	}
	r.answered(s.buyer, report.Done, a)
}

// goesOn says whether a shop may have to write yet: it answers first, and can be held before that already.
func (r *shopsRun) goesOn(b *buyer) bool {
	return r.of.AnswersFirst && b.answer == string(load.Sold) && !r.at(b).written
}

func (r *shopsRun) sends(b *buyer, h *held) {
	r.entries[h.entry].Item = r.itemOf(h.Server, h.Text)
	if r.keepsTime(h.Request) {
		r.timed, r.leased = true, true
	}
	if r.whole(h, labmode.ReleaseStep) && r.has == b.customer {
		r.has = 0
	}
}

func (r *shopsRun) sent(ctx context.Context, _ *buyer, h *held) error {
	if h.lost {
		if err := r.hungUp(ctx, h.conn); err != nil {
			return err
		}
	}
	if h.Server == labmode.MySQLServer && (!h.Tx || h.name == "commit") {
		return r.slot.database.copied(ctx)
	}
	return nil
}

// itemOf returns the one of the run's items that a request names, from 1. It is 0 for none, for several, and where there
// is one.
func (r *shopsRun) itemOf(server, text string) (item int) {
	if len(r.items) == 1 || text == "" {
		return 0
	}
	form := `\bstock:%d\b`
	if server == labmode.MySQLServer {
		form = `\b%d\b`
	}
	for i, id := range r.items {
		if regexp.MustCompile(fmt.Sprintf(form, id)).MatchString(text) {
			if item != 0 {
				return 0
			}
			item = i + 1
		}
	}
	return item
}

func (r *shopsRun) db() *sql.DB { return r.slot.database.store.Pool() }
