package stage

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/redisconn"
	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// noLock is what a look at a lock that is free finds. A look fills in the lock and what is kept in Redis.
var noLock = schedule.State{TTLMS: -2}

// heldKeys are the keys one of which exists while the lock of an item is held: those that the strategy
// names, or else the plain one of the recipes and that of package redislock.
func heldKeys(items []uint64, of declared.State) (keys []string) {
	for _, item := range items {
		if len(of.Locks) > 0 {
			keys = append(keys, declared.KeysOf(of.Locks, item)...)
			continue
		}
		key := sale.Key(item)
		keys = append(keys, key, redislock.Keys("", key).Lock)
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

// lookAtLock asks the server of the lock itself, not a shop.
func (r *run) lookAtLock(ctx context.Context) (schedule.State, error) {
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
	var commands []redisconn.Command
	for _, key := range heldKeys(items, besides) {
		commands = append(commands, redisconn.Command{"GET", key}, redisconn.Command{"HGETALL", key}, redisconn.Command{"PTTL", key})
	}
	replies, _ := server.Client.Pipeline(ctx, commands...) // one of GET and HGETALL is of the wrong type
	var kept []string
	for _, key := range keptKeys(items, besides) {
		switch value := server.Client.Do(ctx, "GET", key); {
		case value.Err != nil:
			return schedule.State{}, fmt.Errorf("look at %s: %w", key, value.Err)
		case value.Value != nil:
			kept = append(kept, fmt.Sprint(key, " ", value.Value))
		}
	}
	look := schedule.State{TTLMS: -2, Kept: strings.Join(kept, ", ")}
	for each := range slices.Chunk(replies, 3) {
		ttl, err := each[2].Int64()
		if err != nil {
			return schedule.State{}, fmt.Errorf("look at the lock: %w", err)
		}
		if ttl == -2 {
			continue
		}
		value, _ := each[0].Text()
		if fields, _ := each[1].Value.(map[any]any); len(fields) > 0 {
			var owners []string
			for owner, holds := range fields {
				owners = append(owners, fmt.Sprint(owner, " ", holds))
			}
			slices.Sort(owners)
			value = strings.Join(owners, ", ")
		}
		if !utf8.ValidString(value) {
			value = hex.EncodeToString([]byte(value))
		}
		if look.Locked() { // of several items
			look.Lock += ", " + value
			continue
		}
		if look.Lock, look.TTLMS = value, ttl; len(items) == 1 {
			break
		}
	}
	return look, nil
}

// WaitsInMySQL says whether the statement of a connection waits for a lock. What InnoDB prints is of this
// moment. Its table of transactions is not: the server keeps it for a tenth of a second.
func WaitsInMySQL(ctx context.Context, db *sql.DB, conn uint64) (bool, error) {
	var kind, name, status string
	if err := db.QueryRowContext(ctx, "SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
		return false, fmt.Errorf("look for who waits: %w", err)
	}
	_, status, _ = strings.Cut(status, "LIST OF TRANSACTIONS FOR EACH SESSION") // before it stands the last deadlock
	thread := fmt.Sprintf(" thread id %d, ", conn)
	for transaction := range strings.SplitSeq(status, "---TRANSACTION") {
		if strings.Contains(transaction, thread) {
			if strings.Contains(transaction, "\nLOCK WAIT ") {
				return true, nil
			}
			break
		}
	}
	err := db.QueryRowContext(ctx, "SELECT COALESCE(state, '') FROM information_schema.processlist WHERE id = ?", conn).Scan(&status)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return err == nil && (status == "User lock" || strings.HasPrefix(status, "Waiting for ")), err
}

// ConnGone waits until MySQL has noticed the end of a connection, and freed what it held. It does not notice
// that while the connection's statement waits for a lock.
func ConnGone(ctx context.Context, db *sql.DB, conn uint64) error {
	for range 500 {
		var n int
		err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", conn).Scan(&n)
		if err != nil || n == 0 {
			return err
		}
		if waits, err := WaitsInMySQL(ctx, db, conn); waits || err != nil {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errors.New("MySQL still has a connection that has ended")
}
