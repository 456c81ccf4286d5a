package step

import (
	"context"
	"slices"
	"strings"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// heldKeys are the keys one of which exists while the lock of an item is held.
func heldKeys(items []uint64, of declared.State) (keys []string) {
	for _, item := range items {
		keys = append(keys, seen.LockKeys(item, of)...)
	}
	return keys
}

// lockKeys are all keys of the items' locks, and those that the strategy keeps besides.
func lockKeys(items []uint64, of declared.State) []string {
	keys := slices.Concat(heldKeys(items, of), keptKeys(items, of))
	for _, item := range items {
		own := redislock.Keys("", sale.Key(item))
		keys = append(keys, own.Queue, own.Waiters, own.Epoch)
	}
	return keys
}

func keptKeys(items []uint64, of declared.State) (keys []string) {
	for _, item := range items {
		keys = append(keys, declared.KeysOf(slices.Concat(of.Keys, of.RareKeys, of.Copies), item)...)
	}
	return keys
}

func (r *shopsRun) lookAtLock(ctx context.Context, _ schedule.Customer) (now schedule.State, changed bool, err error) {
	now, err = r.askLock(ctx)
	return now, now.Locked() != r.lock.Locked() || now.Lock != r.lock.Lock, err
}

// askLock asks the server of the lock itself, not a shop.
func (r *shopsRun) askLock(ctx context.Context) (schedule.State, error) {
	switch {
	case r.of.NeedsEtcd:
		return lookAtEtcd(ctx, r.slot.Etcd, r.items[0])
	case r.of.NeedsQuorum:
		return lookAtQuorum(ctx, r.slot.Quorum, r.items, r.of.State)
	}
	return lookAtRedis(ctx, r.slot.Redis(), r.items, r.of.State)
}

// lookAtQuorum wants the same value in a majority: of the servers, or of the keys where the strategy names
// several.
func lookAtQuorum(ctx context.Context, servers []*testserver.Redis, items []uint64, of declared.State) (schedule.State, error) {
	all := max(len(of.Locks), 1)
	if all == 1 {
		all = len(servers)
	}
	found := map[string]int{}
	for _, server := range servers {
		look, err := lookAtRedis(ctx, server, items, of)
		if err != nil {
			return schedule.State{}, err
		}
		if !look.Locked() {
			continue
		}
		if found[look.Lock]++; found[look.Lock] > all/2 {
			return schedule.State{Lock: look.Lock}, nil
		}
	}
	return noLock, nil
}

// lookAtEtcd finds the holder as etcd's lock does: whose key under the lock's name was created first.
func lookAtEtcd(ctx context.Context, server *testserver.Etcd, item uint64) (schedule.State, error) {
	key, err := server.FirstUnder(ctx, sale.Key(item)+"/")
	if err != nil || key == "" {
		return noLock, err
	}
	return schedule.State{Lock: key}, nil
}

func lookAtRedis(ctx context.Context, server *testserver.Redis, items []uint64, besides declared.State) (schedule.State, error) {
	locks := heldKeys(items, besides)
	found, err := seen.Keys(ctx, server.Client, slices.Concat(locks, keptKeys(items, besides))...)
	if err != nil {
		return schedule.State{}, err
	}
	look := noLock
	var kept []string
	for _, key := range found {
		switch {
		case !slices.Contains(locks, key.Name):
			kept = append(kept, key.Name+" "+key.Text)
			if left := max(key.Left(), 1); !key.End.IsZero() && (look.Ends == 0 || left < look.Ends) {
				look.Ends = left
			}
		case !look.Locked():
			look.Lock, look.TTLMS = key.Text, -1
			if left := key.Left(); left >= 0 {
				look.TTLMS = left.Milliseconds()
			}
		case len(items) > 1:
			look.Lock += ", " + key.Text
		}
	}
	look.Kept = strings.Join(kept, ", ")
	return look, nil
}

func writesOneOf(touches []schedule.Touch, keys []string) bool {
	return slices.ContainsFunc(touches, func(t schedule.Touch) bool {
		key, isKey := t.Key()
		return isKey && t.Does&schedule.Writes != 0 && slices.Contains(keys, key)
	})
}
