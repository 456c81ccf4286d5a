package trial

import (
	"context"
	"sync"
	"sync/atomic"

	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// lastUnit makes certain that the last unit is sold twice where nothing prevents it and chance would decide.
// A sum loses no sale, so it is wrong only for sales that read it before its last units were sold, and go by it
// after. The very first sale of the cell is one: it is held at its read until another one is sold out. It is
// safe for concurrent use.
type lastUnit struct {
	attack *attack
	sent   atomic.Bool   // somebody sends that sale
	at     chan struct{} // closed when it is held, or over
	here   func()        // closes at
	letGo  func()
}

// newLastUnit returns nil where nothing is held.
func newLastUnit(a *attack) *lastUnit {
	of := a.Of.Under(a.o.Circumstances)
	if !of.State.Sum || of.Properties.Has.Includes(declared.Exclusive) || len(a.traces) == 0 {
		return nil
	}
	l := &lastUnit{attack: a, at: make(chan struct{})}
	l.here = sync.OnceFunc(func() { close(l.at) })
	l.letGo = sync.OnceFunc(func() {
		a.background.Go(func() { a.play.release(a.ctx, a.customers.first()) })
	})
	a.customers.late, a.customers.notFirst = true, 0
	return l
}

// wait lets one customer send the first sale, and the others wait until that has read.
func (l *lastUnit) wait(ctx context.Context) {
	if l == nil || l.sent.CompareAndSwap(false, true) {
		return
	}
	select {
	case <-l.at:
	case <-ctx.Done():
	}
}

func (l *lastUnit) fault() labmode.Fault {
	return labmode.Fault{Point: sale.Read, Action: labmode.Hold, For: holdAtMost}
}

// answered is called with each answer.
func (l *lastUnit) answered(h *Customer) {
	switch {
	case l == nil:
	case h.late:
		l.here()
	case h.Outcome == load.SoldOut:
		l.letGo()
	}
}
