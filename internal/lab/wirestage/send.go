package wirestage

import (
	"context"
	"regexp"
	"slices"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
)

// note adds an entry.
func (r *run) note(e schedule.Entry) int {
	e.AtMS = float64(time.Since(r.begun).Microseconds()) / 1000
	r.entries = append(r.entries, e)
	return len(r.entries) - 1
}

// send lets a customer's request go, and waits until all are at rest. A quiet one leaves no entry.
func (r *run) send(ctx context.Context, b *buyer, quiet bool) error {
	h := b.queue[0]
	b.queue = b.queue[1:]
	h.entry = -1
	if !quiet {
		b.counts[h.Name]++
		b.sent++
		h.entry = r.note(schedule.Entry{
			Choice: schedule.Choice{Customer: b.customer, Step: schedule.StepName(h.Name, b.counts[h.Name])}, Customer: b.customer.String(),
			Server: h.Server, Sent: h.Text, Tx: h.Tx,
		})
	}
	if b.flying != nil {
		b.parked = append(b.parked, b.flying)
	}
	b.flying, b.state, b.heard, b.last = h, moving, time.Now(), service.Shape(h.Text)
	h.release <- true
	return r.rest(ctx, b.customer, "", h.Text)
}

// rest waits until all are at rest after a step or an event, and looks at both servers.
func (r *run) rest(ctx context.Context, by schedule.Customer, event schedule.Event, sent string) error {
	entry := len(r.entries) - 1
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.look(ctx, by, event, sent); err != nil {
		return err
	}
	if slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state == onPush }) {
		time.Sleep(pushDelay)
	}
	for _, b := range r.buyers { // what they wait for may be there now
		if b.state == onRow || b.state == onRedis {
			b.state, b.heard = moving, time.Now()
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if r.plan.Everything && len(r.plan.Events) > 0 || slices.ContainsFunc(r.plan.Events, schedule.Event.Forgets) {
		own, err := r.ownKeys(ctx)
		if err != nil {
			return err
		}
		r.keeps = len(own) > 0
	}
	if r.looked != nil {
		if err := r.looked(r); err != nil {
			return err
		}
	}
	return r.observe(ctx, entry)
}

// observe keeps what both servers have after an entry. It would wait for tables that a customer has locked, or waits for.
func (r *run) observe(ctx context.Context, entry int) error {
	locked := func(b *buyer) bool {
		return slices.ContainsFunc(b.holds(), locksTables) || b.flying != nil && b.flying.Server == wire.MySQL && !ofRows.MatchString(b.flying.Text)
	}
	if !r.plan.Observe || entry < 0 || r.blind || slices.ContainsFunc(r.buyers, locked) {
		return nil
	}
	looking, cancel := context.WithTimeout(ctx, observeLimit)
	defer cancel()
	now, err := r.servers(looking)
	if err != nil && looking.Err() != nil && ctx.Err() == nil { // what a sale has locked keeps the count waiting
		r.blind = true
		return nil
	}
	r.entries[entry].State = &now
	return err
}

// ofRows are statements that leave other readers of a table alone.
var ofRows = regexp.MustCompile(`(?i)^(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|COMMIT|ROLLBACK|DO|SET|WITH|CALL|XA)\b`)

// observeLimit bounds a look at what the servers have while sales are held.
const observeLimit = 2 * time.Second

func (r *run) servers(ctx context.Context) (schedule.State, error) {
	now := r.lock
	if r.owner != 0 {
		now.Holder = r.owner.String()
	}
	left, err := r.stage.on.Left(ctx, r.item)
	if err != nil {
		return now, err
	}
	orders, err := r.stage.on.Orders(ctx, r.item)
	for i, o := range orders {
		for range o.Units {
			now.Orders = append(now.Orders, schedule.Order{ID: uint64(i + 1), Customer: r.customerOf(o.Customer)})
		}
	}
	now.Stock = left
	return now, err
}

func (r *run) customerOf(name string) string {
	for _, b := range r.buyers {
		if b.sale.Customer == name {
			return b.customer.String()
		}
	}
	return schedule.OrdinaryCustomer
}
