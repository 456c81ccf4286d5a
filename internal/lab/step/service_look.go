package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
	"stocklock/internal/lab/words"
)

// key is what a key of Redis holds, and the milliseconds that are left to it: -1 for no end.
type key struct {
	value string // the beginning of it
	sum   string // of all of it
	ttl   int64
	waits int64  // elements of a list, and messages of a stream that no consumer has acknowledged
	last  string // the number of the last message that a stream was given
}

// lookAtAll is a script that returns all keys with what they hold. A stream without a group keeps what was read: all its
// messages count as waiting.
const lookAtAll = `
local found = {}
for _, k in ipairs(redis.call('KEYS', '*')) do
	local kind, held, scores, waits, last = redis.call('TYPE', k)['ok'], '', '', 0, ''
	if kind == 'string' then held = redis.call('GET', k)
	elseif kind == 'hash' then
		local all, sorted = redis.call('HGETALL', k), {}
		for i = 1, #all, 2 do table.insert(sorted, all[i] .. ' ' .. all[i + 1]) end
		table.sort(sorted) -- Redis may give them in another order when nothing has changed
		held = table.concat(sorted, ' ')
	elseif kind == 'list' then held, waits = table.concat(redis.call('LRANGE', k, 0, -1), ' '), redis.call('LLEN', k)
	elseif kind == 'set' then
		local sorted = redis.call('SMEMBERS', k)
		table.sort(sorted)
		held = table.concat(sorted, ' ')
	elseif kind == 'zset' then
		held = table.concat(redis.call('ZRANGE', k, 0, 20), ' ')
		scores = table.concat(redis.call('ZRANGE', k, 0, -1, 'WITHSCORES'), ' ')
	elseif kind == 'stream' then
		local about = redis.call('XINFO', 'STREAM', k)
		for i = 1, #about, 2 do if about[i] == 'last-generated-id' then last = about[i + 1] end end
		local groups = redis.call('XINFO', 'GROUPS', k)
		if #groups == 0 then waits = redis.call('XLEN', k) end
		for _, fields in ipairs(groups) do
			local of = {}
			for i = 1, #fields, 2 do of[fields[i]] = fields[i + 1] end
			waits = waits + of['pending'] + #redis.call('XRANGE', k, '(' .. of['last-delivered-id'], '+', 'COUNT', 100)
		end
	end
	table.insert(found, {k, string.sub(held, 1, 200), redis.sha1hex(held .. scores .. last), redis.call('PTTL', k), waits, last})
end
return found`

// keysNow are those of the database that the service uses.
func (r *serviceRun) keysNow(ctx context.Context) (map[string]key, error) {
	all := map[string]key{}
	found, err := r.service.on.InDatabase(ctx, "EVAL", lookAtAll, 0).Slice()
	if err != nil {
		return nil, fmt.Errorf("look into Redis: %w", err)
	}
	for _, each := range found {
		row := each.([]any)
		all[row[0].(string)] = key{row[1].(string), row[2].(string), row[3].(int64), row[4].(int64), row[5].(string)}
	}
	return all, nil
}

// ownAmong are the keys that the run has named, and that were not there before it.
func (r *serviceRun) ownAmong(all map[string]key) (own []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if r.isOwn(name, all[name]) {
			own = append(own, name)
		}
	}
	return own
}

// isOwn says whether the sales have made or changed a key. A script, or a function, can make one that it does not name.
func (r *serviceRun) isOwn(name string, now key) bool {
	if was, there := r.before[name]; there && was.sum == now.sum {
		return false
	}
	return slices.ContainsFunc(r.entries, func(e schedule.Entry) bool {
		return e.Server == wire.Redis && (strings.Contains(e.Sent, wire.Word(name)) || strings.HasPrefix(e.Sent, "EVALSHA ") || strings.HasPrefix(e.Sent, "FCALL "))
	})
}

// queued says whether a list has more than before the run, or a stream has new messages and not all are acknowledged: an
// order can still come of it. The messages that waited there before may have been written meanwhile.
func (r *serviceRun) queued(all map[string]key) bool {
	for name, now := range all {
		if was := r.before[name]; now.waits > was.waits || now.waits > 0 && now.last != was.last {
			return true
		}
	}
	return false
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
func (r *serviceRun) learn(ctx context.Context, all map[string]key, expired string) error {
	var gone []string
	for name, was := range r.seen {
		if _, there := all[name]; !there && r.isOwn(name, was) {
			gone = append(gone, name)
			if err := r.service.on.InDatabase(ctx, "EXISTS", name).Err; err != nil { // Redis counts an expired key when it is asked for
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
			r.service.deletes[service.Shape(name)] = true
		} else {
			r.service.outlasted = true
		}
	}
	for name, now := range all {
		if now.ttl > 0 && r.isOwn(name, now) {
			r.service.ends[service.Shape(name)] = true
		}
	}
	r.seenAt, r.expiredBefore = time.Now(), expired
	return nil
}

// expired is how many keys have expired in Redis since it started.
func (r *serviceRun) expired(ctx context.Context) (string, error) {
	stats, err := r.service.on.Redis().Do(ctx, "INFO", "stats").Info()
	return stats["expired_keys"], err
}

// lockAmong notes the keys by which sales keep others out, and who has made each: a command has made it where there was
// none, or sales delete it. It returns the one that is called the lock, empty where there is none.
func (r *serviceRun) lockAmong(all map[string]key, sent string, by schedule.Customer) (main string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, now := range all {
		if _, was := r.before[name]; was || !r.isOwn(name, now) {
			continue
		}
		_, known := r.made[name]
		if !known && !(takes(sent) && names(sent, name)) && !r.service.deletes[service.Shape(name)] {
			continue
		}
		if _, had := r.seen[name]; !had {
			r.made[name] = by
		} else if !known {
			r.made[name] = 0
		}
		if lock := r.service.lock; lock != "" && lock != service.Shape(name) {
			continue
		}
		if main == "" || endsBefore(now, all[main]) || now.ttl == all[main].ttl && name < main {
			main = name
		}
	}
	return main
}

// leases are the keys that end by which a customer keeps others out, or any customer for 0, what ends first at first. Those
// that live for long, and that sales leave, are only among them where all do: such as who asks again is known by.
func (r *serviceRun) leases(of schedule.Customer) (all []string) {
	for name, by := range r.made {
		if name == r.main {
			by = r.owner
		}
		if r.seen[name].ttl > 0 && (of == 0 || by == of) {
			all = append(all, name)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(r.seen[a].ttl, r.seen[b].ttl), cmp.Compare(a, b)) })
	left := func(name string) bool {
		return name != r.main && r.seen[name].ttl > longestEnd.Milliseconds() && !r.service.deletes[service.Shape(name)]
	}
	if some := slices.DeleteFunc(slices.Clone(all), left); len(some) > 0 {
		return some
	}
	return all
}

// firstEnd is the key of the sales that ends first by itself, empty for none. While a lock is renewed, nothing else ends but a
// lock that was seen not to be: another key may be renewed, too.
func (r *serviceRun) firstEnd(all map[string]key) (first string) {
	_, held := all[r.main]
	held = held && r.service.renews
	for name, now := range all {
		renewed, known := r.service.locks[service.Shape(name)]
		if now.ttl > 0 && (first == "" || now.ttl < all[first].ttl) && r.isOwn(name, now) && !(held && (renewed || !known)) {
			first = name
		}
	}
	if first == "" && held {
		return r.main
	}
	return first
}

// lookAtLock asks Redis for the lock, once a sale has asked it for anything.
func (r *serviceRun) lookAtLock(ctx context.Context, by schedule.Customer) (now schedule.State, changed bool, err error) {
	if !slices.ContainsFunc(r.entries, func(e schedule.Entry) bool { return e.Server == wire.Redis }) {
		return r.lock, false, nil
	}
	expired := ""
	if r.service.learning {
		if expired, err = r.expired(ctx); err != nil {
			return r.lock, false, err
		}
	}
	all, err := r.keysNow(ctx)
	if err == nil && r.service.learning {
		err = r.learn(ctx, all, expired)
	}
	if err == nil {
		err = r.drain(ctx)
	}
	if err != nil {
		return r.lock, false, err
	}
	own := r.ownAmong(all)
	r.passRenewals(own)
	sent := ""
	if last := len(r.entries) - 1; by != 0 && r.entries[last].Choice.Customer == by {
		sent = r.entries[last].Sent
	}
	if lock := r.lockAmong(all, sent, by); r.main == "" {
		r.main = lock
	}
	r.seen = all
	sums := map[string]string{}
	for _, name := range own {
		sums[name] = all[name].sum
	}
	r.stirred, r.own = !maps.Equal(sums, r.own), sums
	r.ending = r.firstEnd(all)
	r.service.queues = r.service.queues || r.queued(all)
	about := r.plan.Everything && len(r.plan.Events) > 0 || slices.ContainsFunc(r.plan.Events, schedule.Event.Forgets)
	r.keeps = about && len(own) > 0
	if r.main == "" {
		return r.lock, false, nil
	}
	now = noLock
	if k, ok := all[r.main]; ok {
		now = schedule.State{Lock: k.value, TTLMS: max(k.ttl, -1)}
	}
	before, until := r.lock, r.until
	r.until = time.Now().Add(time.Duration(now.TTLMS) * time.Millisecond)
	counted := before.Locked() && now.Locked() && strings.HasPrefix(sent, "INCR") // by one who does not get it
	if now.Locked() == before.Locked() && now.Lock == before.Lock || counted {
		return now, false, nil
	}
	if before.TTLMS > 0 && !r.ended && !r.renews && time.Now().After(until) {
		r.spoil("the lease of the lock has ended, and no time was to pass")
		return now, true, r.slow
	}
	return now, true, nil
}

// watchRenewals watches locks, whose holder is held, until something renews each, or it ends. It notes in renewed, by their
// form, which are, and nothing of those whose renewals may wait behind what is held. A lease that is longer than longestEnd is
// watched for longestWatch.
func (r *serviceRun) watchRenewals(ctx context.Context, names []string, renewed map[string]bool) error {
	r.ended = true
	left := map[string]time.Duration{} // of those of which nothing is known yet
	for _, name := range names {
		now, err := r.ttl(ctx, name)
		if err != nil {
			return err
		}
		if renewed[service.Shape(name)] = false; now >= 0 {
			left[name] = now
		}
	}
	var last, gap time.Duration
	for began := time.Now(); len(left) > 0; {
		r.passRenewals(names)        // one can have come before the request of its sale, while neither was known
		elapsed := time.Since(began) // before Redis is asked: this process can be late afterwards
		gap, last = max(gap, elapsed-last), elapsed
		for name, first := range left {
			now, err := r.ttl(ctx, name)
			rises := now >= 0 && now+elapsed > first+renewalMargin
			switch {
			case err != nil:
				return err
			case !rises && r.renewalsWait():
				delete(renewed, service.Shape(name))
				delete(left, name)
			case now < 0 && gap > first/slowGap: // the service can have been as late as this process
				return slowError{why: "the lease has ended, and was not watched closely"}
			case now < 0 || rises || elapsed > watchFor(first):
				renewed[service.Shape(name)] = rises
				delete(left, name)
			}
		}
		select {
		case m := <-r.messages:
			if err := r.handle(ctx, m); err != nil {
				return err
			}
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// watchFor is how long a lease is watched: what renews a third before its end is seen, unless it is long.
func watchFor(lease time.Duration) time.Duration {
	if lease > longestEnd {
		return longestWatch
	}
	return lease + time.Second
}

// renewalsWait says whether something waits behind a command that is held, on the same connection: a renewal may be among it.
func (r *serviceRun) renewalsWait() bool {
	return slices.ContainsFunc(r.buyers, func(b *buyer) bool {
		return len(b.queue) > 0 && b.queue[0].id.(*wire.Exchange).Conn.Behind.Load()
	})
}

const (
	longestWatch  = 16 * time.Second
	renewalMargin = 100 * time.Millisecond // all renewals together have added more than that
	lookEvery     = 25 * time.Millisecond
	slowGap       = 5 // a gap of this part of the lease between two looks: a renewal can have been as late
)

// ttl is what is left to a key: negative for one without an end, or that is gone.
func (r *serviceRun) ttl(ctx context.Context, name string) (time.Duration, error) {
	ms, err := r.service.on.InDatabase(ctx, "PTTL", name).Int64()
	return time.Duration(ms) * time.Millisecond, err
}

var errRenewed = errors.New("the lease was renewed, and did not end")

const (
	// longestEnd is the longest life of a key that is waited for. No sale goes by a clock of its own beyond it, but under a
	// lock. A request of a customer who is stopped meanwhile lasts longer.
	longestEnd = 45 * time.Second
	// LongestSearched is that of one whose end is searched in its own time: each schedule takes one.
	LongestSearched = 3 * time.Second
)

// awaits says whether the end of a key, to which so much is left, is waited for where leases end in their own time. Beside a
// renewed lock they do so in each run: a key that sales leave ends at once there, where it is long.
func (r *serviceRun) awaits(name string, left time.Duration) bool {
	if name == r.main {
		return true
	}
	beside := r.service.renews && !r.service.deletes[service.Shape(name)]
	return left <= longestEnd && (!beside || left <= LongestSearched)
}

// endKey has a key end as its time would end it: at once, or in its own time.
func (r *serviceRun) endKey(ctx context.Context, name string, early bool) error {
	r.ended = true
	left, err := r.ttl(ctx, name)
	if err != nil || left < 0 {
		return err
	}
	inTime := !early && r.awaits(name, left)
	switch {
	case inTime && left > longestEnd:
		return fmt.Errorf("a lease of %s is too long to be awaited: give %s a shorter one", left.Round(time.Second), wire.Word(name))
	case !inTime:
		if err := r.service.on.InDatabase(ctx, "PEXPIRE", name, 1).Err; err != nil {
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
		if err := seen.Pause(ctx, min(now+time.Millisecond, lookEvery)); err != nil {
			return err
		}
		left = min(left, now)
	}
	return errRenewed
}

// outlast waits for the end of what the sales have left that ends by itself. A key that is no lock ends at once.
func (r *serviceRun) outlast(ctx context.Context) (note words.Text, err error) {
	all, err := r.keysNow(ctx)
	note = words.Of("note.free")
	early := r.plan.Early && (slices.Contains(r.service.dirty, true) || !r.service.renews) // a renewed one lives on where nobody stops that
	for _, name := range r.ownAmong(all) {
		if all[name].ttl < 0 {
			continue
		}
		_, lock := r.made[name]
		switch err := r.endKey(ctx, name, early || !lock); {
		case errors.Is(err, errRenewed):
			note = words.Of("note.renewed")
		case err != nil:
			return note, err
		case note.Key == "note.free":
			note = words.Of("note.lease")
		}
	}
	if r.lock.TTLMS == -1 {
		note = words.Of("note.endless")
	}
	return note, err
}
