// Package sale names the points of a sale.
//
// A sale passes these points: waiting, acquiring, acquired, read, write, written, releasing,
// released, answered. It passes waiting only if it is refused. Strategies announce the points with
// [At], which calls the hooks in the sale's context. Hooks serve metrics and spans. In the lab, they
// also record the sale and inject faults. Without a hook, a point costs one look-up in the context
// and does nothing.
package sale

import (
	"context"
	"log/slog"
	"slices"
)

// Point names a moment of a sale.
type Point string

const (
	// Waiting is the first refusal of a sale: the lock is taken, and the sale is about to wait or to
	// be rejected as busy. A sale passes it at most once for each acquisition, and one that reserves
	// units once more when it confirms them. Without a lock, the refusal is a lost conflict with another
	// transaction, a pool without a free connection, a batch that is under way, units that others have
	// reserved, or a counter that another process is loading. Inside MySQL a sale waits without passing
	// it.
	Waiting Point = "waiting"
	// Acquiring is the earliest moment at which Redis has the lock. If a lock needs two commands,
	// it lies between them.
	Acquiring Point = "acquiring"
	// Acquired is when the guard is complete and the section begins.
	Acquired Point = "acquired"
	// Read is right after the stock was read.
	Read Point = "read"
	// Write is between the last look at the lock and the UPDATE.
	Write Point = "write"
	// Written is right after the order was committed.
	Written Point = "written"
	// Releasing is before the step that frees the lock. If a release first checks and then deletes,
	// it lies between the two.
	Releasing Point = "releasing"
	// Released is after the lock was freed.
	Released Point = "released"
	// Answered is after the answer "sold" was flushed to the client. The shop passes it only in the
	// lab.
	Answered Point = "answered"
)

// Points lists all points in the order in which a sale under a lock passes them.
var Points = []Point{Waiting, Acquiring, Acquired, Read, Write, Written, Releasing, Released, Answered}

// Taken is right after the units of a line of several were taken, where more has to be done before the
// order stands: another line, or the order itself. Sales of one item do not pass it.
const Taken Point = "taken"

// The points of a page view, which is no sale. Only the views of strategies that keep a copy of the item's
// row pass them.
const (
	// Viewed is right after a page view has read the item's row, because there is no copy.
	Viewed Point = "viewed"
	// Stored is right after it has stored what it read as the copy.
	Stored Point = "stored"
)

// ViewPoints lists the points of a page view, in their order.
var ViewPoints = []Point{Viewed, Stored}

// Facts of points.
const (
	// From, at read, says where the stock was read from, where that is not a row that has it.
	From      = "from"
	FromSum   = "sum"   // over rows, none of which is written
	FromCache = "cache" // a copy of the item's row
	// LockKey, at acquired, is the key of the lock, where that is not the item's.
	LockKey = "key"
)

// Hook is called at every point of a sale, in the sale's own goroutine. The sale waits for it. The
// facts are known at that point, such as the fencing token or the stock that was read.
type Hook func(ctx context.Context, p Point, facts []slog.Attr)

type hookKey struct{}

// WithHook returns a context whose sale calls h at its points, after the hooks of ctx.
func WithHook(ctx context.Context, h Hook) context.Context {
	if earlier, ok := ctx.Value(hookKey{}).(Hook); ok {
		later := h
		h = func(ctx context.Context, p Point, facts []slog.Attr) {
			earlier(ctx, p, facts)
			later(ctx, p, facts)
		}
	}
	return context.WithValue(ctx, hookKey{}, h)
}

// WithFact returns a context whose hooks learn one more fact at a point.
func WithFact(ctx context.Context, at Point, fact slog.Attr) context.Context {
	h, ok := ctx.Value(hookKey{}).(Hook)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, hookKey{}, Hook(func(ctx context.Context, p Point, facts []slog.Attr) {
		if p == at {
			facts = append(slices.Clip(facts), fact)
		}
		h(ctx, p, facts)
	}))
}

// At calls the context's hooks. It says that the sale has reached p.
func At(ctx context.Context, p Point, facts ...slog.Attr) {
	if h, ok := ctx.Value(hookKey{}).(Hook); ok {
		h(ctx, p, facts)
	}
}
