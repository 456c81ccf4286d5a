package wirestage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/stage"
	"stocklock/internal/lab/wire"
)

// How long to wait for what.
const (
	lookAfter  = 3 * time.Millisecond   // silence after which the servers are asked whether a request waits
	pushQuiet  = 150 * time.Millisecond // silence of a process that listens to a channel: it waits for a message
	pushDelay  = 5 * time.Millisecond   // in which a message comes that was published
	lateQuiet  = 100 * time.Millisecond // silence after its last request after which a sale has ended that goes on behind its answer
	restLimit  = 15 * time.Second       // beyond which a run has failed
	betweenTry = 5 * time.Millisecond   // between looks while time passes
)

// settle waits until nobody is on the way: each customer is held at a step, has ended, or is seen to wait.
func (r *run) settle(ctx context.Context) error {
	limit := time.Now().Add(max(restLimit, r.settleLimit+time.Second))
	for {
		if err := r.drain(ctx); err != nil {
			return err
		}
		if !slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state == moving && !b.atStep() }) {
			return nil
		}
		select {
		case m := <-r.messages:
			if err := r.handle(ctx, m); err != nil {
				return err
			}
		case <-time.After(lookAfter):
			for _, b := range r.buyers {
				if b.state == moving && !b.atStep() {
					if err := r.listen(ctx, b); err != nil {
						return err
					}
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if time.Now().After(limit) {
			return fmt.Errorf("no rest: %s", r.whoWaits())
		}
	}
}

// drain takes in the messages that are there.
func (r *run) drain(ctx context.Context) error {
	for {
		select {
		case m := <-r.messages:
			if err := r.handle(ctx, m); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// listen finds out why a customer is silent.
func (r *run) listen(ctx context.Context, b *buyer) error {
	silent := time.Since(b.heard)
	switch {
	case b.flying != nil && b.flying.Server == wire.MySQL:
		waits, err := seen.ConnWaits(ctx, r.stage.on.DB, b.flying.Conn.Thread)
		if err == nil && waits {
			b.state = onRow
			r.blocked(b, "MySQL makes it wait")
			if other := r.schema().MayWaitFor(int(b.customer-'A'), r.parties()); other >= 0 {
				r.blocked(b, fmt.Sprintf("the row is held by %s's transaction", r.buyers[other].customer))
			}
		}
		return err
	case b.flying != nil:
		waits, err := r.waitsInRedis(ctx, b.flying.Conn.Local)
		if err == nil && waits {
			b.state = onRedis
			r.blocked(b, "Redis makes it wait")
		}
		return err
	case b.reply != nil:
		r.passed = r.passed || silent > lateQuiet // a lease can end while it is waited for
		if last := r.stage.probe.Last(b.reply.Outcome); silent > lateQuiet && last == b.last || silent > r.settleLimit {
			b.state = ended
		}
	case silent > pushQuiet && (b.process.Redis.Listening() || b.accepted.Load()):
		b.state = onPush
	case silent > r.settleLimit:
		return fmt.Errorf("%w for %s: %s", errSilent, r.settleLimit, r.whoWaits())
	}
	return nil
}

func (r *run) blocked(b *buyer, why string) {
	if b.flying.entry >= 0 {
		r.entries[b.flying.entry].Blocked = why
	}
}

// waitsInRedis says whether Redis has blocked a client.
func (r *run) waitsInRedis(ctx context.Context, addr string) (bool, error) {
	list, err := r.stage.on.Redis().Do(ctx, "CLIENT", "LIST").Text()
	if err != nil {
		return false, fmt.Errorf("look for who waits: %w", err)
	}
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " addr="+addr+" ") {
			continue
		}
		for field := range strings.FieldsSeq(line) {
			if flags, ok := strings.CutPrefix(field, "flags="); ok {
				return strings.Contains(flags, "b"), nil
			}
		}
	}
	return false, nil
}

// letTimePass is what happens where nobody can go on: who polls tries again, and who waits is looked at.
func (r *run) letTimePass(ctx context.Context, next stage.Next) error {
	r.passed = true
	if dead := r.owner != 0 && r.stage.dirty[r.owner-'A']; dead && r.lock.TTLMS > 0 && !r.stage.inTime { // who polls would see nothing else
		if err := r.endKey(ctx, r.main); err != nil {
			return err
		}
		return r.look(ctx, 0, "", "")
	}
	for _, o := range next.Options {
		if o.Choice.IsStep() && o.Retry {
			return r.send(ctx, r.buyer(o.Choice.Customer), true)
		}
	}
	time.Sleep(betweenTry)
	for _, b := range r.buyers {
		if b.state == onRow || b.state == onRedis {
			b.state, b.heard = moving, time.Now()
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.look(ctx, 0, "", "")
}
