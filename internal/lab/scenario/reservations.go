package scenario

import (
	"fmt"
	"net/http"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// ofReservations are the scenarios of reservations: a few customers who reserve three units each, and a backend that
// passes on what the payment provider says. Each attacks one property. Nothing is swept but by a request.
var ofReservations = []trial.Scenario{
	reserving("held-units", "A has reserved three of four units, and B wants three",
		4, declared.CountsUnits, verdict.Oversold, heldUnits),
	reserving("confirmation-meets-expiry", "a payment comes when the time is over: before the sweep, and while the sweep overtakes it",
		7, declared.StaysEnded, verdict.Oversold, confirmationMeetsExpiry),
	reserving("confirmed-again", "the browser's return and the provider's notice confirm one payment, one after the other",
		7, declared.PaysOnce, verdict.Twice, func(c *checkout) { c.confirm(c.buy("A", first), second, 1) }),
	reserving("paid-twice", "a customer pays for a reservation by two payments",
		7, declared.PaysOnce, verdict.Twice, func(c *checkout) { c.confirm(c.buy("A", first), second, 2) }),
	reserving("stolen-reference", "B's reservation is confirmed by the payment of A",
		7, declared.PaysOnce, verdict.Unpaid, stolenReference),
	reserving("paid-late", "A's reservation has expired, B has bought its units, and A's payment comes",
		4, declared.StaysEnded, verdict.Oversold, paidLate),
	reserving("paid-late-and-free", "A's payment comes late, its units are free, and the shop takes it; then B wants three",
		4, declared.StaysEnded, verdict.Oversold, paidLateAndFree),
	reserving("failure-after-confirmation", "the provider says of a payment that it failed, after it was confirmed",
		7, declared.StaysConfirmed, verdict.Unserved, failureAfterConfirmation),
	reserving("release-beside-confirmation", "a customer's release is on its way while the payment is confirmed",
		7, declared.StaysConfirmed, verdict.Unserved, releaseBesideConfirmation),
}

func reserving(name, doc string, stock int64, attacks declared.Property, otherwise verdict.Kind, play func(*checkout)) trial.Scenario {
	return trial.Scenario{
		Group: trial.Reservations, Name: name, Doc: doc, Attacks: attacks, Demands: []trial.Demand{{Property: attacks, Otherwise: otherwise}}, Stock: []int64{stock},
		Few: few(func(s *script) {
			c := &checkout{script: s}
			if play(c); !c.bought {
				c.fail(fmt.Errorf("%w: a payment is taken", trial.ErrNotSeen))
			}
		}),
	}
}

// The shops of these scenarios.
const (
	first = iota
	second
	takesLate = trial.TakesLate
)

// checkout is a play of reservations. Its methods wait for the answers, and tell them.
type checkout struct {
	*script
	bought bool // a payment was taken
}

// The times for which units are reserved. A short one ends in the play.
const (
	shortly = 1
	long    = 600
)

func (c *checkout) request(w trial.Wish, what words.Text) *trial.Customer {
	return c.answered(c.ask(w), what)
}

// answered waits for the answer to a request, and tells it unless it is that it was done. A provider asks again until it is
// answered, and a customer who was not served has met nothing.
func (c *checkout) answered(of *trial.Customer, what words.Text) *trial.Customer {
	c.await("the answer to: "+what.String(), of.Answered)
	got := of.Got()
	c.bought = c.bought || got == load.Sold
	if got != load.Done {
		what = words.Of("story.came-to", "what", what, "outcome", got)
	}
	c.tell(what)
	if c.err == nil && (of.Status == 0 || of.Status == http.StatusServiceUnavailable) {
		c.fail(fmt.Errorf("%w: an answer that decides: %s", trial.ErrNotSeen, what))
	}
	return of
}

// reserve reserves three units.
func (c *checkout) reserve(name string, shop, seconds int) *trial.Customer {
	return c.request(trial.Wish{Name: name, Shop: shop, Quantity: 3, Act: load.Reserving, Seconds: seconds}, words.Of("story.reserves", "who", name, "units", 3))
}

// reserved is [checkout.reserve] for a customer who must have them.
func (c *checkout) reserved(name string, shop, seconds int) *trial.Customer {
	of := c.reserve(name, shop, seconds)
	if !of.Reserved() {
		c.fail(fmt.Errorf("%w: %s has 3 units; it was answered with %s", trial.ErrNotSeen, name, of.Got()))
	}
	return of
}

func (c *checkout) act(of *trial.Customer, shop int, act load.Act, what words.Text) {
	c.request(trial.Wish{Name: of.Name(), Shop: shop, Act: act, Of: of}, what)
}

// toProvider begins the payment of a reservation.
func (c *checkout) toProvider(of *trial.Customer) {
	c.act(of, first, load.Paying, words.Of("story.to-provider", "who", of.Name()))
}

// payment is the confirmation of a reservation by the n-th payment of a customer.
func (c *checkout) payment(of, by *trial.Customer, shop, n int) trial.Wish {
	return trial.Wish{
		Name: of.Name(), Shop: shop, Act: load.Confirming, Of: of,
		Reference: fmt.Sprintf("%s-%d-of-%d", by.Name(), n, c.Items[0].ItemID), Stolen: of != by,
	}
}

// confirm confirms a reservation by a payment of its customer.
func (c *checkout) confirm(of *trial.Customer, shop, n int) {
	c.request(c.payment(of, of, shop, n), words.Of("story.payment", "count", n, "who", of.Name()))
}

// buy reserves three units, and pays for them where they could be had.
func (c *checkout) buy(name string, shop int) *trial.Customer {
	of := c.reserve(name, shop, long)
	if of.Reserved() {
		c.confirm(of, shop, 1)
	}
	return of
}

// beside sends a request that is held before it changes anything, while others do what they do.
func (c *checkout) beside(w trial.Wish, held, done words.Text, others func()) {
	w.At, w.Action = sale.Write, labmode.Hold
	of := c.ask(w)
	c.see(func() bool { return c.Reached(of) || of.Answered() }, held)
	if !c.Reached(of) {
		c.fail(fmt.Errorf("%w: %s; it was answered with %s", trial.ErrNotSeen, held, of.Got()))
	}
	others()
	c.release(of)
	c.answered(of, done)
}

// overdue waits until a reservation's time is over.
func (c *checkout) overdue(of *trial.Customer) {
	if c.err == nil {
		c.fail(c.Overdue(c.ctx, of))
	}
}

func (c *checkout) sweep() {
	c.request(trial.Wish{Name: "sweep", Shop: second, Act: load.Sweeping}, words.Of("story.sweep"))
}

func heldUnits(c *checkout) {
	a := c.reserved("A", first, long)
	c.buy("B", second)
	c.confirm(a, first, 1)
}

// confirmationMeetsExpiry has C's confirmation come after its time and before the sweep, and the sweep come while A's
// confirmation is on its way.
func confirmationMeetsExpiry(c *checkout) {
	late := c.reserved("C", first, shortly)
	c.overdue(late)
	c.tell(words.Of("story.overdue", "who", "C"))
	c.confirm(late, first, 1)
	a := c.reserved("A", first, shortly)
	c.toProvider(a)
	c.overdue(a)
	c.beside(c.payment(a, a, first, 1), words.Of("story.late-confirmation", "who", "A"), words.Of("story.payment", "count", 1, "who", "A"), func() {
		c.sweep()
		c.buy("B", second)
	})
}

func stolenReference(c *checkout) {
	a := c.buy("A", first)
	b := c.reserved("B", second, long)
	c.request(c.payment(b, a, second, 1), words.Of("story.payment", "count", 1, "who", "A", "other", "B"))
}

func paidLate(c *checkout) {
	a := c.reserved("A", first, shortly)
	c.overdue(a)
	c.sweep()
	c.buy("B", second)
	c.confirm(a, first, 1)
}

// paidLateAndFree has the payment come twice: the second answer is the first one's.
func paidLateAndFree(c *checkout) {
	a := c.reserved("A", takesLate, shortly)
	c.overdue(a)
	c.sweep()
	for range 2 {
		c.confirm(a, takesLate, 1)
	}
	c.buy("B", takesLate)
}

func failureAfterConfirmation(c *checkout) {
	a := c.reserved("A", first, long)
	c.toProvider(a)
	c.confirm(a, first, 1)
	c.act(a, second, load.Failing, words.Of("story.payment-failed", "who", "A"))
}

func releaseBesideConfirmation(c *checkout) {
	a := c.reserved("A", first, long)
	release := trial.Wish{Name: "A", Shop: second, Act: load.Releasing, Of: a}
	c.beside(release, words.Of("story.release-writes", "who", "A"), words.Of("story.release", "who", "A"), func() { c.confirm(a, first, 1) })
}
