// Package step plays sales request by request on real servers, in a chosen order.
//
// One engine makes a run: it holds each request of each customer until a [Chooser] lets it go, waits until all
// are at rest, makes events happen, looks at both servers, and returns a record. Where the requests come from is
// a source, of which there are two. [Shops] are the shops of this repository, which report their requests from
// inside. A [Service] is any described service: its requests are held at the wire, by proxies. Package explore
// searches with either.
//
// A customer of a run is a list of requests to its process, sent one after the other. It is one purchase where
// the plan says nothing: see [Plan.Requests]. A request that a timer of the shop would make, such as a sweep, is
// the list of a customer of its own.
//
// The engine is step.go (the plan, and what may be chosen), run.go (a run, and what a source is), customer.go,
// options.go, send.go, settle.go, happen.go, look.go, slow.go (a machine that is too slow for leases) and
// conclude.go. Files of the two sources are named shops and service.
//
// # Decisions
//
// A schedule is played by holding requests, not by points. Points serve faults under load. A
// schedule needs every request to a server, and some strategies announce no point between two
// requests. In our shop, a hook of go-redis and a wrapped connector hold requests. The
// scheduler controls them over a connection to each shop (internal/shop/labmode/stepping.go).
//
// Each schedule is played from its beginning, on an item of its own. To go back one step, nothing
// has to be saved and restored. A schedule can be replayed from its text.
//
// The source inside our shop stays, although the wire shows the same requests. The wire lacks
// several customers in one process, 48 runs at a time, locks in etcd, in a quorum and in one
// process, leases of ten seconds, cut and lag, and the exact touches of an event.
package step

import (
	"context"
	"errors"
	"slices"

	"stocklock/internal/lab/schedule"
)

// Plan is what is played, and what may be chosen in it.
type Plan struct {
	Strategy  string
	Customers int
	// Baskets has each customer buy two items in one sale, the second customer in the opposite order. There
	// are enough units for all. A way that only sells baskets always does.
	Baskets bool
	// OneShop has all customers buy at one shop. Otherwise each has a shop of its own.
	OneShop bool
	// Reservations has each customer but the last reserve and pay, and the last one sweep. Runs with them
	// are played one at a time: a sweep ends what is overdue of all.
	Reservations bool
	// Requests are those of a customer who does something else than to buy one unit, in their order.
	Requests map[schedule.Customer][]Request
	// Events may happen, MaxEvents of them in one run. With InARow they follow each other, with no
	// step in between.
	Events    []schedule.Event
	MaxEvents int
	InARow    bool
	// LocalClock says that the strategy compares times of its process's clock: then it matters
	// whether a customer came before a lease passed, or after.
	LocalClock bool
	// Everything offers also what is pointless: it is for schedules that were written by hand, and
	// for showing that what is left out loses nothing.
	Everything bool
	// Early ends a lease at once where nothing but Redis goes by it. What is found so is to be played again, in the
	// lease's own time.
	Early bool
	// Observe looks at both servers after each step, and keeps what it saw.
	Observe bool
}

// Request is one request of a customer to its process. Send returns how it was answered, and whether the next one
// of the list follows.
type Request struct {
	Name string
	Send func(ctx context.Context, to Address) (answer string, more bool)
}

// Address is what a [Request] is about.
type Address struct {
	URL, Staff, Strategy string
	Items                []uint64
	ID                   string // of the customer: its header X-Request-ID has it held
}

// Option is one way in which a run can go on.
type Option struct {
	Choice  schedule.Choice
	Touches []schedule.Touch // what it touches if it is chosen now
	// Retry says that the step repeats a try of a polled lock although nothing has happened since
	// that could let it succeed.
	Retry bool
	// RowHeld says that the step would wait for what another customer's connection holds in MySQL, and
	// do nothing before that is free.
	RowHeld bool
}

// free says whether the step can go on and is worth it.
func (o Option) free() bool { return o.Choice.IsStep() && !o.Retry && !o.RowHeld }

// Next is the state of a run in which something has to be chosen.
type Next struct {
	Options []Option // the customers' steps from A on, then the events
	// Past has everything that was chosen until now.
	Past schedule.Schedule
	// Requests counts what each customer has sent. Tries of a lock that somebody holds do not count
	// while time passes.
	Requests map[schedule.Customer]int
	// Why says of a choice that is not among the options why it cannot be.
	Why func(schedule.Choice) string

	entries int // of the record until now
	oneShop bool
}

// Chooser returns the index of the option with which a run goes on, or [LetTimePass].
type Chooser func(Next) (int, error)

// LetTimePass in place of an option waits until somebody can go on.
const LetTimePass = -1

// ByDefault returns the index of the step that runs where a schedule says nothing: customer by
// customer to the end. Where time has to pass first, it returns LetTimePass.
func (n Next) ByDefault() int { return slices.IndexFunc(n.Options, Option.free) }

// Arriving says whether a customer has just come: an exploration has that only before a lease
// passes.
func (n Next) Arriving() bool { return !n.oneShop && arriving(n.Past) }

func arriving(past schedule.Schedule) bool {
	return len(past) > 0 && past[len(past)-1].Event == schedule.Arrive
}

// Index returns the index of the option with a choice, -1 for none.
func (n Next) Index(c schedule.Choice) int {
	return slices.IndexFunc(n.Options, func(o Option) bool { return o.Choice == c })
}

// Switches says whether an option is a step of another customer although the last one could go on.
func (n Next) Switches(o Option) bool {
	if !o.Choice.IsStep() {
		return false
	}
	for _, before := range slices.Backward(n.Past) {
		if before.IsStep() {
			return before.Customer != o.Choice.Customer && slices.ContainsFunc(n.Options, func(other Option) bool {
				return other.free() && other.Choice.Customer == before.Customer
			})
		}
	}
	return false
}

// cannotError is an order of steps that cannot be.
type cannotError string

func (e cannotError) Error() string { return string(e) }

func (cannotError) Is(target error) bool { return target == ErrCannot }

// ErrCannot is in the chain of an error about a schedule whose order of steps cannot be.
var ErrCannot = errors.New("the schedule cannot be played")

// Follow plays a schedule, and after it customer by customer to the end.
func Follow(s schedule.Schedule) Chooser {
	left := s
	return func(next Next) (int, error) {
		i := next.ByDefault()
		if len(left) == 0 {
			return i, nil
		}
		if listed := next.Index(left[0]); listed >= 0 {
			left = left[1:]
			return listed, nil
		}
		if i == LetTimePass {
			return i, nil // before the listed step is there
		}
		return 0, cannotError(next.Why(left[0]))
	}
}

// Following returns the plan of a run that follows a schedule, and looks at everything.
func (p Plan) Following(order schedule.Schedule) Plan {
	p.Events, p.MaxEvents, p.Everything, p.Observe = order.Events(), len(order), true, true
	return p
}

// Position is how things stand after the last entry of a schedule, and what can be done next.
type Position struct {
	schedule.Record
	Options []schedule.Choice
	Ended   bool // nothing can be chosen any more: the record has the outcome
}
