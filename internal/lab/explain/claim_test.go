package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// claim is a record, and the facts that a sentence has of it.
type claim struct {
	Evidence
	f Facts
}

// of is the request that a sentence names.
func (c claim) of(s *Sale) Request {
	if s != nil {
		for _, r := range c.Requests {
			if Label(r.ID) == s.Request && r.Shop == s.Shop {
				return r
			}
		}
	}
	return Request{}
}

// events are the points of a request, one kind of them, in their order.
func (c claim) events(s *Sale, p sale.Point) (all []labmode.Event) {
	id := c.of(s).ID
	for _, e := range c.Events {
		if e.Request == id && e.Point == p {
			all = append(all, e)
		}
	}
	return all
}

// at is when a request passed a point first; the zero time if it did not.
func (c claim) at(s *Sale, points ...sale.Point) time.Time {
	for _, p := range points {
		if all := c.events(s, p); len(all) > 0 {
			return all[0].Time
		}
	}
	return time.Time{}
}

func (c claim) entered(s *Sale) time.Time { return c.at(s, sale.Acquired, sale.Acquiring, sale.Read) }

// gone is when a request was out, or the end of the attack.
func (c claim) gone(s *Sale) time.Time {
	if spec, from := c.fault(s); spec.Action == labmode.Kill {
		return from
	}
	if all := c.events(s, sale.Released); len(all) > 0 {
		return all[len(all)-1].Time
	}
	return first(c.at(s, sale.Written), c.of(s).Answered, c.Ended)
}

// fault is the fault that a request met, and when it began.
func (c claim) fault(s *Sale) (labmode.Fault, time.Time) {
	id := c.of(s).ID
	for _, e := range c.Events {
		spec, _ := e.Facts["fault"].(string)
		if fault, err := labmode.ParseFault(spec); err == nil && e.Request == id {
			return fault, e.Time
		}
	}
	return labmode.Fault{}, time.Time{}
}

func (c claim) order(s *Sale) *stock.Order {
	id := c.of(s).ID
	for i := range c.Orders {
		if c.Orders[i].RequestID == id {
			return &c.Orders[i]
		}
	}
	return nil
}

// after is a time of the facts that counts from the holder's entry.
func (c claim) after() time.Time {
	return c.entered(c.f.Holder).Add(time.Duration(c.f.AfterMS * float64(time.Millisecond)))
}

// sameStock says whether two orders, the second of which was made later, were made of one stock.
func (c claim) sameStock() string {
	one, two := c.order(c.f.Holder), c.order(c.f.Other)
	if one == nil || two == nil {
		return "they have no orders"
	}
	place := func(o *stock.Order) int {
		return slices.IndexFunc(c.Orders, func(x stock.Order) bool { return x.ID == o.ID })
	}
	return unless(one.StockRead == c.f.Stock && two.StockRead == c.f.Stock && place(one) < place(two),
		"the orders read %d and %d, in the places %d and %d", one.StockRead, two.StockRead, place(one), place(two))
}

// hasFact says whether a request noted a fact at a point.
func (c claim) hasFact(s *Sale, p sale.Point, name, value string) string {
	return unless(slices.ContainsFunc(c.events(s, p), func(e labmode.Event) bool { return e.Facts[name] == value }), "%s did not note %s %s", s.Request, name, value)
}

func (c claim) changed(at time.Time, kinds ...RedisEvent) bool {
	return slices.ContainsFunc(c.Changes, func(ch Change) bool {
		return slices.Contains(kinds, ch.What) && ch.Time.Sub(at).Abs() < time.Millisecond
	})
}

// both says whether the second request entered while the first one was inside. Points are noted a
// little after they were passed.
func (c claim) both(first, second *Sale) string {
	in, from, until := c.entered(second), c.entered(first), c.gone(first)
	return unless(!in.IsZero() && !from.IsZero() && in.After(from.Add(-clockTolerance)) && in.Before(until.Add(clockTolerance)),
		"%s entered at %s, and %s was inside from %s to %s", second.Request, in, first.Request, from, until)
}

// apart says whether the second request entered after the first one had begun to release, and both have
// orders of one stock.
func (c claim) apart() string {
	one, two := c.order(c.f.Holder), c.order(c.f.Other)
	out, in := c.at(c.f.Holder, sale.Releasing), c.entered(c.f.Other)
	return unless(one != nil && two != nil && one.StockRead == two.StockRead && !out.IsZero() && !in.Before(out),
		"the orders are %+v and %+v, and %s entered at %s", one, two, c.f.Other.Request, in)
}

// lease is that of a request's lock.
func (c claim) lease(s *Sale) time.Duration { return cmp.Or(c.of(s).Lease, c.Evidence.Lease) }

// ownLease says whether the lease that a sentence names is that of the sale which it is about.
func (c claim) ownLease() string {
	lease := c.lease(cmp.Or(c.f.Third, c.f.Holder))
	return unless(c.f.LeaseMS == 0 || len(c.Locks) > 0 || c.f.LeaseMS == words.Rounded(lease), "its lease is %s", lease)
}

// longerThanLease allows for an entry that was noted late.
func (c claim) longerThanLease(what float64) string {
	lease := c.lease(c.f.Holder)
	return unless(what > words.Rounded(lease-clockTolerance), "the lease is %s", lease)
}

func unless(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func all(wrong ...string) string {
	for _, w := range wrong {
		if w != "" {
			return w
		}
	}
	return ""
}

// intervened says whether something was being done to a shop.
func (c claim) intervened(what, shop string, from, to time.Time) bool {
	return slices.ContainsFunc(c.Interventions, func(d Intervention) bool {
		return d.What == what && d.Shop == shop && d.From.Before(to) && (d.Until.IsZero() || d.Until.After(from))
	})
}

// next wants another request that entered when the holder was out, or dead.
func (c claim) next() string {
	return unless(c.entered(c.f.Other).After(c.entered(c.f.Holder)), "%s had not entered later", c.f.Other.Request)
}

// nobodyElse wants that no other sale entered between a holder's entry and the end of its fault.
func (c claim) nobodyElse() string {
	from, until := c.entered(c.f.Holder), c.gone(c.f.Holder)
	if _, faulted := c.fault(c.f.Holder); !faulted.IsZero() {
		id := c.of(c.f.Holder).ID
		for _, e := range c.Events {
			if e.Request == id && e.Time.After(faulted) {
				until = e.Time
				break
			}
		}
	}
	for _, r := range c.Requests {
		s := &Sale{Label(r.ID), r.Shop}
		if in := c.entered(s); r.ID != c.of(c.f.Holder).ID && in.After(from.Add(clockTolerance)) && in.Before(until.Add(-clockTolerance)) && c.order(s) != nil {
			return s.Request + " entered meanwhile"
		}
	}
	return ""
}

// lateRelease wants a release after the end of its own lease that deleted a key.
func (c claim) lateRelease() string {
	third := c.entered(c.f.Third)
	done := third.Add(time.Duration(c.f.AfterMS * float64(time.Millisecond)))
	return all(c.longerThanLease(c.f.AfterMS), c.both(c.f.Holder, c.f.Other),
		unless(slices.ContainsFunc(c.Changes, func(ch Change) bool {
			return ch.What == eventDel && ch.Time.After(done.Add(-clockTolerance)) && ch.Time.Before(c.entered(c.f.Other).Add(busyTolerance))
		}), "nothing was deleted then"),
		unless(third.Before(c.entered(c.f.Holder)), "%s did not enter before %s", c.f.Third.Request, c.f.Holder.Request))
}

func (c claim) killedAt(points ...sale.Point) string {
	spec, _ := c.fault(c.f.Holder)
	return unless(spec.Action == labmode.Kill && (len(points) == 0 || slices.Contains(points, spec.Point)), "its fault is %s", spec)
}

func (c claim) hasOrder() string {
	o := c.order(c.f.Holder)
	return unless(o != nil && Number(o.ID) == c.f.Order, "its order is %+v", o)
}

// purchased says that an order has the request of the holder, or its key.
func (c claim) purchased(id Number) string {
	r := c.of(c.f.Holder)
	return unless(slices.ContainsFunc(c.Orders, func(o stock.Order) bool {
		return Number(o.ID) == id && (o.RequestID == r.ID || o.IdempotencyKey != nil && *o.IdempotencyKey == r.Key)
	}), "it has no order %d", id)
}

func (c claim) noOrder() string { return unless(c.order(c.f.Holder) == nil, "it has an order") }

func (c claim) outcome(want string) string {
	return unless(c.of(c.f.Holder).Outcome == want, "it was answered with %s", c.of(c.f.Holder).Outcome)
}

// held is what the shop noted of a hold when it confirmed it.
func (c claim) lostHold() string {
	written := c.events(c.f.Holder, sale.Written)
	if len(written) == 0 {
		return "it was never written"
	}
	n, noted := NumberOf(written[0].Facts, "held")
	return unless(noted && n == 0, "the shop noted %v", written[0].Facts)
}

func (c claim) between(kinds ...RedisEvent) string {
	from, to := c.entered(c.f.Holder), c.entered(c.f.Other)
	return unless(c.changed(c.after(), kinds...) && c.after().After(from) && c.after().Before(to.Add(clockTolerance)), "Redis announced no such thing between %s and %s", from, to)
}

func (c claim) unordered() (n int) {
	for _, r := range c.Requests {
		if r.Outcome == "sold" && !slices.ContainsFunc(c.Orders, func(o stock.Order) bool {
			return o.RequestID == r.ID || o.IdempotencyKey != nil && *o.IdempotencyKey == r.Key
		}) {
			n++
		}
	}
	return n
}

func (c claim) locked(ttl bool) string {
	return unless(len(c.Locks) > 0 && c.Locks[0].Key == c.f.Key && (c.Locks[0].TTL >= 0) == ttl, "Redis had %+v", c.Locks)
}

func (c claim) faultLasted() string {
	spec, from := c.fault(c.f.Holder)
	id, until := c.of(c.f.Holder).ID, c.Ended
	for _, end := range []time.Time{c.of(c.f.Holder).Answered, c.of(c.f.Holder).LetGo} {
		if end.After(from) {
			until = end
		}
	}
	for _, e := range c.Events {
		if e.Request == id && e.Time.After(from) && e.Time.Before(until) {
			until = e.Time
		}
	}
	return unless(c.f.LastedMS == words.Rounded(until.Sub(from)), "the fault %s was from %s to %s", spec, from, until)
}

func (c claim) announced(what RedisEvent) string {
	return unless(slices.ContainsFunc(c.Changes, func(ch Change) bool { return ch.What == what }), "Redis never announced %s", what)
}
