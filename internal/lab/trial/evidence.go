package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

// shopLabel is what a shop is called in reports: the same whichever testbed it is of.
func shopLabel(i int) string { return fmt.Sprintf("shop %d", i+1) }

// traceFile is the trace of a shop, from where it ended before the attack.
type traceFile struct {
	path string
	from int64
}

func (a *attack) markTraces() {
	if a.bench.Testbed == nil {
		return
	}
	for _, shop := range a.bench.Testbed.Shops {
		if shop.Trace() == "" {
			return
		}
		f := traceFile{path: shop.Trace()}
		if info, err := os.Stat(f.path); err == nil {
			f.from = info.Size()
		}
		a.traces = append(a.traces, f)
	}
}

// readTraces returns what the shops wrote during the attack.
func (a *attack) readTraces() ([]labmode.Event, error) {
	var all []labmode.Event
	for i, f := range a.traces {
		events, err := f.read()
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.Run == a.item.ID {
				e.Shop = shopLabel(i)
				all = append(all, e)
			}
		}
	}
	return all, nil
}

func (f traceFile) read() ([]labmode.Event, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(f.from, io.SeekStart); err != nil {
		return nil, err
	}
	return labmode.ReadEvents(file)
}

// wholeTestbed stands for a shop where a intervention is not done to one.
const wholeTestbed = -1

// did notes what the lab does to a shop, or once to the whole testbed, and returns
// what to call when it is over.
func (a *attack) did(what string, shop int) (over func()) {
	intervention := explain.Intervention{From: time.Now(), What: what}
	if shop != wholeTestbed {
		intervention.Shop = shopLabel(shop)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if shop == wholeTestbed && slices.ContainsFunc(a.interventions, func(d explain.Intervention) bool { return d.What == what }) {
		return func() {}
	}
	at := len(a.interventions)
	a.interventions = append(a.interventions, intervention)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.interventions[at].Until = time.Now()
	}
}

// evidence gathers what is known, when the attack is over and all is quiet.
func (a *attack) evidence(ctx context.Context) (explain.Evidence, error) {
	orders, err := a.bench.Store.ItemOrders(ctx, a.item.ItemID)
	if err != nil {
		return explain.Evidence{}, err
	}
	events, err := a.readTraces()
	if err != nil {
		return explain.Evidence{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e := explain.Evidence{
		Strategy: a.cell.Strategy.Name, Lease: a.o.Lease,
		Exclusive: a.cell.Strategy.Properties.Meets(strategy.Exclusive), Recovers: a.cell.Strategy.Properties.Meets(strategy.Recovers),
		InitialStock: a.o.Stock, Began: a.begun, Ended: a.ended, Traced: len(a.traces) > 0, Events: events,
		Changes: a.changes, Interventions: a.interventions, Orders: orders, Locks: a.locks, Stuck: a.stuck,
	}
	byRequest := map[string]int{}
	for _, h := range a.hits {
		r := explain.Request{
			ID: h.id, Shop: shopLabel(h.shop), Sent: h.sent, Outcome: string(h.outcome), Nested: h.injection.Nested, Fault: h.injection.HasFault(),
		}
		if h.sent.IsZero() {
			continue
		}
		if h.status != 0 || h.err != nil {
			r.Answered = h.sent.Add(h.latency)
		}
		byRequest[h.id] = h.shop
		e.Requests = append(e.Requests, r)
	}
	for i := range e.Orders {
		if shop, ok := byRequest[e.Orders[i].RequestID]; ok {
			e.Orders[i].Shop = shopLabel(shop)
		}
	}
	return e, nil
}

// lookAtLocks asks Redis what it has under the item's lock.
func (a *attack) lookAtLocks(ctx context.Context) ([]explain.Lock, error) {
	client := a.bench.Redis
	if a.bench.Testbed != nil && a.bench.Testbed.Redis() != nil {
		client = a.bench.Testbed.Redis().Client()
		defer client.Close()
	}
	if client == nil {
		return nil, errNotAsked
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var found []explain.Lock
	for _, key := range lockKeys(a.item.ItemID) {
		n, err := client.Exists(ctx, key).Result()
		if err != nil {
			return nil, fmt.Errorf("ask for the lock in Redis: %w", err)
		}
		if n == 0 {
			continue
		}
		ttl, err := client.PTTL(ctx, key).Result()
		if err != nil {
			return nil, fmt.Errorf("ask for the lock in Redis: %w", err)
		}
		found = append(found, explain.Lock{Key: key, TTL: ttl})
	}
	return found, nil
}

var errNotAsked = errors.New("no look at Redis: --redis says where it is")

// lockKeys are where Redis keeps an item's lock: plain locks at the key itself,
// redislock under the key's hash tag.
func lockKeys(item uint64) []string {
	key := strategy.Key(item)
	return []string{key, "{" + key + "}:lock"}
}

// describe says what everybody waits for.
func describe(locks []explain.Lock) string {
	if len(locks) == 0 {
		return "no lock in Redis: each request waits for itself, or for its own process"
	}
	l := locks[0]
	if l.TTL < 0 {
		return "lock " + l.Key + " is held with no expiry"
	}
	return fmt.Sprintf("lock %s is held for another %s", l.Key, l.TTL.Round(time.Millisecond))
}
