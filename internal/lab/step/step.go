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
//
// # Decisions at the wire
//
// Counts have a process of their own. A request that counts and a request of a sale look alike at the wire. So one more
// process is asked, at which nobody buys and nothing is held. It lives when a customer's process is killed. Its price: a
// worker in it takes jobs of a shared queue, unseen. Then the search says that the same schedule goes more than one way.
//
// A lease that was ended early is no finding. A search ends the key at once. Each finding is played again, and the lease ends
// in its own time. So a process that goes by its own clock is not blamed for a time that this clock has not shown. A key that
// rises again while its sale is held is renewed: it ends only while its process is stopped, or its renewals are withheld. Then
// the other customer comes afterwards: a customer who polls meanwhile does so by a clock, and no two runs would go alike.
//
// Redis is broken as a server, where the sale has something in it. A failover, a restart and an eviction are those of the rig.
// The proxies lead to the new primary, and all connections end. A fault at a place where the run has named no key that Redis
// has would show nothing: it counts as not met.
//
// A request of a process whose customer has not come belongs to another run, and is passed on. A service may try a release
// again later. A request that comes when its customer has been answered is a step of that sale. A command that Redis blocks,
// such as BLPOP, and a statement that waits for a row, are seen to wait: others go on meanwhile.
//
// Whatever command gave a key of the sale its end, that end is played. It is called the lock where the sale makes the key only
// if there is none, or deletes it. Elsewhere, as for a cache or a session, it is called a key that ends. A key that lives for
// more than 45 seconds and is no lock always ends early. While a lock is renewed, another key ends only where it is a lock that
// is not.
//
// Locks end where the server says so. A second BEGIN, DDL, LOCK TABLES, SET autocommit=1, XA COMMIT and a reset of the
// connection are steps. So is a SET with a SELECT in it. A text of several statements is one step.
//
// A lock is what a sale makes exclusively or deletes. The first sales of a stage show which keys are deleted, whatever command
// made them. A command's name says too little: INCR, ZADD and a script take locks, and SET fills caches.
//
// A run that does not go as before is reported, not repeated, unless the machine was too slow for its lease. A place that is
// not reached a second time counts among those that decide nothing. Whether a request waits is asked of InnoDB and of Redis'
// list of clients. A process that is silent with nothing under way is waited for, up to settle.
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
	// MaxSteps is how many a run may have, 0 for 5000 or, where leases are long, more. The sales of one with more do not
	// end: see [ErrEndless].
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
