package step

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
)

// send lets a customer's request go, and waits until all are at rest again. A quiet one leaves no
// entry, unless it changes the lock.
func (r *run) send(ctx context.Context, c schedule.Customer, quiet bool) error {
	b := r.buyer(c)
	if b.state == absent {
		r.come(ctx, b)
		if err := r.settle(ctx); err != nil {
			return err
		}
	}
	if b.state == ended && b.last == nil {
		return fmt.Errorf("%s was answered with %s before its first step", c, b.answer)
	}
	if !b.atStep() {
		return fmt.Errorf("%s was to send %s and is not held at it", c, b.step())
	}
	h := b.queue[0]
	if !quiet || h.Server == labmode.MySQLServer && !strings.Contains(h.Text, "GET_LOCK(") {
		r.made++
	}
	if most := cmp.Or(r.plan.MaxSteps, max(maxSteps, int(r.patience/polledEvery))); r.made > most {
		return manyError{words.Of("endless", "n", most, "sent", h.Text)}
	}
	h.entry = r.note(schedule.Entry{Choice: schedule.Choice{Customer: c, Step: b.step()}, Customer: c.String(),
		Server: h.Server, Sent: h.Text, Replica: h.replica, Tx: h.Tx})
	b.queue = b.queue[1:]
	b.counts[h.name]++
	r.sends(b, h)
	if b.flying != nil {
		b.parked = append(b.parked, b.flying)
	}
	b.flying, b.last, b.state, b.heard = h, h, moving, time.Now()
	h.lost, b.lose = b.lose, false
	h.release(h)
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.sent(ctx, b, h); err != nil {
		return err
	}
	before := r.lock
	if err := r.look(ctx, c, ""); err != nil {
		return err
	}
	if quiet && r.lock.Kept == before.Kept && r.lock.Lock == before.Lock && r.lock.Locked() == before.Locked() && !r.stirred && b.flying == nil {
		r.forgetPoll(b, h)
		return nil
	}
	if err := r.recheck(ctx); err != nil {
		return err
	}
	return r.observe(ctx, h.entry)
}

// forgetPoll removes a try that changed nothing: how often one tries while time passes depends on the
// machine.
func (r *run) forgetPoll(b *buyer, h *held) {
	r.entries = slices.Delete(r.entries, h.entry, h.entry+1)
	b.counts[h.name]--
	for _, other := range r.buyers {
		for _, under := range other.underWay() {
			if under.entry > h.entry {
				under.entry--
			}
		}
	}
}

// come sends a customer on its way.
func (r *run) come(ctx context.Context, b *buyer) {
	b.state, b.heard, b.answer = moving, time.Now(), ""
	r.arrive(ctx, b)
}

// hold takes in a request that a customer is held at.
func (r *run) hold(b *buyer, h *held) {
	b.heard = time.Now()
	b.queue = append(b.queue, h)
	if b.state != onRow && b.state != onRedis {
		b.state = moving
	}
}

type answer struct {
	text string
	// Matched says that a statement found rows, or that a command of Redis answered other than nil or 0, and
	// failed that it is an error.
	matched, failed bool
	// Ends says that the transaction that was open before has ended with it, and open that one is open now.
	ends, open bool
}

// answered takes in an answer to a request of a customer. It returns the request, nil for one that is not
// under way.
func (r *run) answered(b *buyer, id any, a answer) *held {
	b.heard = time.Now()
	h := b.landed(id)
	if h == nil {
		return nil
	}
	if b.state != ended {
		b.state = moving
	}
	r.entries[h.entry].Answer = a.text
	if h.lost {
		r.entries[h.entry].Note = schedule.AnswerLost
	}
	if h.Server == labmode.MySQLServer {
		r.answeredByMySQL(b, h, a)
	}
	r.endIfDone(b)
	return h
}

func (r *run) replied(b *buyer, answer string) {
	b.answer, b.heard = answer, time.Now()
	if b.state != ended {
		b.state = moving
	}
	r.endIfDone(b)
}

// endIfDone ends a customer who has the answer, and of whom nothing more is to come.
func (r *run) endIfDone(b *buyer) {
	if b.answer != "" && b.flying == nil && len(b.queue) == 0 && (b.dead || !r.goesOn(b)) {
		b.state = ended
	}
}

// answeredByMySQL notes what a connection holds after an answer, and what others can see of it.
func (r *run) answeredByMySQL(b *buyer, h *held, a answer) {
	statement := schedule.Statement{Text: h.Text, Matched: a.matched}
	inTx := schedule.Statement{Text: b.request(h).Text, Matched: a.matched} // it locks more where it is SERIALIZABLE
	if a.matched && r.writes(b, h) {
		r.change(r.wrote, b.customer)
	}
	if a.ends {
		delete(b.tx, h.under)
	}
	switch upper := strings.ToUpper(h.Text); {
	case h.name == "reset":
		delete(b.named, h.under)
	case locksTables(statement), strings.HasPrefix(upper, "UNLOCK TABLE"):
		b.named[h.under] = slices.DeleteFunc(b.named[h.under], locksTables)
		if !a.failed && locksTables(statement) {
			b.named[h.under] = append(b.named[h.under], statement)
		}
	case strings.Contains(upper, "GET_LOCK("):
		if strings.HasSuffix(a.text, "=1") {
			b.named[h.under] = append(b.named[h.under], statement)
		}
		if a.open && !alone.MatchString(upper) {
			b.tx[h.under] = append(b.tx[h.under], inTx)
		}
	case strings.Contains(upper, "RELEASE_LOCK("), strings.Contains(upper, "RELEASE_ALL_LOCKS("):
		freed := r.schema.Touches(schedule.Request{Server: h.Server, Text: h.Text})
		b.named[h.under] = slices.DeleteFunc(b.named[h.under], func(taken schedule.Statement) bool {
			return !locksTables(taken) && schedule.Dependent(freed, r.schema.Locks([]schedule.Statement{taken})) != ""
		})
		r.change(r.wrote, b.customer)
	case a.open && (!a.ends || strings.Contains(h.Text, ";")):
		b.tx[h.under] = append(b.tx[h.under], inTx)
	}
}

// alone is a statement that takes a named lock, and nothing else.
var alone = regexp.MustCompile(`^(?:SELECT|DO) GET_LOCK ?\([^()]*\)[^()]*$`)

// writes says whether a request can change something for everyone.
func (r *run) writes(b *buyer, h *held) bool {
	return slices.ContainsFunc(r.schema.Touches(b.request(h)), func(t schedule.Touch) bool { return t.Does&schedule.Writes != 0 })
}

func locksTables(s schedule.Statement) bool {
	return strings.HasPrefix(strings.ToUpper(s.Text), "LOCK TABLE")
}

// hungUp waits until MySQL has noticed the end of a connection.
func (r *run) hungUp(ctx context.Context, conn uint64) error {
	if conn == 0 {
		return nil
	}
	return seen.ConnGone(ctx, r.db(), conn)
}

// noAnswer notes that nothing will come of what a customer has under way.
func (r *run) noAnswer(b *buyer) {
	for _, h := range b.underWay() {
		r.entries[h.entry].Note = words.Of("note.no-answer")
	}
	b.flying, b.parked = nil, nil
}
