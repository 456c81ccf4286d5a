package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// Record is what happened in one run of a schedule.
type Record struct {
	Strategy  string   `json:"strategy"`
	Schedule  Schedule `json:"schedule"` // the shortest that plays the same
	Customers int      `json:"customers"`
	LeaseMS   int64    `json:"lease_ms"`
	Entries   []Entry  `json:"entries"`
	Outcome   Outcome  `json:"outcome"`
	// Wire says that the requests are those of a service that was held at the wire. A drawing shows them as
	// they were sent.
	Wire bool `json:"wire,omitempty"`

	Played Schedule `json:"-"` // everything that was played, the unlisted rest included
	Holds  []Hold   `json:"-"` // of the lock, in their order

	// Of a run at the wire: see [Record.Undecided] and [Decided].
	TakenAway []Customer `json:"-"` // whom the event has taken away, or who were there when it broke a server
	Behind    string     `json:"-"` // the request behind which the event happened, or the second customer came
	Leaves    bool       `json:"-"` // that request has left something in Redis, or an open transaction
	Queued    bool       `json:"-"` // an order is missing, and a queue of Redis still has what the sales wrote there
	// Unended are the leases that time has not ended, as none is in a row of SQL: one can rightly keep out somebody, or a unit.
	Unended string `json:"-"`
	// LostUpdates are the units both in orders and left, negative for those in neither.
	LostUpdates int64 `json:"-"`

	timeless bool // see [Record.WithoutTimes]
}

// Command is the command of a program that plays the run again, with customers who buy as one --as of loadtest step says. It
// names the first step where the schedule lists nothing, which would ask what to do.
func (r Record) Command(program, as string) string {
	plan := r.Schedule
	if i := slices.IndexFunc(r.Played, Choice.IsStep); len(plan) == 0 && i >= 0 {
		plan = r.Played[i : i+1]
	}
	line := strings.TrimSuffix(program+" step "+r.Strategy+" "+plan.String(), " ")
	if as != "" {
		line += " --as " + as
	}
	if r.Customers > plan.Customers() {
		line += fmt.Sprintf(" --customers %d", r.Customers)
	}
	return line
}

// Sent is a request of a sale as the wire showed it.
type Sent struct {
	Server string `json:"server"`
	Sent   string `json:"sent"`
	Answer string `json:"answer"`
	Source string `json:"source,omitempty"` // of a script
}

// Entry is one line of a record: a step with its answer, an event, or what a shop did on its own.
type Entry struct {
	AtMS     float64    `json:"at_ms"`
	Choice   Choice     `json:"choice"` // zero for what a shop did on its own, and for a note
	Customer string     `json:"customer,omitempty"`
	Server   string     `json:"server,omitempty"`
	Sent     string     `json:"sent,omitempty"`
	Answer   string     `json:"answer,omitempty"`
	Blocked  words.Text `json:"blocked,omitzero"` // by what, where no answer came
	Note     words.Text `json:"note,omitzero"`
	State    *State     `json:"state,omitempty"` // after it, where it was looked at
	Own      bool       `json:"own,omitempty"`
	// Item is the one that a request is about, from 1, where a customer buys several. 0 is none, or more than
	// one.
	Item int `json:"item,omitempty"`
	// Replica says that a replica was asked.
	Replica bool `json:"replica,omitempty"`
	Tx      bool `json:"-"` // the step is a statement of a transaction
}

// Request is the request of a step.
func (e Entry) Request() Request { return Request{Server: e.Server, Text: e.Sent, Tx: e.Tx} }

// State is what the servers had at one moment.
type State struct {
	Lock   string `json:"lock"`             // what the lock's key holds, empty for no key
	Holder string `json:"holder,omitempty"` // the customer who set it, where that is known
	TTLMS  int64  `json:"ttl_ms"`           // 0 where it is not known, -1 for a key without an expiry, -2 for no key
	Kept   string `json:"kept,omitempty"`   // what else the strategy keeps in Redis
	// Ends is how long the one of these keys lasts that expires first, 0 where none does.
	Ends  time.Duration `json:"-"`
	Stock int64         `json:"stock"`
	// Replica is the stock at the replica, nil where that is not behind.
	Replica *int64 `json:"replica,omitempty"`
	// Elsewhere is how many units the strategy keeps in rows of its own.
	Elsewhere int64 `json:"elsewhere,omitempty"`
	// Where a customer buys several items: the stock of each, who has each, and who waits for which, such as
	// "A" and "B for 1".
	Stocks  []int64  `json:"stocks,omitempty"`
	Has     []string `json:"has,omitempty"`
	Waiting []string `json:"waiting,omitempty"`
	Fence   int64    `json:"fence,omitempty"`
	Orders  []Order  `json:"orders,omitempty"`
}

// Locked says whether the lock's key exists.
func (s State) Locked() bool { return s.TTLMS != -2 }

// Order is one row of the table of orders.
type Order struct {
	ID       uint64 `json:"id"`
	Customer string `json:"customer"`
	Item     int    `json:"item,omitempty"` // from 1, where a customer buys several
	Read     int64  `json:"read"`
	Written  int64  `json:"written"`
}

// AnswerLost is the note of a request that was carried out, and whose sender got no answer.
var AnswerLost = words.Of("note.answer-lost")

// OrdinaryCustomer is whose order it is that is none of the customers': see [Outcome.Ordinary].
const OrdinaryCustomer = "ordinary"

// Outcome is how a run ended, by the rows in MySQL and by what the customers were answered.
type Outcome struct {
	Verdict verdict.Kind  `json:"verdict"`
	N       int64         `json:"n,omitempty"` // units oversold or left, orders, or answers: the verdict's number
	Cause   verdict.Cause `json:"cause,omitempty"`
	Stock   int64         `json:"stock"`           // units there were to sell, of each item
	Items   int           `json:"items,omitempty"` // how many each customer bought in one sale, where that is several
	// Afterwards is how many more ordinary customers have bought, where each bought several items.
	Afterwards int64 `json:"afterwards,omitempty"`
	// Reserved is what was paid where the customers reserve, nil elsewhere.
	Reserved *Reserved         `json:"reserved,omitempty"`
	Orders   []Order           `json:"orders"`
	Answers  map[string]string `json:"answers"` // by customer: sold, sold_out, busy, ...
	Ordinary string            `json:"ordinary,omitempty"`
}

// Decide sets the verdict of a run.
func (r *Record) Decide() {
	switch {
	case r.Outcome.Reserved != nil:
		r.decideReservations()
	case r.Outcome.Items > 1:
		r.decideBaskets()
	default:
		r.decide()
	}
}

// rule sets the verdict and its number by the facts of the sales.
func (r *Record) rule(f verdict.Facts) {
	f.DemandLeft, f.Crashed = true, r.crashes()
	r.Outcome.Verdict = f.Verdict().Kind
	r.Outcome.N = verdict.Of(r.Outcome.Verdict).Count(f)
}

// crashes counts the customers whose sale failed although nothing had happened to them. A shop that an event has left
// without what it needs may say that it is unavailable, and a service may fail.
func (r *Record) crashes() (n int64) {
	for _, c := range Customers(r.Customers) {
		if r.crashed(c) {
			n++
		}
	}
	return n
}

func (r *Record) crashed(c Customer) bool {
	answer := r.Outcome.Answers[c.String()]
	return r.Played.Quiet() && Failed(answer) || !r.Wire && !r.hit(c) && (answer == load.NoAnswer || inShort(answer) == "500")
}

// quiet says whether nothing but the steps of the sales happened.
func (s Schedule) Quiet() bool {
	return !slices.ContainsFunc(s, func(c Choice) bool { return !c.IsStep() && c.Event != Arrive })
}

// hit says whether an event happened to a customer, or broke a server of all.
func (r *Record) hit(who Customer) bool {
	return slices.ContainsFunc(r.Played, func(c Choice) bool {
		return !c.IsStep() && c.Event != Arrive && c.Event != Wait && (c.Customer == 0 || c.Customer == who)
	})
}

// cameBefore says whether a customer's first step was made before the last one of another.
func (r *Record) cameBefore(customer, other string) bool {
	first := slices.IndexFunc(r.Played, func(c Choice) bool { return c.Customer != 0 && c.Customer.String() == customer })
	return first >= 0 && slices.ContainsFunc(r.Played[first:], func(c Choice) bool { return c.Customer != 0 && c.Customer.String() == other })
}

// decide is for customers who make one purchase of one unit each.
func (r *Record) decide() {
	o := &r.Outcome
	sold := int64(len(o.Orders))
	f := count.Facts(maps.Values(o.purchases()))
	f.Stock, f.Sold, f.Oversold, f.Remaining, f.LostUpdates = o.Stock, sold, max(sold-o.Stock, 0), max(o.Stock-sold, 0), r.LostUpdates
	for _, c := range Customers(r.Customers) {
		f.Left = max(f.Left, r.refused(c))
	}
	switch {
	case r.keptByTime():
		f.LostUpdates = max(0, f.LostUpdates)
	case o.Ordinary == string(load.SoldOut): // two leases later, when nobody has a unit without an order
		f.Left = f.Remaining
	}
	if r.Queued { // whose order that is
		f.Left, f.LostUpdates = 0, 0
	}
	broken := slices.ContainsFunc(r.Played.Events(), Event.Forgets) && Failed(o.Ordinary) // a server was: that says nothing of what the service keeps
	f.Stuck = f.Remaining > 0 && !decides(o.Ordinary) && !(r.Wire && unnamed(o.Ordinary)) && !broken && !r.keptByTime()
	r.rule(f)
}

// refused is how many units were there for a customer who was sent away: those that nobody can have had who came
// before that.
func (r *Record) refused(c Customer) int64 {
	o, who := &r.Outcome, c.String()
	answer := o.Answers[who]
	free := o.Stock - o.ordered(who)
	switch {
	case r.keptOut(c):
		for _, other := range Customers(r.Customers) {
			free -= o.ordered(other.String())
		}
		return free
	case answer != string(load.SoldOut) && !r.turnedAway(c):
		return 0
	}
	for other, theirs := range o.Answers {
		if other == who || !r.cameBefore(other, who) {
			continue
		}
		taken := o.ordered(other)
		if answer == string(load.SoldOut) && theirs != answer { // or was about to have one
			taken = max(taken, 1)
		}
		free -= taken
	}
	return free
}

// keptOut says whether a customer was rejected as busy although another one had died whose lock was to end, and did:
// somebody could buy afterwards.
func (r *Record) keptOut(c Customer) bool {
	o := &r.Outcome
	return !r.Wire && o.Answers[c.String()] == string(load.Busy) && !r.hit(c) && r.Played.Has(Kill) && decides(o.Ordinary)
}

// keptByTime says whether who came afterwards was sent away, or a unit is missing, and that can be because of a lease that was
// not ended.
func (r *Record) keptByTime() bool {
	o := &r.Outcome
	unsold := int64(len(o.Orders)) < o.Stock
	return r.Unended != "" && (o.Ordinary == string(load.Busy) || unsold && (o.Ordinary == string(load.SoldOut) || r.LostUpdates < 0))
}

// turnedAway says whether a customer was neither answered as sold nor as sold out, although nothing had happened. A
// described service may reject who comes while another one buys.
func (r *Record) turnedAway(c Customer) bool {
	answer := r.Outcome.Answers[c.String()]
	return !r.Wire && r.Played.Quiet() && !decides(answer) && !Failed(answer)
}

func (o *Outcome) ordered(customer string) (n int64) {
	for _, order := range o.Orders {
		if order.Customer == customer {
			n++
		}
	}
	return n
}

// Lies counts the customers who were answered with sold and have no order.
func (o *Outcome) Lies() int64 { return count.Facts(maps.Values(o.purchases())).Unordered }

// purchases are what the customers wanted, with their orders. Rows of several items are joined: the second row of
// an item is of a second order.
func (o *Outcome) purchases() map[string]count.Purchase {
	all, wants := map[string]count.Purchase{}, count.Units{0: 1}
	if o.Items > 1 {
		wants = count.Units{}
		for item := range o.Items {
			wants[uint64(item+1)] = 1
		}
	}
	for customer, answer := range o.Answers {
		p, rows := count.Purchase{Wants: wants, Answers: []count.Answer{{Outcome: load.Outcome(answer)}}}, map[int]int{}
		for _, row := range o.Orders {
			if row.Customer != customer {
				continue
			}
			if rows[row.Item] == len(p.Orders) {
				p.Orders = append(p.Orders, count.Order{Units: count.Units{}})
			}
			p.Orders[rows[row.Item]].Units[uint64(row.Item)]++
			rows[row.Item]++
		}
		all[customer] = p
	}
	return all
}

// Bad says whether the strategy failed.
func (o Outcome) Bad() bool { return verdict.Of(o.Verdict).Bad }

// Hold is the time for which one customer had the lock.
type Hold struct {
	Customer   Customer // 0 where it is not known who
	From, To   int      // entries; To is -1 while it lasts
	EndedBy    Customer // who ended it with a step, 0 where an event or time did
	EndedEvent Event    // what ended it, empty for a step or the lease
	Checked    bool     // whoever ended it had looked at the owner in a request before
	Fresh      bool     // nothing that lets a lease pass happened while it lasted
}

// Reserved is what customers have paid who reserve.
type Reserved struct {
	Each    int64            `json:"each"` // units of an order
	Paid    map[string]int64 `json:"paid"` // by customer: payments that were kept
	Revived int64            `json:"revived,omitempty"`
}

func (r *Record) decideReservations() {
	o := &r.Outcome
	purchases := o.purchases()
	for customer, p := range purchases {
		paid := o.Reserved.Paid[customer]
		p.Wants, p.Paid = nil, &paid
		purchases[customer] = p
	}
	f := count.Facts(maps.Values(purchases))
	f.Stock, f.Sold = o.Stock, int64(len(o.Orders))*o.Reserved.Each
	f.Oversold, f.Remaining = max(f.Sold-f.Stock, 0), max(f.Stock-f.Sold, 0)
	r.rule(f)
}

func (o *Outcome) causeOfReservation() verdict.Cause {
	switch {
	case o.Verdict == verdict.Oversold && o.Reserved.Revived > 0:
		return verdict.Revived
	case o.Verdict == verdict.Oversold:
		return verdict.Uncounted
	case o.Verdict == verdict.Unserved:
		return verdict.Overwritten
	}
	return verdict.Unexplained
}
