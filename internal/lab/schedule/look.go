package schedule

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
	"stocklock/internal/strategy"
)

// lockLook is what Redis has of an item's lock.
type lockLook struct {
	value string // of the key, or the fields of a hash; empty for no key
	ttl   int64  // in milliseconds; -1 for no expiry, -2 for no key
	kept  string // what else the strategy keeps there
}

func (l lockLook) present() bool { return l.ttl != -2 }

// lockKeys are the keys that locks use for an item: the plain one of the recipes first, then those
// of package redislock.
// Then come those that the strategy keeps besides.
func lockKeys(item uint64, besides strategy.State) []string {
	key := strategy.Key(item)
	own := redislock.Keys("", key)
	return append([]string{key, own.Lock, own.Queue, own.Waiters, own.Epoch}, keptKeys(item, besides)...)
}

func keptKeys(item uint64, of strategy.State) []string {
	return append(strategy.KeysOf(of.Keys, item), strategy.KeysOf(of.RareKeys, item)...)
}

// lookAtLock asks Redis itself, not a shop.
func lookAtLock(ctx context.Context, client *redis.Client, item uint64, besides strategy.State) (lockLook, error) {
	keys := lockKeys(item, besides)[:2]
	texts, hashes, ttls := make([]*redis.StringCmd, 2), make([]*redis.MapStringStringCmd, 2), make([]*redis.Cmd, 2)
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			texts[i], hashes[i], ttls[i] = p.Get(ctx, key), p.HGetAll(ctx, key), p.Do(ctx, "PTTL", key)
		}
		return nil
	})
	var kept []string
	for _, key := range keptKeys(item, besides) {
		value, getErr := client.Get(ctx, key).Result()
		if getErr == nil {
			kept = append(kept, key+" "+value)
		} else if !errors.Is(getErr, redis.Nil) {
			return lockLook{}, fmt.Errorf("look at %s: %w", key, getErr)
		}
	}
	look := lockLook{ttl: -2, kept: strings.Join(kept, ", ")}
	var fromRedis redis.Error // one of GET and HGETALL is of the wrong type
	if err != nil && !errors.As(err, &fromRedis) {
		return lockLook{}, fmt.Errorf("look at the lock: %w", err)
	}
	for i := range keys {
		ttl, err := ttls[i].Int64()
		if err != nil {
			return lockLook{}, fmt.Errorf("look at the lock: %w", err)
		}
		if ttl == -2 {
			continue
		}
		value := texts[i].Val()
		if fields := hashes[i].Val(); len(fields) > 0 {
			owners := slices.Sorted(maps.Keys(fields))
			for j, owner := range owners {
				owners[j] = owner + " " + fields[owner]
			}
			value = strings.Join(owners, ", ")
		}
		look.value, look.ttl = value, ttl
		break
	}
	return look, nil
}

// lookAtRow asks MySQL for the item and its orders.
func lookAtRow(ctx context.Context, db *sql.DB, item uint64, besides strategy.State, customerOf func(request string) string) (State, error) {
	var s State
	if besides.Remaining != "" {
		if err := db.QueryRowContext(ctx, besides.Remaining, item).Scan(&s.Elsewhere); err != nil {
			return s, fmt.Errorf("look at the strategy's own rows: %w", err)
		}
	}
	row := db.QueryRowContext(ctx, "SELECT stock, fence FROM items WHERE id = ?", item)
	if err := row.Scan(&s.Stock, &s.Fence); err != nil {
		return s, fmt.Errorf("look at the item: %w", err)
	}
	rows, err := db.QueryContext(ctx, "SELECT id, request_id, stock_read, stock_written FROM orders WHERE item_id = ? ORDER BY id", item)
	if err != nil {
		return s, fmt.Errorf("look at the orders: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var o Order
		var request string
		if err := rows.Scan(&o.ID, &request, &o.Read, &o.Written); err != nil {
			return s, fmt.Errorf("look at the orders: %w", err)
		}
		o.Customer = customerOf(request)
		s.Orders = append(s.Orders, o)
	}
	return s, rows.Err()
}

// What a server says of NOWAIT: MySQL 3572, MariaDB 1205.
const (
	mysqlNoWait   = 3572
	mariaDBNoWait = 1205
)

// rowIsHeld asks MySQL whether a transaction holds the item's row.
func rowIsHeld(ctx context.Context, db *sql.DB, item uint64) (bool, error) {
	var one int
	err := db.QueryRowContext(ctx, "SELECT 1 FROM items WHERE id = ? FOR UPDATE NOWAIT", item).Scan(&one)
	var fromServer *mysql.MySQLError
	if errors.As(err, &fromServer) && (fromServer.Number == mysqlNoWait || fromServer.Number == mariaDBNoWait) {
		return true, nil
	}
	return false, err
}
