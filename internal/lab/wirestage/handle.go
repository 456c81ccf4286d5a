package wirestage

import (
	"context"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/wire"
)

// handle takes in a message.
func (r *run) handle(ctx context.Context, m any) error {
	switch m := m.(type) {
	case *held:
		b := r.buyers[m.Process]
		if r.isDead(m.Process) {
			m.release <- false
			return nil
		}
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
		b := r.buyers[m.conn.Process]
		held := m.inTx || len(b.tx[m.conn])+len(b.named[m.conn]) > 0
		delete(b.tx, m.conn)
		delete(b.named, m.conn)
		b.heard = time.Now()
		if held {
			return seen.ConnGone(ctx, r.stage.on.DB, m.conn.Thread)
		}
	}
	return nil
}

// answered notes what a server has answered, and what the connection holds now.
func (r *run) answered(b *buyer, x *wire.Exchange) {
	b.heard = time.Now()
	h := b.landed(x)
	if h == nil {
		return
	}
	if b.state != ended {
		b.state = moving
	}
	if h.entry >= 0 {
		r.entries[h.entry].Answer = x.Answer
	}
	if h.entry >= 0 && r.entries[h.entry].Note == "" && r.lost(b) {
		r.entries[h.entry].Note = schedule.AnswerLost
	}
	request := b.request(h)
	writes := slices.ContainsFunc(r.schema().Touches(request), func(t schedule.Touch) bool { return t.Does&schedule.Writes != 0 })
	t := try{what: poll(x.Text), nothing: !x.Matched || !writes, failed: !x.Matched && !x.Failed}
	b.tries = append(b.tries, t)
	if x.Server == wire.MySQL || !t.nothing { // what the others wait for may be there now
		for _, other := range r.buyers {
			if other != b {
				other.tries = nil
			}
		}
	}
	if x.Server == wire.MySQL {
		r.answeredByMySQL(b, x)
	}
	if b.reply != nil && !r.stage.probe.AfterAnswer && b.flying == nil && len(b.queue) == 0 {
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

// answeredByMySQL notes what a connection holds after an answer, by what the server says of its transaction.
func (r *run) answeredByMySQL(b *buyer, x *wire.Exchange) {
	statement := schedule.Statement{Text: x.Text, Matched: x.Matched}
	if x.Ends {
		delete(b.tx, x.Conn)
	}
	upper := strings.ToUpper(x.Text)
	switch {
	case x.Name == "reset":
		delete(b.named, x.Conn)
	case locksTables(statement), strings.HasPrefix(upper, "UNLOCK TABLE"):
		b.named[x.Conn] = slices.DeleteFunc(b.named[x.Conn], locksTables)
		if !x.Failed && locksTables(statement) {
			b.named[x.Conn] = append(b.named[x.Conn], statement)
		}
	case strings.Contains(upper, "GET_LOCK("):
		if strings.HasSuffix(x.Answer, "=1") {
			b.named[x.Conn] = append(b.named[x.Conn], statement)
		}
	case strings.Contains(upper, "_LOCK("):
		freed := r.schema().Touches(schedule.Request{Server: x.Server, Text: x.Text})
		b.named[x.Conn] = slices.DeleteFunc(b.named[x.Conn], func(taken schedule.Statement) bool {
			return schedule.Dependent(freed, r.schema().Locks([]schedule.Statement{taken})) != ""
		})
	case x.Open && (!x.Ends || strings.Contains(x.Text, ";")):
		b.tx[x.Conn] = append(b.tx[x.Conn], statement)
	}
}

func locksTables(s schedule.Statement) bool {
	return strings.HasPrefix(strings.ToUpper(s.Text), "LOCK TABLE")
}
