package trial

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// standing is an order that stands, perhaps of several items.
type standing struct {
	count.Order
	request, key string
}

func (s *Show) standing(ctx context.Context) (all []standing, err error) {
	if s.Service != nil {
		_, orders, err := s.Service.Count(ctx, s.Items[0].ItemID)
		for customer, of := range orders {
			for _, o := range of {
				all = append(all, standing{Order: o, request: customer})
			}
		}
		return all, err
	}
	items := make([]string, len(s.Items))
	for i, item := range s.Items {
		items[i] = strconv.FormatUint(item.ItemID, 10)
	}
	rows, err := s.Store.Pool().QueryContext(ctx, "SELECT COALESCE(line_of, id), COALESCE(public_id, ''), item_id, quantity, COALESCE(request_id, ''), COALESCE(idempotency_key, '')"+
		" FROM orders WHERE item_id IN ("+strings.Join(items, ",")+") AND cancelled_at IS NULL ORDER BY 1, id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	last := uint64(0)
	for rows.Next() {
		var of, item uint64
		var units int64
		var o standing // only the first row has the id
		if err := rows.Scan(&of, &o.ID, &item, &units, &o.request, &o.key); err != nil {
			return nil, err
		}
		if of != last {
			o.Units, last = count.Units{}, of
			all = append(all, o)
		}
		all[len(all)-1].Units[item] += units
	}
	return all, rows.Err()
}

// wants is what a customer wants of each item, nil for nothing that is known.
func (s *Show) wants(h *Customer) count.Units {
	if h.wish.quantity == 0 {
		return nil
	}
	lines, of := h.wanted.Lines, count.Units{}
	if lines == nil {
		lines = []int{0}
	}
	for _, line := range lines {
		of[s.Items[line].ItemID] += int64(h.wish.quantity)
	}
	return of
}

// purchases joins requests and orders. An order belongs to the purchase of its idempotency key, else
// to that of its request. One that nobody asked for is a purchase without answers.
func (s *Show) purchases(orders []standing) map[string]count.Purchase {
	all, keys := map[string]count.Purchase{}, map[string]string{} // keys by request
	for _, h := range s.customers.hits {
		key := cmp.Or(h.wish.key, h.id)
		keys[h.id] = key
		p := all[key]
		p.Wants = s.wants(h)
		p.Answers = append(p.Answers, count.Answer{Outcome: h.Outcome, Order: h.order, Sent: h.Sent, At: h.answeredAt()})
		all[key] = p
	}
	for _, o := range orders {
		key := cmp.Or(keys[o.request], o.request)
		if _, asked := all[o.key]; o.key != "" && asked {
			key = o.key
		}
		p := all[key]
		p.Orders = append(p.Orders, o.Order)
		all[key] = p
	}
	return all
}

// count counts what a few have bought, when all that was under way is over: by SQL, and by the counters of a strategy
// that sells several items from Redis.
func (s *Show) count(ctx context.Context, r *Result) (verdict.Facts, error) {
	orders, err := s.standing(ctx)
	if err != nil {
		return verdict.Facts{}, err
	}
	left := count.Units{}
	for _, item := range s.Items {
		counts, err := s.countItem(ctx, item, orders)
		if err != nil {
			return verdict.Facts{}, err
		}
		counted := counts.Remaining
		if s.Scenario.OfBaskets() && s.Of.Counts() {
			if counted, err = s.counter(ctx, item.ItemID, counted); err != nil {
				return verdict.Facts{}, err
			}
		}
		forSale, unsold := min(counts.Remaining, counted), item.InitialStock-counts.Sold // nobody gets more than both have
		left[item.ItemID] = max(0, forSale)
		r.Sold += counts.Sold
		r.Oversold += counts.Oversold
		if s.Scenario.OfBaskets() {
			r.Remaining += max(0, forSale)
			r.Unclaimed += max(0, unsold-forSale)
			if counts.Oversold == 0 {
				r.LostUpdates += max(0, max(counts.Remaining, counted)-unsold)
			}
		} else {
			r.Remaining, r.LostUpdates = counts.Remaining, counts.LostUpdates
		}
	}
	purchases := s.purchases(orders)
	if s.Scenario.OfReservations() {
		if err := s.pay(ctx, purchases); err != nil {
			return verdict.Facts{}, err
		}
	}
	if s.Database != nil {
		r.Promised = r.Sold
	}
	undecided, answers := "", map[load.Outcome]int64{}
	for _, h := range s.customers.hits {
		wants, outcome := s.wants(h), h.Outcome
		r.Requests++
		switch {
		case outcome == load.Sold:
			if s.Database != nil {
				r.Promised += purchases[h.id].Facts().Unordered * int64(h.wish.quantity)
			}
		case outcome == load.Failed, outcome == load.Done:
		case !outcome.Denies() || s.Scenario.OfBaskets() && outcome == load.Refused || r.Expected != verdict.Left && s.stalled(h):
			if s.Database == nil && s.Service == nil && !h.wanted.Beside && h.fault.Action != labmode.Kill {
				undecided = fmt.Sprintf("%s was answered with %s", h.Name(), outcome)
			}
			outcome = load.Unknown
		default:
			available := !h.wanted.Beside && (outcome == load.SoldOut || s.Scenario.OfBaskets())
			var all int64
			for item, units := range wants {
				available, all = available && left[item] >= units, all+units
			}
			if available {
				r.Left += all
			}
		}
		answers[outcome]++
	}
	r.tally(answers)
	r.Left = min(r.Left, max(0, r.Remaining))
	compared := count.Facts(maps.Values(purchases))
	r.Differ(compared)
	f := r.Facts()
	f.DemandLeft = compared.Decided > 0 || s.Database != nil // whose servers may be gone
	f.Stuck, f.Undecided = s.Stuck || s.StuckAt != "", undecided
	if s.Service != nil && r.Remaining == 0 { // each unit is in an order: what else was answered kept nobody from one
		f.Errors = 0
	}
	if s.StuckAt != "" {
		f.Waiting = &verdict.Waiting{Lock: s.StuckAt}
	}
	return f, nil
}

// stalled reports whether a customer was refused who had to wait for most of the time for one whom the lab was late to let
// go. A circle of locks, and one who comes again and again, keep a customer waiting after that.
func (s *Show) stalled(h *Customer) bool {
	return h.wanted.Hesitant && h.Outcome == load.Busy && slices.ContainsFunc(s.customers.hits, func(o *Customer) bool {
		held, _ := s.feed.find(func(e labmode.Event) bool { return e.Request == o.id && e.Facts["fault"] != nil })
		return o != h && min(o.letGo.Sub(h.Sent), h.Latency) > max(held.Time.Sub(h.Sent), 0)+s.Scenario.Settings().Wait/2
	})
}

// countItem counts an item by SQL, or by what a described service says of it.
func (s *Show) countItem(ctx context.Context, item audit.Run, orders []standing) (audit.Counts, error) {
	if s.Service == nil {
		return audit.Count(ctx, s.Store, item)
	}
	left, _, err := s.Service.Count(ctx, item.ItemID)
	c := audit.Counts{Remaining: left}
	for _, o := range orders {
		c.Sold += o.Units[item.ItemID]
	}
	c.Oversold, c.LostUpdates = max(0, c.Sold-item.InitialStock), c.Sold+left-item.InitialStock
	return c, err
}

// counter returns the counter of an item in Redis, or the fallback where there is none.
func (s *Show) counter(ctx context.Context, item uint64, fallback int64) (int64, error) {
	counted := s.Testbed.Redis().Client.Do(ctx, "GET", declared.KeysOf(s.Of.State.Keys, item)[0])
	if counted.Value == nil {
		return fallback, counted.Err
	}
	return counted.Int64()
}

// firstFailure is an answer that should not be, and what its shop's log says of it.
func (s *Show) firstFailure() string {
	for _, h := range s.customers.hits {
		if h.Got() != load.Failed { // what has no answer yet may get one now
			continue
		}
		answer := fmt.Sprintf("%d %s", h.Status, h.Body)
		if s.Testbed == nil {
			return answer
		}
		return answer + "\nthe shop's log: " + s.Testbed.Shops[h.shop].LogLine(`"request":"`+h.id+`"`)
	}
	return ""
}

// pay adds to purchases what their customers have paid, without what the database says is to be returned.
func (s *Show) pay(ctx context.Context, purchases map[string]count.Purchase) error {
	for key, p := range purchases {
		p.Paid = new(int64)
		purchases[key] = p
	}
	seen := map[string]bool{}
	for _, h := range s.customers.hits {
		w := h.wanted
		if w.Act != load.Confirming || w.Stolen || seen[w.Reference] {
			continue
		}
		seen[w.Reference] = true
		var toReturn int64
		err := s.Store.Pool().QueryRowContext(ctx, "SELECT COUNT(*) FROM payments WHERE reference = ? AND state <> ?", w.Reference, stock.Taken).Scan(&toReturn)
		if err != nil {
			return err
		}
		*purchases[h.wish.key].Paid += 1 - toReturn
	}
	return nil
}

// Differ notes where the orders that stand differ from what their customers were answered.
func (r *Result) Differ(f verdict.Facts) {
	r.Duplicates, r.HalfSold, r.AnswersWithoutOrder = f.Twice, f.HalfSold, f.Unordered
	r.Unpaid, r.Unserved = f.Unpaid, f.Unserved
	r.OrdersWithoutAnswer, r.Denied = f.Unanswered, f.Denied
}
