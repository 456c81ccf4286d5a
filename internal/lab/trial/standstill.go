package trial

import (
	"context"
	"errors"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// standstill is what was found when nothing was sold any more.
type standstill struct {
	locks  []explain.Lock // in Redis
	unseen error          // why Redis was not asked
	fenced bool           // the fence refuses every sale
}

var errNotAsked = errors.New("no look at Redis: --redis says where it is")

// lookAtStandstill asks Redis for the item's lock.
func (a *attack) lookAtStandstill(ctx context.Context) *standstill {
	client := a.Redis
	if a.Testbed != nil && a.Testbed.Redis() != nil {
		client = a.Testbed.Redis().Client
	}
	if client == nil {
		return &standstill{unseen: errNotAsked}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	keys, err := seen.Keys(ctx, client, lockKeys(a.item)...)
	found := &standstill{unseen: err}
	for _, key := range keys {
		found.locks = append(found.locks, explain.Lock{Key: key.Name, TTL: key.Left()})
	}
	return found
}

// endless reports whether the lock has no end that the cell could see, by its server, or belongs to a sale that
// waits for it, by the points of that sale.
func (a *attack) endless(ctx context.Context) bool {
	moved := a.progress.now().last
	if _, waitsForItself := a.feed.waitsForItself(moved); waitsForItself {
		return true
	}
	if a.Of.Lease.Kept == declared.LeaseInValue {
		return false
	}
	return a.endlessIn(ctx, a.lockState(ctx)) && a.progress.now().last.Equal(moved) // no sale has ended between the looks
}

// endlessIn is false while a sale that has taken the lock is not answered: on a slow machine, its holder is at work. What the
// shops have written of it by now is read first.
func (a *attack) endlessIn(ctx context.Context, s lockState) bool {
	looked := time.Now()
	for shop := range a.traces {
		if !a.feed.await(ctx, func() bool { return a.feed.readAt(shop).After(looked) }) {
			return false
		}
	}
	if _, atWork := a.feed.find(func(e labmode.Event) bool {
		h := a.customers.byID(e.Request)
		return e.Point == sale.Acquired && h != nil && !h.late && !h.Answered()
	}); atWork {
		return false
	}
	for _, k := range s.keys {
		if k.end.IsZero() || a.outlasts(k.end.Sub(k.now)) {
			return true
		}
	}
	return false
}

// waitsForItself finds a sale that was refused by its own lock after a time.
func (f *feed) waitsForItself(after time.Time) (labmode.Event, bool) {
	has := map[string]bool{}
	return f.find(func(e labmode.Event) bool {
		has[e.Request] = has[e.Request] || e.Point == sale.Acquired
		return has[e.Request] && e.Point == sale.Waiting && e.Time.After(after)
	})
}

// lockKeys are where Redis keeps an item's lock. What else a strategy keeps there is watched as a lock is.
func lockKeys(item audit.Run) []string {
	return append(seen.LockKeys(item.ItemID, item.State), declared.KeysOf(item.State.Keys, item.ItemID)...)
}

// waiting says what the requests wait for.
func (s standstill) waiting() *verdict.Waiting {
	w := &verdict.Waiting{}
	switch {
	case s.fenced:
		w.Fenced = true
	case s.unseen != nil:
		w.Unseen = s.unseen.Error()
	case len(s.locks) > 0:
		w.Lock = s.locks[0].Key
		if ttl := s.locks[0].TTL; ttl >= 0 {
			left := round(ttl.Seconds()*1000, 0)
			w.LeaseMS = &left
		}
	}
	return w
}
