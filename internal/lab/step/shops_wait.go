package step

import (
	"context"
	"strings"
	"time"

	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
)

// holdsAt notes whether a customer is held at what begins a try of its lock.
func (r *shopsRun) holdsAt(s *shopper, h *held, report heldReport) {
	s.refused = false
	s.keptOut = s.keptOut && h.Server != labmode.MySQLServer
	begin := h.name
	if words := strings.Fields(h.Text); len(words) > 1 && words[0] == "EVALSHA" {
		begin += " " + words[1]
	} else if h.Server == labmode.MySQLServer {
		begin = h.Text
	}
	if s.begins == "" {
		s.begins = begin
	}
	repeats := s.asked[h.Text]
	s.asked[h.Text] = true
	s.retry = false
	again := len(s.tx) == 0 && begin == s.begins && // a transaction that reads the same twice does not begin again
		(report.Phase == "" || h.Server == labmode.MySQLServer)
	if again && !r.plan.Baskets || r.plan.Baskets && h.Server != labmode.MySQLServer {
		s.retry = s.counts[h.name] > 0 && (!r.plan.Baskets || repeats) // each lock has its tries
		s.tryFrom, s.tryUntil = s.tryUntil, r.version
	}
}

// pointless says whether the step repeats a try although nobody else has changed the lock, and no
// lease has passed, since the try before was made. Made, and not sent: a try has its time in it.
func (r *shopsRun) pointless(b *buyer) bool {
	s := r.at(b)
	if !s.retry {
		return false
	}
	for by, version := range r.changed {
		if by != b.customer && version > s.tryFrom {
			return false
		}
	}
	if len(b.queue) > 0 && b.queue[0].Server != labmode.MySQLServer && len(r.of.State.Keys) == 0 {
		return true
	}
	for _, version := range r.wrote { // a try can also follow what its own sale has written
		if version > s.tryFrom {
			return false
		}
	}
	return true
}

// answeredBusy checks whether a customer gave up because the machine was slow. Who waits for others does so
// for half of the time at least.
func (r *shopsRun) answeredBusy(s *shopper, answer string) {
	if took := r.machineTime() - s.arrived; took > r.slot.wait/2 {
		r.doubt("%s was answered with %s, and of the %s that it waits the machine took %s", s.customer, answer, r.slot.wait, took.Round(time.Millisecond))
	}
}

// acquires says whether the request of a customer that is under way is a lock's acquisition as a whole,
// which can wait for the lock.
func (r *shopsRun) acquires(b *buyer) bool { return r.whole(b.flying, labmode.AcquireStep) }

// whole says whether a request is an acquisition, or a release, of a lock whose requests cannot be seen.
func (r *shopsRun) whole(h *held, step string) bool {
	return r.unseen && h != nil && h.Server != labmode.MySQLServer && h.name == step
}

// listen looks at what a silent customer can wait for.
func (r *shopsRun) listen(ctx context.Context, b *buyer, s *silence) error {
	at := r.at(b)
	s.long, s.dropped, s.cut, s.refused = s.quiet > r.lease, s.since > max(r.lease, dropAfter), at.cut, at.refused
	if s.locking = s.since > lockAfter && (b.flying == nil && !s.answered || r.acquires(b)); !s.locking {
		return nil
	}
	look, err := r.askLock(ctx)
	if err == nil && look.Locked() {
		owner := r.ownerOf(look, r.lock)
		// A lock whose requests are not held does not say at once whose it is. A customer who was not kept out is slow.
		s.theirs = at.keptOut && owner != b.customer && (owner != 0 || !r.unseen)
		if s.lock = words.Of("blocked.lock"); owner != 0 {
			s.lock = words.Of("blocked.lock", "by", owner.String())
		}
	}
	return err
}

func (r *shopsRun) wakes(b *buyer) bool {
	return !r.lock.Locked() || r.owner == b.customer || r.owner == 0 && r.unseen
}

// atRest cancels the wait of a customer who was only slow: it asks again for a lock that nobody has
// changed, as one does that polls.
func (r *shopsRun) atRest(context.Context) (bool, error) {
	for _, b := range r.buyers {
		if entry := r.lastOf(b); b.atStep() && b.queue[0].Server != labmode.MySQLServer && entry >= 0 && r.pointless(b) {
			r.entries[entry].Blocked = words.Text{}
		}
	}
	return false, nil
}

// passTime has what is silent fail where nobody polls.
func (r *shopsRun) passTime(ctx context.Context, polled bool) (bool, error) {
	for _, s := range r.customers {
		if polled && s.cut {
			s.cut = false
			s.shop.Reconnect()
			if s.state == cutOff {
				s.state, s.heard = moving, time.Now()
			}
			return true, r.settle(ctx)
		}
	}
	return false, nil
}
