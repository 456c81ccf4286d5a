package stage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/shop/labmode"
)

// answered is the shop's answer to a customer.
type answered struct {
	customer schedule.Customer
	answer   string
}

// send lets a customer's request go, and waits until all are at rest again. A quiet one leaves no
// entry, unless it changes the lock.
func (r *run) send(ctx context.Context, c schedule.Customer, quiet bool) error {
	b := r.buyer(c)
	if b.state == absent {
		if err := r.arrive(ctx, b); err != nil {
			return err
		}
	}
	if b.state == ended && b.sent == 0 {
		return fmt.Errorf("%s was answered with %s before its first step", c, b.answer)
	}
	if b.state != atStep {
		return fmt.Errorf("%s was to send %s and is not held at it", c, b.step)
	}
	b.flying = r.note(schedule.Entry{Choice: schedule.Choice{Customer: c, Step: b.step}, Customer: c.String(),
		Server: b.held.Server, Sent: b.held.Text, Replica: b.held.Replica, Tx: b.held.Tx})
	b.state, b.heard = moving, time.Now()
	name := b.held.Name
	b.sent++
	if quiet && b.held.Server != labmode.MySQLServer && r.lock.Locked() {
		b.tries++
	}
	if r.keepsTime(b.held.request()) {
		r.timed, r.leased = true, true
	}
	if r.releases(b) && r.has == c {
		r.has = 0
	}
	entry := b.flying
	committed := b.held.Server == labmode.MySQLServer && (!b.held.Tx || name == "commit")
	lost := b.lose && b.held.Conn != 0
	b.held.release(b.lose)
	b.lose = false
	if err := r.settle(ctx); err != nil {
		return err
	}
	if lost && b.conn != 0 {
		if err := seen.ConnGone(ctx, r.slot.database.store.Pool(), b.conn); err != nil {
			return err
		}
	}
	if committed {
		if err := r.slot.database.copied(ctx); err != nil {
			return err
		}
	}
	before := r.lock
	if err := r.look(ctx, c, ""); err != nil {
		return err
	}
	if quiet && r.lock.Kept == before.Kept && r.lock.Lock == before.Lock && r.lock.Locked() == before.Locked() && b.flying < 0 {
		r.entries = slices.Delete(r.entries, entry, entry+1)
		if r.plan.Baskets && b.state == atStep && b.held.Name == name { // how often it tries meanwhile depends on the machine
			b.counts[name]--
			b.step = schedule.StepName(name, b.counts[name])
		}
		for _, other := range r.buyers {
			if other.flying > entry {
				other.flying--
			}
		}
		return nil
	}
	if err := r.recheck(ctx); err != nil {
		return err
	}
	return r.observe(ctx, entry)
}

// arrive sends a customer to its shop, and waits until it is held at its first step.
func (r *run) arrive(ctx context.Context, b *buyer) error {
	b.state, b.heard, b.arrived, b.step = moving, time.Now(), r.machineTime(), ""
	go func() {
		answer := r.slot.buy(ctx, b.shop.URL, b.lines, r.plan.Strategy, b.id)
		select {
		case r.messages <- answered{b.customer, answer}:
		case <-ctx.Done():
		}
	}()
	return r.settle(ctx)
}

// handle takes in what a shop reports.
func (r *run) handle(m any) {
	if a, ok := m.(answered); ok {
		b := r.buyer(a.customer)
		if b.answer = a.answer; b.answer == string(load.Busy) {
			r.answeredBusy(b)
		}
		if b.flying >= 0 && a.answer != load.NoAnswer {
			return // the report on its last request comes another way, and is slower
		}
		if b.flying >= 0 {
			r.entries[b.flying].Note = "no answer came"
		}
		b.flying = -1
		r.answeredNow(b)
		return
	}
	report := m.(heldReport)
	r.noteRenewal(report)
	i := slices.IndexFunc(r.buyers, func(b *buyer) bool { return b.id == report.Sale })
	switch {
	case report.Refused:
		if i >= 0 {
			r.buyers[i].refused, r.buyers[i].keptOut = true, true
		}
	case i >= 0 && report.Hold != 0 && r.buyers[i].occupied():
		report.release(false) // a goroutine beside the sale sent it, and it is shown when it is done
	case i < 0 || report.Own || report.Done != 0 && report.Done != r.buyers[i].held.Hold:
		if r.plan.Observe {
			r.note(schedule.Entry{Own: true, Customer: r.customerOfShop(report.shop), Server: report.Server, Sent: report.Text, Answer: report.Answer})
		}
	case report.Hold != 0:
		r.hold(r.buyers[i], report)
	default:
		r.done(r.buyers[i], report)
	}
}

// acquires says whether the request of a customer that is under way is a lock's acquisition as a whole,
// which can wait for the lock. Releases says the same of its release.
func (r *run) acquires(b *buyer) bool { return r.whole(b, labmode.AcquireStep) }

func (r *run) releases(b *buyer) bool { return r.whole(b, labmode.ReleaseStep) }

func (r *run) whole(b *buyer, step string) bool {
	return r.of.AtPoints() && b.flying >= 0 && b.held.Server != labmode.MySQLServer && b.held.Name == step
}

// occupied says whether the sale itself can send nothing now: it has ended, is held, or has no answer yet.
func (b *buyer) occupied() bool { return b.state == ended || b.state == atStep || b.flying >= 0 }

func (r *run) customerOfShop(name string) string {
	for _, b := range r.buyers {
		if strings.HasSuffix(name, fmt.Sprintf("-%d", b.customer-'A'+1)) {
			return b.customer.String()
		}
	}
	return ""
}

func (r *run) hold(b *buyer, report heldReport) {
	b.state, b.held, b.heard, b.refused = atStep, report, time.Now(), false
	b.keptOut = b.keptOut && report.Server != labmode.MySQLServer
	b.counts[report.Name]++
	b.step = schedule.StepName(report.Name, b.counts[report.Name])
	begin := report.Name
	if words := strings.Fields(report.Text); len(words) > 1 && words[0] == "EVALSHA" {
		begin += " " + words[1]
	} else if report.Server == labmode.MySQLServer {
		begin = report.Text
	}
	if b.first == "" {
		b.first = begin
	}
	repeats := b.asked[report.Text]
	b.asked[report.Text] = true
	b.retry = false
	again := len(b.tx) == 0 && begin == b.first && // a transaction that reads the same twice does not begin again
		(report.Phase == "" || report.Server == labmode.MySQLServer)
	if again && !r.plan.Baskets || r.plan.Baskets && report.Server != labmode.MySQLServer {
		b.retry = b.counts[report.Name] > 1 && (!r.plan.Baskets || repeats) // each lock has its tries
		b.tryFrom, b.tryUntil = b.tryUntil, r.version
	}
}

// pointless says whether the step repeats a try although nobody else has changed the lock, and no
// lease has passed, since the try before was made. Made, and not sent: a try has its time in it.
func (r *run) pointless(b *buyer) bool {
	if !b.retry {
		return false
	}
	for by, version := range r.changed {
		if by != b.customer && version > b.tryFrom {
			return false
		}
	}
	if b.held.Server != labmode.MySQLServer && len(r.of.State.Keys) == 0 {
		return true
	}
	for _, version := range r.wrote { // a try can also follow what its own sale has written
		if version > b.tryFrom {
			return false
		}
	}
	return true
}

// answeredNow ends a customer who has the answer. A shop that answers first may have to write yet,
// and can be held before that already.
func (r *run) answeredNow(b *buyer) {
	b.heard = time.Now()
	switch {
	case !r.of.AnswersFirst || b.answer != string(load.Sold) || b.written:
		b.ended()
	case b.state != atStep:
		b.state = moving
	}
}

func (r *run) done(b *buyer, report heldReport) {
	b.heard = time.Now()
	if b.flying < 0 {
		return
	}
	e := &r.entries[b.flying]
	e.Answer = report.Answer
	if report.Lost {
		e.Note = schedule.AnswerLost
	}
	if r.acquires(b) && report.Answer == labmode.AcquiredAnswer {
		r.acquired(b.customer)
	}
	if report.Server == labmode.MySQLServer {
		r.answeredByMySQL(b, report)
	}
	b.flying = -1
	switch {
	case b.answer != "":
		r.answeredNow(b)
	case b.state != atStep:
		b.state = moving
	}
}

// ended notes that a customer's sale is over.
func (b *buyer) ended() { b.state, b.tx, b.named = ended, nil, nil }

// answeredByMySQL notes what the connection holds after an answer, and what others can see of it.
func (r *run) answeredByMySQL(b *buyer, report heldReport) {
	request := r.request(b)
	if b.held.Conn != 0 {
		b.conn = b.held.Conn
	}
	named := strings.Contains(request.Text, "_LOCK(")
	matched := !strings.HasPrefix(report.Answer, "error: ") && report.Answer != "no row" && report.Answer != "0 rows"
	if matched && slices.ContainsFunc(r.schema.Touches(request), func(t schedule.Touch) bool { return t.Does&schedule.Writes != 0 }) {
		r.version++
		r.wrote[b.customer] = r.version
	}
	statement := schedule.Statement{Text: request.Text, Matched: matched}
	switch {
	case report.Name == "commit" || report.Name == "rollback":
		b.written = b.written || b.ordered && report.Name == "commit"
		b.tx, b.ordered = nil, false
	case report.Lost, strings.Contains(report.Answer, "Error 1213"):
		b.tx, b.ordered = nil, false
	case named && strings.Contains(request.Text, "GET_LOCK("):
		if strings.HasSuffix(report.Answer, "=1") {
			b.named = append(b.named, statement)
		}
	case named:
		freed := r.schema.Touches(request)
		b.named = slices.DeleteFunc(b.named, func(taken schedule.Statement) bool {
			return schedule.Dependent(freed, r.schema.Locks([]schedule.Statement{taken})) != ""
		})
		r.version++
		r.wrote[b.customer] = r.version
	case b.held.Tx:
		b.ordered = b.ordered || matched && ordersItem(request.Text)
		b.tx = append(b.tx, statement)
	}
	if report.Lost && b.held.Conn != 0 { // the shop has hung up, which it cannot do with a COMMIT
		b.named = nil
	}
}

// ordersItem says whether a statement records an order.
func ordersItem(text string) bool {
	return strings.HasPrefix(text, "INSERT") && strings.Contains(text, "orders")
}
