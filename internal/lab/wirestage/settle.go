package wirestage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/lab/wire"
)

// How long to wait for what.
const (
	lookAfter  = 3 * time.Millisecond   // silence after which the servers are asked whether a request waits
	pushQuiet  = 150 * time.Millisecond // silence of a process that listens to a channel: it waits for a message
	pushDelay  = 5 * time.Millisecond   // in which a message comes that was published
	lateQuiet  = 100 * time.Millisecond // silence after which a sale has ended that goes on behind its answer
	restLimit  = 15 * time.Second       // beyond which a run has failed
	betweenTry = 5 * time.Millisecond   // between looks while time passes
)

// settle waits until nobody is on the way: each customer is held at a step, has ended, or is seen to wait.
func (r *run) settle(ctx context.Context) error {
	limit := time.Now().Add(max(restLimit, r.settleLimit+time.Second))
	for {
		select {
		case m := <-r.messages:
			if err := r.handle(ctx, m); err != nil {
				return err
			}
			continue
		default:
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

// listen finds out why a customer is silent.
func (r *run) listen(ctx context.Context, b *buyer) error {
	silent := time.Since(b.heard)
	switch {
	case b.flying != nil && b.flying.Server == wire.MySQL:
		waits, err := stage.WaitsInMySQL(ctx, r.stage.on.DB, b.flying.Conn.Thread)
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
		if silent > lateQuiet {
			b.state = ended
		}
	case silent > pushQuiet && b.process.Redis.Listening():
		b.state = onPush
	case silent > r.settleLimit:
		return fmt.Errorf("%w for %s: %s", errSilent, r.settleLimit, r.whoWaits())
	}
	return nil
}

func (r *run) blocked(b *buyer, why string) {
	if b.entry >= 0 {
		r.entries[b.entry].Blocked = why
	}
}

// waitsInRedis says whether Redis has blocked a client.
func (r *run) waitsInRedis(ctx context.Context, addr string) (bool, error) {
	list, err := r.stage.on.Redis.ClientList(ctx).Result()
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

// handle takes in a message.
func (r *run) handle(ctx context.Context, m any) error {
	switch m := m.(type) {
	case *held:
		b := r.buyers[m.Process]
		b.heard = time.Now()
		b.queue = append(b.queue, m)
		if b.state != onRow && b.state != onRedis {
			b.state = moving
		}
	case answered:
		r.answered(r.buyers[m.Process], m.Exchange)
	case replied:
		b := r.buyer(m.customer)
		b.reply, b.heard = &m.reply, time.Now()
		if b.state = moving; !r.stage.probe.AfterAnswer && b.flying == nil && len(b.queue) == 0 {
			b.state = ended
		}
	case pushed:
		if m.process < len(r.buyers) && r.buyers[m.process].state == onPush {
			b := r.buyers[m.process]
			b.state, b.heard = moving, time.Now()
		}
	case closed:
		if m.conn.Process >= len(r.buyers) {
			return nil
		}
		delete(r.buyers[m.conn.Process].tx, m.conn)
		r.buyers[m.conn.Process].heard = time.Now()
		if m.inTx {
			return stage.ConnGone(ctx, r.stage.on.DB, m.conn.Thread)
		}
	}
	return nil
}

// answered notes what a server has answered, and what the connection holds now.
func (r *run) answered(b *buyer, x *wire.Exchange) {
	b.heard = time.Now()
	if b.flying == nil || b.flying.Exchange != x {
		return
	}
	h := b.flying
	b.flying = nil
	if b.state != ended {
		b.state = moving
	}
	if b.entry >= 0 {
		r.entries[b.entry].Answer = x.Answer
	}
	if b.entry >= 0 && r.entries[b.entry].Note == "" && r.lost(b) {
		r.entries[b.entry].Note = schedule.AnswerLost
	}
	request := b.request(h)
	writes := slices.ContainsFunc(r.schema().Touches(request), func(t schedule.Touch) bool { return t.Does&schedule.Writes != 0 })
	b.tries = append(b.tries, try{what: poll(x.Text), nothing: !x.Matched || !writes, failed: !x.Matched && !x.Failed})
	if x.Server == wire.MySQL {
		r.answeredByMySQL(b, x)
	}
	if b.reply != nil && !r.stage.probe.AfterAnswer && len(b.queue) == 0 {
		b.state = ended
	}
}

// lost says whether the answer to the step under way was to be lost.
func (r *run) lost(b *buyer) bool {
	for _, c := range slices.Backward(r.chosen) {
		if c.Customer == b.customer {
			i := slices.Index(r.chosen, c)
			return i > 0 && r.chosen[i-1] == schedule.Choice{Customer: b.customer, Event: schedule.Lose}
		}
	}
	return false
}

// answeredByMySQL notes what a connection holds after an answer.
func (r *run) answeredByMySQL(b *buyer, x *wire.Exchange) {
	statement := schedule.Statement{Text: x.Text, Matched: x.Matched}
	switch {
	case x.Name == "commit" || x.Name == "rollback" && x.Text == "ROLLBACK", strings.Contains(x.Answer, "Error 1213"):
		delete(b.tx, x.Conn)
	case strings.Contains(x.Text, "_LOCK(") && strings.Contains(x.Text, "GET_LOCK("):
		if strings.HasSuffix(x.Answer, "=1") {
			b.named = append(b.named, statement)
		}
	case strings.Contains(x.Text, "_LOCK("):
		freed := r.schema().Touches(schedule.Request{Server: x.Server, Text: x.Text})
		b.named = slices.DeleteFunc(b.named, func(taken schedule.Statement) bool {
			return schedule.Dependent(freed, r.schema().Locks([]schedule.Statement{taken})) != ""
		})
	case x.Tx:
		b.tx[x.Conn] = append(b.tx[x.Conn], statement)
	}
}

// letTimePass is what happens where nobody can go on: who polls tries again, and who waits is looked at.
func (r *run) letTimePass(ctx context.Context, next stage.Next) error {
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
