package trial

import (
	"context"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// beforeCommits are the first requests of a cell whose strategy releases a lock before it commits. All are
// sent before the first sale of the play, and one after the other gets the lock. The first that has
// released it is held there until another has read, or waits in MySQL. Without that, chance would decide
// whether anybody reads in that moment.
const beforeCommits = 3

// holdsBeforeCommit reports whether this is one of those requests.
func (a *attack) holdsBeforeCommit(h *Customer) bool {
	return h.number < beforeCommits && a.seesBeforeCommit()
}

func (a *attack) seesBeforeCommit() bool {
	return a.Of.ReleasesFirst && a.sees()
}

// beforeCommit waits for what is to be seen before the commit of the sale that is held.
func (p *play) beforeCommit(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, playPatience)
	defer cancel()
	a := p.attack
	var was lockState
	return p.await(ctx, BeforeCommit, func() (Seen, bool) {
		held := p.committing()
		if held == nil {
			return Seen{}, false
		}
		if was.transactions == nil {
			was = a.fullState(ctx)
		}
		releasing, _ := a.feed.find(func(e labmode.Event) bool { return e.Request == held.id && e.Point == sale.Releasing })
		if e, ok := a.feed.find(func(e labmode.Event) bool {
			return e.Point == sale.Read && e.Request != held.id && e.Time.After(releasing.Time)
		}); ok {
			return Seen{How: Entered, Request: e.Request}, true
		}
		return Seen{How: KeptOut}, p.waitsInMySQL(ctx, was)
	})
}

// committing is the sale that is held before its commit, nil before there is one.
func (p *play) committing() *Customer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.committer
}
