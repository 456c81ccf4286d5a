package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/shop/labmode"
)

// answered is the shop's answer to a customer.
type answered struct {
	customer Customer
	answer   string
}

// send lets a customer's request go, and waits until all are at rest again. A quiet one leaves no
// entry, unless it changes the lock.
func (r *run) send(ctx context.Context, c Customer, quiet bool) error {
	p := r.person(c)
	if p.state == absent {
		if err := r.arrive(ctx, p); err != nil {
			return err
		}
	}
	if p.state == ended && p.sent == 0 {
		return fmt.Errorf("%s was answered with %s before its first step", c, p.answer)
	}
	if p.state != atStep {
		return fmt.Errorf("%s was to send %s and is not held at it", c, p.step)
	}
	request := Request{Server: p.held.Server, Text: p.held.Text, Tx: p.held.Tx}
	p.flying = r.note(Entry{Choice: Choice{Customer: c, Step: p.step}.String(), Customer: c.String(),
		Server: request.Server, Sent: request.Text, Request: &request, customer: c})
	p.state, p.heard = moving, time.Now()
	p.sent++
	p.tries += count(quiet && request.Server != labmode.MySQLServer && r.lock.present())
	if r.releases(p) && r.has == c {
		r.has = 0
	}
	entry := p.flying
	p.held.release(p.lose)
	p.lose = false
	if err := r.settle(ctx); err != nil {
		return err
	}
	before := r.lock
	if err := r.look(ctx, c, ""); err != nil {
		return err
	}
	if quiet && r.lock.kept == before.kept && r.lock.value == before.value && r.lock.present() == before.present() && p.flying < 0 {
		r.entries = slices.Delete(r.entries, entry, entry+1)
		for _, other := range r.people {
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
func (r *run) arrive(ctx context.Context, p *person) error {
	p.state, p.heard = moving, time.Now()
	go func() {
		answer := r.stage.buy(ctx, p.shop.URL, r.item, r.plan.Strategy, p.id)
		select {
		case r.inbox <- answered{p.customer, answer}:
		case <-ctx.Done():
		}
	}()
	return r.settle(ctx)
}

// handle takes in what a shop reports.
func (r *run) handle(m any) {
	if a, ok := m.(answered); ok {
		p := r.person(a.customer)
		p.answer = a.answer
		if p.flying >= 0 && a.answer != noAnswer {
			return // the report on its last request comes another way, and is slower
		}
		if p.flying >= 0 {
			r.entries[p.flying].Note = "no answer came"
		}
		p.flying = -1
		r.answeredNow(p)
		return
	}
	report := m.(heldReport)
	i := slices.IndexFunc(r.people, func(p *person) bool { return p.id == report.Sale })
	switch {
	case i >= 0 && report.Hold != 0 && r.people[i].occupied():
		report.release(false) // a goroutine beside the sale sent it, and it is shown when it is done
	case i < 0 || report.Own || report.Done != 0 && report.Done != r.people[i].held.Hold:
		if r.plan.Observe {
			r.note(Entry{Own: true, Customer: r.customerOfShop(report.shop), Server: report.Server, Sent: report.Text, Answer: report.Answer})
		}
	case report.Hold != 0:
		r.hold(r.people[i], report)
	default:
		r.done(r.people[i], report)
	}
}

// acquires says whether the request of a customer that is under way is a lock's acquisition as a whole,
// which can wait for the lock. Releases says the same of its release.
func (r *run) acquires(p *person) bool { return r.whole(p, labmode.AcquireStep) }

func (r *run) releases(p *person) bool { return r.whole(p, labmode.ReleaseStep) }

func (r *run) whole(p *person, step string) bool {
	return r.of.AtPoints() && p.flying >= 0 && p.held.Server != labmode.MySQLServer && p.held.Name == step
}

// occupied says whether the sale itself can send nothing now: it has ended, is held, or has no answer yet.
func (p *person) occupied() bool { return p.state == ended || p.state == atStep || p.flying >= 0 }

func (r *run) customerOfShop(name string) string {
	for _, p := range r.people {
		if strings.HasSuffix(name, fmt.Sprintf("-%d", p.customer-'A'+1)) {
			return p.customer.String()
		}
	}
	return ""
}

func (r *run) hold(p *person, report heldReport) {
	p.state, p.held, p.heard = atStep, report, time.Now()
	p.counts[report.Name]++
	p.step = stepName(report.Name, p.counts[report.Name])
	begin := report.Name
	if words := strings.Fields(report.Text); len(words) > 1 && words[0] == "EVALSHA" {
		begin += " " + words[1]
	} else if report.Server == labmode.MySQLServer {
		begin = report.Text
	}
	if p.first == "" {
		p.first = begin
	}
	p.retry = false
	if begin == p.first && (report.Phase == "" || report.Server == labmode.MySQLServer) {
		p.retry = p.counts[report.Name] > 1
		p.tryFrom, p.tryUntil = p.tryUntil, r.version
	}
}

// pointless says whether the step repeats a try although nobody else has changed the lock, and no
// lease has passed, since the try before was made. Made, and not sent: a try has its time in it.
func (r *run) pointless(p *person) bool {
	if !p.retry {
		return false
	}
	for by, version := range r.changed {
		if by != p.customer && version > p.tryFrom {
			return false
		}
	}
	if p.held.Server != labmode.MySQLServer && len(r.of.State.Keys) == 0 {
		return true
	}
	for _, version := range r.wrote { // a try can also follow what its own sale has written
		if version > p.tryFrom {
			return false
		}
	}
	return true
}

// answeredNow ends a customer who has the answer. A shop that answers first may have to write yet,
// and can be held before that already.
func (r *run) answeredNow(p *person) {
	p.heard = time.Now()
	switch {
	case !r.of.AnswersFirst || p.answer != string(load.Sold) || p.written:
		p.state, p.row = ended, noRow
	case p.state != atStep:
		p.state = moving
	}
}

// answerLost is the note of a request that was carried out, and whose sender was told nothing.
const answerLost = "the answer was lost"

func (r *run) done(p *person, report heldReport) {
	p.heard = time.Now()
	if p.flying < 0 {
		return
	}
	e := &r.entries[p.flying]
	e.Answer = report.Answer
	if report.Lost {
		e.Note = answerLost
	}
	if r.acquires(p) && report.Answer == labmode.AcquiredAnswer {
		r.acquired(p.customer)
	}
	failed := strings.HasPrefix(report.Answer, "error: ")
	switch {
	case report.Name == "commit" || report.Name == "rollback":
		if p.row != noRow && report.Name == "commit" {
			p.written = p.written || p.ordered
			r.version++
			r.wrote[p.customer] = r.version
		}
		p.row, p.ordered = noRow, false
	case e.Request.Tx && !failed:
		p.ordered = p.ordered || e.Request.rowLock() == sharedRow
		p.row = max(p.row, e.Request.rowLock())
	}
	p.flying = -1
	switch {
	case p.answer != "":
		r.answeredNow(p)
	case p.state != atStep:
		p.state = moving
	}
}
