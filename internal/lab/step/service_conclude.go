package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/wire"
	"stocklock/internal/lab/words"
)

// end lets go what is held, and waits until all sales have ended: the next run would meet what they do. A process that
// does not come to rest is started again.
func (r *serviceRun) end(ctx context.Context) {
	r.letGo()
	for i, c := range r.customers {
		if !r.service.dirty[i] {
			_ = c.at.Resume()
			if c.accepted.Load() && c.state != ended {
				select {
				case <-c.done:
				case <-time.After(r.service.on.File.Settle): // what it was to do was lost
					r.service.dirty[i] = true
				}
			}
		}
		if c.state != absent {
			c.stopAsking()
			<-c.done
			r.service.dirty[i] = r.service.dirty[i] || c.state != ended && !r.comesToRest(ctx, i, c.got.Outcome, c.early || c.open)
		}
	}
	// Not before: [serviceRun.free] would start it again while its worker writes an order.
	last := len(r.customers) - 1
	r.service.dirty[last] = r.service.dirty[last] || r.late
}

// comesToRest waits until a process has sent the last request of a sale that was answered so, or nothing of it for as long
// as it may be silent. Early is a sale that went on behind its answer, whatever the probe has seen.
func (r *serviceRun) comesToRest(ctx context.Context, process int, answered load.Outcome, early bool) bool {
	settled, quiet := r.service.on.File.Settle, seen.Quiet{}
	patience := settled + shortRest
	if r.unforeseen.Load() && !r.service.idled {
		patience = settled // what a heartbeat goes through is learned next, and its process does not come to rest
	}
	for limit := time.Now().Add(patience); early || r.service.probe.AfterAnswer; {
		r.mu.Lock()
		busy, last, heard := r.busy[process], r.last[process], r.heard[process]
		r.mu.Unlock()
		silent, over := quiet.Until(heard, time.Now(), lookAfter), r.service.probe.Last(answered) == service.Shape(last)
		switch {
		case busy == 0 && (silent > lateQuiet && over || time.Since(heard) > settled):
			return true
		case time.Now().After(limit), seen.Pause(ctx, lookAfter) != nil:
			return false
		}
	}
	return true
}

// count is what the service has for sale and has sold, and what Redis had at the last look.
func (r *serviceRun) count(ctx context.Context) (schedule.State, error) {
	r.counts()
	now := r.lock
	if r.owner != 0 {
		now.Holder = r.owner.String()
	}
	left, orders, err := r.service.on.Counts(ctx, r.item)
	for i, o := range orders {
		for range o.Units {
			now.Orders = append(now.Orders, schedule.Order{ID: uint64(i + 1), Customer: r.customerOf(o.Customer)})
		}
	}
	now.Stock = left
	return now, err
}

// conclude has an ordinary customer come where a unit is left, and rules.
func (r *serviceRun) conclude(ctx context.Context) (schedule.Record, error) {
	o := r.outcome()
	end, err := r.addedUp(ctx, &o)
	if err != nil {
		return schedule.Record{}, err
	}
	record := r.record(o)
	record.Wire, record.LeaseMS, record.Unended = true, 0, r.unended(false)
	sold := int64(len(o.Orders))
	if sold < o.Stock || sold == o.Stock && end.Stock > 0 || o.Lies() > 0 || record.NeedsAnother() {
		if end, err = r.afterwards(ctx, &record); err != nil {
			return schedule.Record{}, err
		}
	}
	record.LostUpdates = lostUpdates(record.Outcome, end)
	r.whatWasRead(record.Outcome.Orders)
	record.Entries, record.Holds = r.entries, r.holds
	record.Decide()
	record.Conclude(end, r.other)
	if who := record.Unnamed(); who != "" && !record.Outcome.Bad() { // what is bad is so by the orders and other answers
		return schedule.Record{}, fmt.Errorf("%s, which the description does not know", who)
	}
	return record, nil
}

// afterwards has another customer come when what is held has ended, and counts again.
func (r *serviceRun) afterwards(ctx context.Context, record *schedule.Record) (end schedule.State, err error) {
	o := &record.Outcome
	before, err := r.outlast(ctx)
	if err != nil {
		return end, err
	}
	if err := r.free(ctx); err != nil {
		return end, err
	}
	if err := r.awaitOrders(ctx, record); err != nil {
		return end, err
	}
	o.Ordinary = r.ordinary(ctx, record.Unended != "")
	end, err = r.addedUp(ctx, o)
	record.Queued = record.Queued && int64(len(o.Orders)) < o.Stock
	if o.Ordinary == string(load.Busy) && end.Locked() && end.TTLMS == -1 {
		record.Unended = r.unended(true)
	}
	r.note(schedule.Entry{Note: words.Of("note.ordinary", "before", before, "answer", o.Ordinary)})
	return end, err
}

// unended are the leases that the run has met and not ended. Behind a key that has no end, it is no row that keeps others out.
func (r *serviceRun) unended(endless bool) string {
	var sent service.Probe
	for _, e := range r.entries {
		if !endless || e.Server == wire.Redis {
			sent.Sold = append(sent.Sold, schedule.Sent{Server: e.Server, Sent: e.Sent})
		}
	}
	return strings.Join(sent.Unended(), ", ")
}

// free holds nothing any more, in any process: a worker that is held, or killed, would write nothing.
func (r *serviceRun) free(ctx context.Context) error {
	r.letGo()
	for i := range r.dead {
		r.dead[i].Store(false)
	}
	return r.service.revive(ctx)
}

// lostUpdates are the units both in orders and left, negative for those in neither. A unit without an order that nobody can
// have is left, and not lost.
func lostUpdates(o schedule.Outcome, end schedule.State) int64 {
	lost, missing := int64(len(o.Orders))+end.Stock-o.Stock, o.Stock-int64(len(o.Orders))
	if missing < 0 || lost < 0 && missing > 0 && o.Ordinary != string(load.Sold) {
		return 0
	}
	return lost
}

// addedUp looks at the end. Where orders and stock do not add up, it looks again when both are at rest: a worker can be late.
func (r *serviceRun) addedUp(ctx context.Context, o *schedule.Outcome) (schedule.State, error) {
	end, err := r.lookAtEnd(ctx, o)
	if err != nil || lostUpdates(*o, end) == 0 {
		return end, err
	}
	if err := r.free(ctx); err != nil {
		return end, err
	}
	r.ended = true // what follows takes longer than many a lease
	if still, err := r.service.on.Still(ctx, r.item, r.addsUp); err != nil || !still {
		return end, cmp.Or(err, errors.New("the orders and the stock change all the time"))
	}
	return r.lookAtEnd(ctx, o)
}

func (r *serviceRun) addsUp(left int64, orders []service.Order) bool {
	return service.InAll(left, orders) == r.units
}

// awaitOrders waits for the orders that a worker of another process, or of one that was started again, can write: of
// customers who were answered as sold, of what waits in a queue, and of units that are neither sold nor left where orders come
// behind answers. An entry that was taken from a queue may be on its way still.
func (r *serviceRun) awaitOrders(ctx context.Context, record *schedule.Record) error {
	o := &record.Outcome
	for until := time.Now().Add(max(workerLimit, r.service.on.Patience())); ; {
		all, err := r.keysNow(ctx)
		if err != nil {
			return err
		}
		record.Queued = r.queued(all) && int64(len(o.Orders)) < o.Stock
		if !record.Queued && (!r.service.probe.AfterAnswer || o.Lies() == 0) || time.Now().After(until) {
			break
		}
		if err := seen.Pause(ctx, workerEvery); err != nil {
			return err
		}
		end, err := r.count(ctx)
		if err != nil {
			return err
		}
		o.Orders = end.Orders
	}
	missing := o.Stock - int64(len(o.Orders))
	if r.service.queues && !record.Queued && missing > 0 {
		_, err := r.service.on.Still(ctx, r.item, nil)
		return err
	}
	if !r.service.probe.AfterAnswer || missing <= 0 {
		return nil
	}
	left, err := r.service.on.Left(ctx, r.item)
	if err == nil && left < missing { // a table can be a queue
		_, err = r.service.on.Still(ctx, r.item, r.addsUp)
	}
	return err
}

// How long an order is awaited.
const (
	workerLimit = 10 * time.Second
	workerEvery = 100 * time.Millisecond
)

// whatWasRead puts into orders what was in stock when their customers found some for the last time: by that they have
// decided. Two orders by one stock have the same cause.
func (r *serviceRun) whatWasRead(orders []schedule.Order) {
	for i := range orders {
		for _, e := range slices.Backward(r.entries) {
			if e.Customer == orders[i].Customer && e.Server == wire.MySQL && strings.HasPrefix(e.Sent, "SELECT") && e.State != nil && e.State.Stock > 0 {
				orders[i].Read, orders[i].Written = e.State.Stock, e.State.Stock-1
				break
			}
		}
	}
}
