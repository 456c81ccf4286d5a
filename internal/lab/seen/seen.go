// Package seen has what can be seen of sales from outside the shops: who waits in MySQL, and what a Redis has of a lock.
package seen

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stocklock/internal/redisconn"
	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

// Until asks at once, and then so often, until the answer is true, an error comes or ctx ends. It returns the last answer.
func Until(ctx context.Context, every time.Duration, is func() (bool, error)) (bool, error) {
	for {
		if so, err := is(); so || err != nil {
			return so, err
		}
		if Pause(ctx, every) != nil {
			return false, nil
		}
	}
}

// Quiet is how much of a silence was looked at. Where a look is late, its process was not run, and what it looks at may not
// have been. The zero value has no look.
type Quiet struct {
	since, last time.Time
	looked      time.Duration
}

// Until takes in a look that is made now, of one each so often, and returns what was seen of the silence since something was
// heard.
func (q *Quiet) Until(heard, now time.Time, every time.Duration) time.Duration {
	if q.since != heard {
		*q = Quiet{since: heard, last: heard}
	}
	q.looked += min(now.Sub(q.last), 2*every)
	q.last = now
	return q.looked
}

// Pause waits for a time, or until ctx ends, whose cause it returns then.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// LockKeys are where Redis keeps the lock of an item: plain locks and redislock have one key each, and a strategy
// may name others.
func LockKeys(item uint64, of declared.State) []string {
	key := sale.Key(item)
	return append([]string{key, redislock.Keys("", key).Lock}, declared.KeysOf(of.Locks, item)...)
}

// Key is what a Redis has of a key at a moment.
type Key struct {
	Name string
	Dump string    // what it holds, as DUMP has it
	Text string    // the same for people: a string, or the fields of a hash
	End  time.Time // by the server's clock; zero for never
	Now  time.Time // by the server's clock
}

// Left is how long the key lasts, negative without an end.
func (k Key) Left() time.Duration {
	if k.End.IsZero() {
		return -1
	}
	return max(k.End.Sub(k.Now), 0)
}

// Keys returns those of some keys that there are, in their order, all as of one moment.
func Keys(ctx context.Context, client redisconn.Client, names ...string) ([]Key, error) {
	commands := []redisconn.Command{{"TIME"}}
	for _, name := range names {
		commands = append(commands, redisconn.Command{"PEXPIRETIME", name}, redisconn.Command{"DUMP", name}, redisconn.Command{"GET", name}, redisconn.Command{"HGETALL", name})
	}
	replies, _ := client.Transaction(ctx, commands...) // one of GET and HGETALL is of the wrong type
	at, err := replies[0].Int64s()
	if err != nil {
		return nil, fmt.Errorf("look into Redis: %w", err)
	}
	var found []Key
	for i, name := range names {
		end, dump, text, fields := replies[1+4*i], replies[2+4*i], replies[3+4*i], replies[4+4*i]
		ms, err := end.Int64()
		if err != nil {
			return nil, fmt.Errorf("look at %s in Redis: %w", name, err)
		}
		if ms == -2 { // there is no such key
			continue
		}
		k := Key{Name: name, Now: time.Unix(at[0], at[1]*1000)}
		if ms >= 0 {
			k.End = time.UnixMilli(ms)
		}
		k.Dump, _ = dump.Value.(string)
		k.Text, _ = text.Text()
		if owners, _ := fields.Value.(map[any]any); len(owners) > 0 {
			var all []string
			for owner, holds := range owners {
				all = append(all, fmt.Sprint(owner, " ", holds))
			}
			slices.Sort(all)
			k.Text = strings.Join(all, ", ")
		}
		if !utf8.ValidString(k.Text) {
			k.Text = hex.EncodeToString([]byte(k.Text))
		}
		found = append(found, k)
	}
	return found, nil
}
