// Package sale names the points of a sale.
//
// A sale passes named points on its way: acquiring, acquired, read, write, written, releasing,
// released, answered. Strategies announce them with [At], and hooks in the sale's context are
// called there: for metrics and spans, and in the lab for the record of the sale and for faults.
// Without a hook a point costs one context look-up and does nothing.
package sale

import (
	"context"
	"log/slog"
)

// Point names a moment of a sale.
type Point string

const (
	// Acquiring is the earliest moment at which Redis has the lock: between the two commands, where
	// taking it needs two.
	Acquiring Point = "acquiring"
	// Acquired is when the guard is complete and the section begins.
	Acquired Point = "acquired"
	// Read is right after the stock was read.
	Read Point = "read"
	// Write is after the last look at the lock and right before the UPDATE is sent.
	Write Point = "write"
	// Written is right after the order was committed.
	Written Point = "written"
	// Releasing is before the step that frees the lock: between the two, where a release checks
	// first and deletes second.
	Releasing Point = "releasing"
	// Released is after the lock was freed.
	Released Point = "released"
	// Answered is after the answer that says sold was flushed to the client. The shop passes it in
	// the lab alone.
	Answered Point = "answered"
)

// Points lists all points in the order in which a sale passes them.
var Points = []Point{Acquiring, Acquired, Read, Write, Written, Releasing, Released, Answered}

// Hook is called at every point that a sale passes, in the sale's own goroutine: the sale waits for
// it. The facts are what is known at that point, such as the fencing token or the stock that was
// read.
type Hook func(ctx context.Context, p Point, facts []slog.Attr)

type hookKey struct{}

// WithHook returns a context whose sale calls h at its points, after the hooks that ctx has
// already.
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

// At calls the context's hooks: the sale has come to p.
func At(ctx context.Context, p Point, facts ...slog.Attr) {
	if h, ok := ctx.Value(hookKey{}).(Hook); ok {
		h(ctx, p, facts)
	}
}
