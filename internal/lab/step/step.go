// Package step plays sales request by request on real servers, in a chosen order.
//
// One engine makes a run: it holds each request of each customer until a chooser of package explore lets it go, waits until all
// are at rest, makes events happen, looks at both servers, and returns a record. Where the requests come from is
// a source, of which there are two. [Shops] are the shops of this repository, which report their requests from
// inside. A [Service] is any described service: its requests are held at the wire, by proxies. Package explore
// searches with either.
//
// A customer of a run is a list of requests to its process, sent one after the other. It is one purchase where
// the plan says nothing: see [Plan.Requests]. A request that a timer of the shop would make, such as a sweep, is
// the list of a customer of its own.
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
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
)

// Plan is what is played, and what may be chosen in it.
type Plan struct {
	Strategy  string
	Customers int
	// Sales are baskets in any case of a way that only sells those. Runs with reservations are played one at a time: a
	// sweep ends what is overdue of all.
	schedule.Sales
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
	// Early ends a lease at once where nothing but Redis goes by it, and at the wire wherever it can be. What is found so
	// is to be played again, in the lease's own time.
	Early bool
	// Late has the others come when the event is over. It is for the wire.
	Late bool
	// MaxSteps is how many a run may have, 0 for any number. The sales of one with more do not end: see [ErrEndless].
	MaxSteps int
	// MaxSilence is how long a sale may send nothing though nobody holds it, beside the wait for its lock. Where the next
	// try is as silent, the run ends: see [ErrSilent]. So it does where the sales send what cannot be held: see [UnheldError].
	// 0 has the bounds of the source, and does not look for that.
	MaxSilence time.Duration
	// RehearsedAlone has each shop make one sale before the run in place of two at once: none of them has waited for another.
	RehearsedAlone bool
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

// On plays the runs of a plan on shops of this repository, or on a described service.
func (p Plan) On(on interface {
	Play(ctx context.Context, p Plan, choose func() explore.Chooser) (schedule.Record, error)
}) explore.Player {
	return func(ctx context.Context, choose func() explore.Chooser) (schedule.Record, error) {
		return on.Play(ctx, p, choose)
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
	Options []schedule.Choice `json:"options"`
	Ended   bool              `json:"ended"` // nothing can be chosen any more: the record has the outcome
}
