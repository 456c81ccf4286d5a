package wirestage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
	"stocklock/internal/redisconn"
)

// noLock is what a look at a lock that is free finds.
var noLock = schedule.State{TTLMS: -2}

// key is what a key of Redis holds, and the milliseconds that are left to it: -1 for no end.
type key struct {
	value string
	ttl   int64
}

// lookAtAll is a script that returns all keys with what they hold.
const lookAtAll = `
local found = {}
for _, k in ipairs(redis.call('KEYS', '*')) do
	local kind, held = redis.call('TYPE', k)['ok'], ''
	if kind == 'string' then held = redis.call('GET', k)
	elseif kind == 'hash' then held = table.concat(redis.call('HGETALL', k), ' ')
	elseif kind == 'list' then held = table.concat(redis.call('LRANGE', k, 0, 20), ' ')
	elseif kind == 'set' then held = table.concat(redis.call('SMEMBERS', k), ' ')
	elseif kind == 'zset' then held = table.concat(redis.call('ZRANGE', k, 0, 20), ' ') end
	table.insert(found, {k, string.sub(held, 1, 200), redis.call('PTTL', k)})
end
return found`

// keys are those of the database that the service uses.
func (r *run) keys(ctx context.Context) (map[string]key, error) {
	all := map[string]key{}
	found, err := r.inDatabase(ctx, "EVAL", lookAtAll, 0).Slice()
	if err != nil {
		return nil, fmt.Errorf("look into Redis: %w", err)
	}
	for _, each := range found {
		row := each.([]any)
		all[row[0].(string)] = key{row[1].(string), row[2].(int64)}
	}
	return all, nil
}

// inDatabase sends a command to the database that the service uses.
func (r *run) inDatabase(ctx context.Context, command ...any) redisconn.Reply {
	return r.stage.on.InDatabase(ctx, command...)
}

// ownKeys are the keys that the run has named, and that were not there before it.
func (r *run) ownKeys(ctx context.Context) (own []string, err error) {
	all, err := r.keys(ctx)
	for name, now := range all {
		if r.isOwn(name, now) {
			own = append(own, name)
		}
	}
	slices.Sort(own)
	return own, err
}

// isOwn says whether the sales have made or changed a key. A script, or a function, can make one that it does not name.
func (r *run) isOwn(name string, now key) bool {
	if was, there := r.before[name]; there && was.value == now.value {
		return false
	}
	return slices.ContainsFunc(r.entries, func(e schedule.Entry) bool {
		return e.Server == wire.Redis && (strings.Contains(e.Sent, name) || strings.HasPrefix(e.Sent, "EVALSHA ") || strings.HasPrefix(e.Sent, "FCALL "))
	})
}

// takes says whether a command makes a key only where there is none.
func takes(sent string) bool {
	words := strings.Fields(sent)
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "SETNX", "HSETNX":
		return true
	case "SET", "ZADD":
		return slices.Contains(words, "NX")
	}
	return false
}

// endsBefore says whether a key is rather the lock than another one: a lock ends first.
func endsBefore(a, b key) bool { return a.ttl > 0 && (b.ttl <= 0 || a.ttl < b.ttl) }

// learn notes which keys sales delete before they end, and which of them end. It is called in the first sales of a stage,
// with what is there now, and with how many keys had expired before that look.
func (r *run) learn(ctx context.Context, all map[string]key, expired string) error {
	var gone []string
	for name, was := range r.seen {
		if _, there := all[name]; !there && r.isOwn(name, was) {
			gone = append(gone, name)
			if err := r.inDatabase(ctx, "EXISTS", name).Err; err != nil { // Redis counts an expired key when it is asked for
				return err
			}
		}
	}
	now, err := r.expired(ctx)
	if err != nil {
		return err
	}
	elapsed := time.Since(r.seenAt).Milliseconds()
	for _, name := range gone {
		if was := r.seen[name]; now == r.expiredBefore || was.ttl < 0 || was.ttl > elapsed {
			r.stage.deletes[service.Shape(name)] = true
		} else {
			r.stage.outlasted = true
		}
	}
	for name, now := range all {
		if now.ttl > 0 && r.isOwn(name, now) {
			r.stage.ends[service.Shape(name)] = true
		}
	}
	r.seen, r.seenAt, r.expiredBefore = all, time.Now(), expired
	return nil
}

// expired is how many keys have expired in Redis since it started.
func (r *run) expired(ctx context.Context) (string, error) {
	stats, err := r.stage.on.Redis().Do(ctx, "INFO", "stats").Text()
	_, after, _ := strings.Cut(stats, "expired_keys:")
	count, _, _ := strings.Cut(after, "\r\n")
	return count, err
}

// lockAmong is the key by which a sale keeps others out, empty where there is none: a command has made it where there was
// none, or sales delete it.
func (r *run) lockAmong(all map[string]key, sent string) (main string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, now := range all {
		if _, was := r.before[name]; was || now.value == "" || !r.isOwn(name, now) {
			continue
		}
		if !(takes(sent) && strings.Contains(sent, name)) && !r.stage.deletes[service.Shape(name)] {
			continue
		}
		r.made[name] = true
		if main == "" || endsBefore(now, all[main]) || now.ttl == all[main].ttl && name < main {
			main = name
		}
	}
	return main
}

// firstEnd is the key of the sales that ends first by itself, empty for none. While a lock is renewed nothing else ends: what
// is beside it may be renewed, too.
func (r *run) firstEnd(all map[string]key) (first string) {
	if _, held := all[r.main]; held && r.stage.renews {
		return r.main
	}
	for name, now := range all {
		if now.ttl > 0 && (first == "" || now.ttl < all[first].ttl) && r.isOwn(name, now) {
			first = name
		}
	}
	return first
}

// look asks Redis for the lock, and draws the conclusions from what has changed: who took it, and who or what
// ended whose hold. By is the customer whose step came before, 0 for none.
func (r *run) look(ctx context.Context, by schedule.Customer, event schedule.Event, sent string) error {
	if !slices.ContainsFunc(r.entries, func(e schedule.Entry) bool { return e.Server == wire.Redis }) {
		return nil
	}
	expired, err := "", error(nil)
	if r.stage.learning {
		if expired, err = r.expired(ctx); err != nil {
			return err
		}
	}
	all, err := r.keys(ctx)
	if err == nil && r.stage.learning {
		err = r.learn(ctx, all, expired)
	}
	if err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.passRenewals(func(word string) bool {
		now, there := all[word]
		return there && r.isOwn(word, now)
	})
	if r.main == "" {
		r.main = r.lockAmong(all, sent)
	}
	r.ending = r.firstEnd(all)
	if r.main == "" {
		return nil
	}
	now := noLock
	if k, ok := all[r.main]; ok {
		now = schedule.State{Lock: k.value, TTLMS: max(k.ttl, -1)}
	}
	before, until := r.lock, r.until
	r.lock, r.until = now, time.Now().Add(time.Duration(now.TTLMS)*time.Millisecond)
	counted := before.Locked() && now.Locked() && strings.HasPrefix(sent, "INCR") // by one who does not get it
	if now.Locked() == before.Locked() && now.Lock == before.Lock || counted {
		return nil
	}
	if before.TTLMS > 0 && !r.passed && !r.stage.renews && time.Now().After(until) {
		return errSlow
	}
	if last := len(r.holds) - 1; last >= 0 && r.holds[last].To < 0 {
		h := &r.holds[last]
		h.To, h.EndedBy, h.EndedEvent = len(r.entries)-1, by, event
		h.Checked = by != 0 && r.lookedBefore(by)
		h.Fresh = h.Fresh && !r.chosen.Has(schedule.Wait, schedule.Pause)
	}
	if r.owner = 0; !now.Locked() {
		return nil
	}
	r.owner = by
	r.holds = append(r.holds, schedule.Hold{Customer: by, From: len(r.entries) - 1, To: -1, Fresh: true})
	return nil
}

// lookedBefore says whether a customer has read the lock before the step that it has just made.
func (r *run) lookedBefore(c schedule.Customer) bool {
	for _, e := range r.entries[:max(len(r.entries)-1, 0)] {
		if e.Choice.Customer == c && e.Server == wire.Redis && e.Sent == "GET "+r.main {
			return true
		}
	}
	return false
}

// renewed watches the lock, whose holder is held, until something renews it, or it ends. A lease that is longer than
// longestWatch is watched for that long.
func (r *run) renewed(ctx context.Context) (bool, error) {
	r.passed = true
	left := time.Duration(r.lock.TTLMS) * time.Millisecond
	var last, gap time.Duration
	for began := time.Now(); time.Since(began) < min(left+time.Second, longestWatch); {
		elapsed := time.Since(began) // before Redis is asked: this process can be late afterwards
		gap, last = max(gap, elapsed-last), elapsed
		now, err := r.ttl(ctx, r.main)
		if err != nil {
			return false, err
		}
		switch {
		case now < 0 && gap > left/slowGap: // the service can have been as late as this process
			return false, errSlow
		case now < 0:
			return false, nil
		case now+elapsed > left+renewalMargin:
			return true, nil
		}
		select {
		case m := <-r.messages:
			if err := r.handle(ctx, m); err != nil {
				return false, err
			}
			r.passRenewals(func(word string) bool { return word == r.main })
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return false, nil
}

const (
	longestWatch  = 16 * time.Second       // Redisson renews its 30 s after 10
	renewalMargin = 100 * time.Millisecond // all renewals together have added more than that
	lookEvery     = 25 * time.Millisecond
	slowGap       = 5 // a gap of this part of the lease between two looks: a renewal can have been as late
)

// ttl is what is left to a key: negative for one without an end, or that is gone.
func (r *run) ttl(ctx context.Context, name string) (time.Duration, error) {
	all, err := r.keys(ctx)
	if err != nil {
		return 0, err
	}
	if k, ok := all[name]; ok {
		return time.Duration(k.ttl) * time.Millisecond, nil
	}
	return -2 * time.Millisecond, nil
}

var errRenewed = errors.New("the lease was renewed, and did not end")

// longestEnd is the longest life of a key other than the lock that is waited for. No sale goes by a clock of its own there.
const longestEnd = time.Minute

// endKey has a key end as its time would end it: at once, or in its own time.
func (r *run) endKey(ctx context.Context, name string) error {
	r.passed = true
	left, err := r.ttl(ctx, name)
	if err != nil || left < 0 {
		return err
	}
	inTime := r.stage.inTime && (name == r.main || left <= longestEnd)
	if !inTime {
		if err := r.inDatabase(ctx, "PEXPIRE", name, 1).Err; err != nil {
			return fmt.Errorf("end the lease: %w", err)
		}
	}
	for until := time.Now().Add(left + time.Second); time.Now().Before(until); {
		now, err := r.ttl(ctx, name)
		if err != nil || now < 0 {
			return err
		}
		if inTime && now > left {
			return errRenewed
		}
		if err := pause(ctx, min(now+time.Millisecond, lookEvery)); err != nil {
			return err
		}
		left = min(left, now)
	}
	return errRenewed
}

// outlast waits for the end of a lease that outlives its sale.
func (r *run) outlast(ctx context.Context) (note string, err error) {
	if r.lock.TTLMS < 0 {
		return "the lock has no end", nil
	}
	killed := slices.Contains(r.stage.dirty, true)
	inTime := r.stage.inTime
	r.stage.inTime = inTime || r.stage.renews && !killed // a renewed one lives on where nobody stops that
	err = r.endKey(ctx, r.main)
	r.stage.inTime = inTime
	if errors.Is(err, errRenewed) {
		return "the lock was renewed on", nil
	}
	return "the lease has passed", err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
