package explain

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"stocklock/internal/sale"
)

// history is what one server announced of the lock's key. Its index makes a question about two
// sales cost no more than the events between them.
type history struct {
	server    string
	changes   []Change     // by time
	takes     []int        // changes that took the lock while it was free
	releasing [][]*section // for each deletion: the sales that were releasing just then
}

// readHistories returns those of all servers that announced something, by name.
func (c *inquiry) readHistories() []*history {
	byServer := map[string]*history{}
	for _, ch := range c.Changes {
		if byServer[ch.Server] == nil {
			byServer[ch.Server] = &history{server: ch.Server}
		}
		h := byServer[ch.Server]
		h.changes = append(h.changes, ch)
	}
	var all []*history
	for _, h := range byServer {
		slices.SortStableFunc(h.changes, func(a, b Change) int { return a.Time.Compare(b.Time) })
		h.findTakes()
		h.findReleasers(c.sections, c.late)
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *history) int { return strings.Compare(a.server, b.server) })
	return all
}

func (h *history) findTakes() {
	there := false
	for i, ch := range h.changes {
		if ch.What.Writes() && !there {
			h.takes = append(h.takes, i)
		}
		there = ch.What.Writes() || there && !ch.What.Frees()
	}
}

// findReleasers goes once through deletions and releases together.
func (h *history) findReleasers(sections []*section, late time.Duration) {
	h.releasing = make([][]*section, len(h.changes))
	var waiting, active []*section
	for _, s := range sections {
		if !s.at[sale.Releasing].IsZero() {
			waiting = append(waiting, s)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *section) int {
		return a.at[sale.Releasing].Compare(b.at[sale.Releasing])
	})
	for i, ch := range h.changes {
		if ch.What != eventDel {
			continue
		}
		for len(waiting) > 0 && !waiting[0].at[sale.Releasing].After(ch.Time) {
			active, waiting = append(active, waiting[0]), waiting[1:]
		}
		active = slices.DeleteFunc(active, func(s *section) bool { return s.sinceRelease(ch.Time) >= late })
		h.releasing[i] = slices.Clone(active)
	}
}

// sinceRelease is how long before a time the sale had released its lock, zero while it had not.
func (s *section) sinceRelease(t time.Time) time.Duration {
	released := s.at[sale.Released]
	if released.IsZero() {
		return 0
	}
	return max(t.Sub(released), 0)
}

// between finds the change that gave the older sale the lock, and the changes after it until the
// intruder had entered.
func (c *inquiry) between(h *history, older, intruder *section) (taken time.Time, from, to int) {
	entered := older.enter()
	to = h.firstAt(intruder.enter().Add(c.late))
	takes := h.takes[:sort.SearchInts(h.takes, to)]
	next := sort.Search(len(takes), func(i int) bool { return h.changes[takes[i]].Time.After(entered) })
	if len(takes) == 0 {
		return entered, 0, to
	}
	next = max(next, 1) // the first one at least
	at := takes[next-1]
	for _, i := range takes[next:] {
		if h.changes[i].Time.Sub(entered) > c.late/4 {
			break
		}
		if !h.changes[i-1].Time.After(entered) && c.nobodyElseTook(older, h.changes[i].Time) {
			at = i // it was read late: the lock was free before, and nobody else got it just then
		}
	}
	return h.changes[at].Time, at + 1, to
}

// firstAt is the first change at a time or after it.
func (h *history) firstAt(t time.Time) int {
	return sort.Search(len(h.changes), func(i int) bool { return !h.changes[i].Time.Before(t) })
}

// nobodyElseTook says whether no other sale is known to have got the lock around a time.
func (c *inquiry) nobodyElseTook(holder *section, around time.Time) bool {
	from, to := around.Add(-clockTolerance/4), around.Add(clockTolerance/2)
	first := sort.Search(len(c.byTook), func(i int) bool { return c.byTook[i].took().After(from) })
	for _, s := range c.byTook[first:] {
		if !s.took().Before(to) {
			break
		}
		if s != holder {
			return false
		}
	}
	return true
}

// The servers that have the lock where there is no quorum.
const (
	Primary = "redis"
	Replica = "replica"
)

// QuorumServer names the i-th of n servers of a quorum, from 0.
func QuorumServer(i, n int) string { return fmt.Sprintf("redis %d of %d", i+1, n) }

// ShopName names the i-th shop of a testbed, from 0.
func ShopName(i int) string { return fmt.Sprintf("shop %d", i+1) }

// Change is one change of a lock's key, as Redis itself announced it.
type Change struct {
	Time   time.Time // when the announcement was read: a little after the change
	Server string    // which Redis, such as [Primary] or "redis 3 of 5"
	Key    string
	What   RedisEvent
}

// RedisEvent is Redis's name of a keyspace event, such as "set" or "incrby", or [Gone].
type RedisEvent string

// The events that do something other than write a value.
const (
	eventSet     RedisEvent = "set" // SET, and GETSET: replaces whatever the key had
	eventExpire  RedisEvent = "expire"
	eventPersist RedisEvent = "persist"
	eventDel     RedisEvent = "del"
	eventExpired RedisEvent = "expired"
	eventEvicted RedisEvent = "evicted"
	eventRenamed RedisEvent = "rename_from"
	eventMoved   RedisEvent = "move_from"
	Gone         RedisEvent = "gone" // the server closed its connections: it died, and what it had is lost
)

// Frees says whether the key is no longer there after the event.
func (e RedisEvent) Frees() bool {
	return slices.Contains([]RedisEvent{eventDel, eventExpired, eventEvicted, eventRenamed, eventMoved, Gone}, e)
}

// Writes says whether the key is there after the event, with a value that the event gave it. Any
// event that is not known to do something else does.
func (e RedisEvent) Writes() bool { return !e.Frees() && e != eventExpire && e != eventPersist }
