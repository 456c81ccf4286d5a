// Package trace marks the moments of a sale.
//
// A sale passes named points on its way: acquiring, acquired, read, write,
// written, releasing, released. Strategies announce them with [At]. Whoever
// wants to know (the lab, to write the moment down or to strike a fault there)
// puts a [Hook] into the sale's context. Without a hook a point costs one
// context look-up and does nothing.
package sale

import (
	"context"
	"log/slog"
)

// Point names a moment of a sale.
type Point string

const (
	// Acquiring is the earliest moment at which Redis has the lock: where taking
	// it needs two commands, between them.
	Acquiring Point = "acquiring"
	// Acquired is when the guard is complete and the section begins.
	Acquired Point = "acquired"
	// Read is right after the stock was read.
	Read Point = "read"
	// Write is after the last look at the lock and right before the UPDATE is sent.
	Write Point = "write"
	// Written is right after the order was committed.
	Written Point = "written"
	// Releasing is before the step that gives the lock back: where a release
	// checks first and deletes second, between the two.
	Releasing Point = "releasing"
	// Released is after the lock was given back.
	Released Point = "released"
)

// Points lists all points in the order in which a sale passes them.
var Points = []Point{Acquiring, Acquired, Read, Write, Written, Releasing, Released}

// Hook is told of every point that a sale passes, in the sale's own goroutine:
// while it runs, the sale waits. The facts are what is known at that point, such
// as the fencing token or the stock that was read.
type Hook func(ctx context.Context, p Point, facts []slog.Attr)

type hookKey struct{}

// WithHook returns a context whose sale tells h of its points.
func WithHook(ctx context.Context, h Hook) context.Context {
	return context.WithValue(ctx, hookKey{}, h)
}

// At tells the context's hook, if there is one, that the sale has come to p.
func At(ctx context.Context, p Point, facts ...slog.Attr) {
	if h, ok := ctx.Value(hookKey{}).(Hook); ok {
		h(ctx, p, facts)
	}
}
