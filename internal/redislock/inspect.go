package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Inspection is the state of a lock in Redis at one moment.
type Inspection struct {
	Holder  Process       // zero if nobody holds it
	Token   int64         // the first of the holder's turn: passes inside the process raise it, and Redis does not see them
	Left    time.Duration // of the lease
	Waiters []Process     // in the order of the queue
}

// Process is one Locker that holds or waits.
type Process struct {
	ID      string        // its Locker's
	Label   string        // its Options.Label
	Waited  time.Duration // by the waiter whose turn is next; zero for a holder
	Alive   bool          // its heartbeat has not expired; true for a holder
	Attempt uint64
}

var inspectScript = newScript(4, "take", "common", "inspect")

// Inspect returns the holder of the lock on key and its waiters, as Redis knows them. It changes
// nothing.
func (l *Locker) Inspect(ctx context.Context, key string) (Inspection, error) {
	cmd := l.server.command(inspectScript, newLock(l.opts.Prefix+tagged(key)), 0)
	l.server.send(ctx, cmd)
	if err := cmd.Err(); err != nil {
		raise(err)
		return Inspection{}, fmt.Errorf("redislock: inspect %q: %w", key, err)
	}
	fields, _ := cmd.Val().([]any)
	i, err := parseInspection(fields)
	if err != nil {
		return Inspection{}, fmt.Errorf("redislock: inspect %q: %w in %v", key, err, fields)
	}
	return i, nil
}

// ForceRelease takes the lock on key from its holder, whoever that is, and returns what was there before. It is for
// operators: the holder may still work. It learns of the loss by its next renewal, within a third of its lease or ten
// seconds, and its context ends with [ErrTaken]. The next waiter gets the lock at once.
func (l *Locker) ForceRelease(ctx context.Context, key string) (Inspection, error) {
	i, err := l.Inspect(ctx, key)
	if err != nil || i.Holder.ID == "" {
		return i, err
	}
	holder := server{client: l.server.client, id: i.Holder.ID}
	if _, err = holder.do(ctx, cancelScript, newLock(l.opts.Prefix+tagged(key)), i.Holder.Attempt, l.opts.Lease.Milliseconds()); err != nil {
		err = failed(ErrNotReleased, "force the release of", key, err)
	}
	return i, err
}

func parseInspection(fields []any) (i Inspection, err error) {
	if len(fields) != 4 {
		return i, fmt.Errorf("%d fields", len(fields))
	}
	now, err := strconv.ParseInt(fmt.Sprint(fields[3]), 10, 64)
	if err != nil {
		return i, err
	}
	if value := fmt.Sprint(fields[0]); value != "" {
		i.Holder.Alive = true
		var epoch int64
		if _, err := fmt.Sscan(value, &i.Holder.ID, &i.Holder.Attempt, &epoch); err != nil {
			return i, err
		}
		ttl, _ := fields[1].(int64)
		i.Holder.Label, i.Token, i.Left = labelOf(i.Holder.ID), epoch<<tokenBits, time.Duration(max(ttl, 0))*time.Millisecond
	}
	waiting, _ := fields[2].([]any)
	for ; len(waiting) >= 3; waiting = waiting[3:] {
		p := Process{ID: fmt.Sprint(waiting[0])}
		p.Label = labelOf(p.ID)
		record := strings.Split(fmt.Sprint(waiting[1]), ":")
		if len(record) == 4 {
			p.Attempt, _ = strconv.ParseUint(record[0], 10, 64)
			heartbeat, _ := strconv.ParseInt(record[1], 10, 64)
			lease, _ := strconv.ParseInt(record[2], 10, 64)
			p.Alive = heartbeat+lease*1000 >= now
		}
		came, err := strconv.ParseFloat(fmt.Sprint(waiting[2]), 64)
		if err != nil {
			return i, err
		}
		p.Waited = time.Duration(max(now-int64(came), 0)) * time.Microsecond
		i.Waiters = append(i.Waiters, p)
	}
	return i, nil
}

// labelOf is the label in a Locker's id.
func labelOf(id string) string {
	if end := strings.LastIndexByte(id, '~'); end >= 0 {
		return id[:end]
	}
	return ""
}

// Scripts has the names of the scripts by their SHA-1, as SLOWLOG and MONITOR show them, without that of [Locker.Inspect].
func Scripts() map[string]string {
	names := map[string]string{}
	for _, s := range []*script{acquireScript, releaseScript, renewScript, heartbeatScript, cancelScript} {
		names[s.sha.(string)] = s.name
	}
	return names
}
