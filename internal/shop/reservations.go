package shop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-playground/validator/v10"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Reservations are the terms of reservations. A customer reserves and releases units on the public listener. Only
// the listener of the staff begins, confirms and fails payments: a customer who could confirm would pay
// nothing.
type Reservations struct {
	stock.Terms
	Kept time.Duration // how long the customer, the lines and the history of ended ones are kept; 0 for no end
}

// check is [Config.check] of what only reservations need.
func (r *Reservations) check(cfg Config) error {
	switch {
	case r == nil:
		return nil
	case cfg.Subject == nil || cfg.Anonymous:
		return errors.New("--reservations (SHOP_RESERVATIONS) needs --subject-header (SHOP_SUBJECT_HEADER), and no --anonymous (SHOP_ANONYMOUS)")
	case cfg.Limit == 0:
		return errors.New("--reservations (SHOP_RESERVATIONS) needs --limit (SHOP_LIMIT): units cost nothing to hold")
	case cfg.Staff == nil:
		return errors.New("--reservations (SHOP_RESERVATIONS) needs --staff-addr (SHOP_STAFF_ADDR), where payments are confirmed")
	case cfg.KeyTTL > 0 && r.Longest >= cfg.KeyTTL:
		return fmt.Errorf("--reservation-max (SHOP_RESERVATION_MAX) is %s: want less than --key-ttl (SHOP_KEY_TTL), which is %s", r.Longest, cfg.KeyTTL)
	case r.Kept > 0 && (cfg.KeyTTL == 0 || r.Kept < cfg.KeyTTL):
		return fmt.Errorf("--reservations-kept (SHOP_RESERVATIONS_KEPT) is %s: want 0, or at least --key-ttl (SHOP_KEY_TTL), which is %s: a key has its customer's name", r.Kept, cfg.KeyTTL)
	}
	return nil
}

const (
	// ReservationsPath is the path to which reservations are posted.
	ReservationsPath = apiPrefix + "/reservations"
	oneReservation   = "/reservations/:reservation"
)

// offerReservations has items shown with what is held of them, and places kept for payments.
func (s *Shop) offerReservations() {
	if s.Reservations != nil {
		s.payments = newSlots(s.maxReads())
		s.view, s.list, s.holds = s.store.View, s.store.ViewItems, remembering{s.store, s.seller}
	}
}

// remembering is the store, and remembers refusals together with the sales.
type remembering struct {
	*stock.Store
	seller *strategy.Seller
}

func (r remembering) Hold(ctx context.Context, wanted stock.Sale, seconds int64, terms stock.Terms) (h stock.Hold, err error) {
	err = r.seller.RefuseEarly(ctx, wanted, func() (err error) {
		h, err = r.Store.Hold(ctx, wanted, seconds, terms)
		return err
	})
	return h, err
}

func (r remembering) EndOverdue(ctx context.Context, shop string, wanted stock.Sale) (ended int, err error) {
	if ended, err = r.Store.EndOverdue(ctx, shop, wanted); ended > 0 {
		r.seller.Forget(wanted)
	}
	return ended, err
}

// reservationRoutes are those of customers.
func (s *Shop) reservationRoutes(api *gin.RouterGroup) {
	api.POST("/reservations", s.reserving(s.reserve))
	api.Match(read, "/reservations", s.reserving(s.getReservations))
	api.Match(read, oneReservation, s.reserving(s.getReservation))
	api.POST(oneReservation+"/release", s.reserving(s.release))
	api.POST(oneReservation+"/extension", s.reserving(s.extend))
}

// paymentRoutes are those of the merchant's backend.
func (s *Shop) paymentRoutes(staff *gin.RouterGroup) {
	staff.POST(oneReservation+"/payment", s.reserving(s.beginPayment))
	staff.POST(oneReservation+"/confirmation", s.reserving(s.confirm))
	staff.POST(oneReservation+"/failure", s.reserving(s.failPayment))
	staff.Match(read, "/payments/:reference", s.reserving(s.getPayment))
	staff.POST("/payments/:reference/return", s.reserving(s.returnPayment))
}

// checkReservations adds the tags of reservations' bodies: see [inRange].
func checkReservations(v *validator.Validate) {
	if err := v.RegisterValidation("word", func(f validator.FieldLevel) bool { return words.MatchString(f.Field().String()) }); err != nil {
		panic(err) // the tag's name cannot be
	}
	v.RegisterAlias("seconds", fmt.Sprintf("min=1,max=%d", maxSeconds))
}

// words are references of payments, and reasons. openapi.yaml has the pattern, too.
var words = regexp.MustCompile(wordPattern)

const (
	wordPattern = `^[A-Za-z0-9_-]{1,64}$`
	ofWords     = " must be 1 to 64 letters, digits, underscores and hyphens"
)

// reserving is [Shop.handle] for a shop that offers reservations.
func (s *Shop) reserving(handler func(*gin.Context) error) gin.HandlerFunc {
	return s.handle(func(c *gin.Context) error {
		if s.Reservations == nil {
			return refusal{notFound, "this shop offers no reservations"}
		}
		return handler(c)
	})
}

// newReservation is the body of a reservation.
type newReservation struct {
	Lines   []newLine `json:"lines" range:"lines,dive"`
	Seconds whole     `json:"seconds" range:"seconds"`
}

// maxSeconds bounds what a shop can be configured for, too.
const maxSeconds = 24 * 60 * 60

func (newReservation) example() string {
	return `{"lines": [{"item_id": 1, "quantity": 1}], "seconds": 600}`
}

func (newReservation) ranges() string { return newBasket{}.ranges() + "; " + extension{}.ranges() }

type extension struct {
	Seconds whole `json:"seconds" range:"seconds"`
}

func (extension) example() string { return `{"seconds": 600}` }

func (extension) ranges() string {
	return fmt.Sprintf("seconds must be a whole number from 1 to %d", maxSeconds)
}

type releasing struct {
	Reason string `json:"reason" range:"word"`
}

func (releasing) example() string { return `{"reason": "changed-mind"}` }

func (releasing) ranges() string { return "reason" + ofWords }

type confirmation struct {
	Reference string `json:"reference" range:"word"`
}

func (confirmation) example() string { return `{"reference": "pi_3NkZ1a2B"}` }

func (confirmation) ranges() string { return "reference" + ofWords }

// publicReservation is a reservation as customers and staff see it.
type publicReservation struct {
	ID        string          `json:"id"`
	State     stock.HoldState `json:"state"`
	Lines     []publicLine    `json:"lines"`
	CreatedAt time.Time       `json:"created_at"`
	HeldUntil time.Time       `json:"held_until"`
	PayUntil  *time.Time      `json:"pay_until,omitempty"`
	EndedAt   *time.Time      `json:"ended_at,omitempty"`
	OrderID   *string         `json:"order_id,omitempty"`
	Reference *string         `json:"reference,omitempty"`
	InsteadOf *string         `json:"instead_of,omitempty"`

	History []publicStep `json:"history,omitempty"`
}

type publicStep struct {
	State  stock.HoldState `json:"state"`
	At     time.Time       `json:"at"`
	By     string          `json:"by,omitempty"` // for staff
	Reason string          `json:"reason,omitempty"`
}

func showReservation(h stock.Hold) publicReservation {
	public := publicReservation{
		ID: h.PublicID, State: h.State, Lines: []publicLine{}, CreatedAt: h.CreatedAt, HeldUntil: h.HeldUntil, PayUntil: h.PayUntil,
		EndedAt: h.EndedAt, OrderID: h.OrderID, Reference: h.Reference, InsteadOf: h.InsteadOf,
	}
	for _, line := range h.Lines {
		public.Lines = append(public.Lines, publicLine{ItemID: line.ItemID, Quantity: line.Quantity})
	}
	return public
}

// reserve holds units. It is made once under its key, which it needs: a hold that is made twice costs the
// merchant sales.
func (s *Shop) reserve(c *gin.Context) error {
	body, err := readBody[newReservation](c)
	if err != nil {
		return err
	}
	wanted, err := s.readCustomer(c)
	if err != nil {
		return err
	}
	wanted.SetLines(linesOf(body.Lines))
	switch longest := int64(s.Reservations.Longest / time.Second); {
	case wanted.Subject == "":
		return refusal{malformed, "a reservation needs a customer, whom the gateway in front of the shop names"}
	case wanted.IdempotencyKey == "":
		return refusal{malformed, "send an " + IdempotencyKeyHeader + ": a reservation that is repeated under it is made once"}
	case int64(body.Seconds) > longest:
		return refusal{invalid, fmt.Sprintf("seconds must be at most %d here", longest)}
	}
	before := func(ctx context.Context, failed error) (stock.Hold, error) {
		made, err := look(ctx, s.store, failed, func(at *stock.Store) (stock.Hold, error) {
			return at.HoldByKey(ctx, wanted.Subject, wanted.IdempotencyKey)
		})
		forgotten := made.Subject == "" // its lines with it, and its key may come last
		if lines, _ := made.Wanted(); err == nil && (made.Seconds != int64(body.Seconds) || !forgotten && !slices.Equal(lines, wanted.Lines())) {
			err = errKeyReused
		}
		return made, err
	}
	replayed := false
	h, err := inSlot(s, c, s.sales, func(ctx context.Context) (h stock.Hold, err error) {
		h, replayed, err = once(ctx, before, func(ctx context.Context) (stock.Hold, error) { return s.hold(ctx, wanted, int64(body.Seconds)) })
		return h, err
	})
	if errors.Is(err, stock.ErrTooManyHolds) && s.Reservations.Open == 0 {
		return refusal{tooManyReservations, "no new ones are made here now"}
	}
	if err != nil {
		return err
	}
	c.Set(outcomeKey, "reserved")
	if replayed {
		c.Set(outcomeKey, "replayed")
		c.Header(ReplayedHeader, "true")
	} else {
		s.metrics.reservations[stock.Held].Inc()
	}
	c.Header("Location", ReservationsPath+"/"+h.PublicID)
	c.JSON(http.StatusCreated, showReservation(h))
	return nil
}

// hold ends overdue holds of the items and of the customer, and tries once more, before it is refused for them. It
// repeats what lost against another transaction, for as long as a sale waits for a lock.
func (s *Shop) hold(ctx context.Context, wanted stock.Sale, seconds int64) (stock.Hold, error) {
	patient, cancel := context.WithTimeout(ctx, s.Deps.Wait)
	defer cancel()
	for looked := false; ; {
		h, err := s.holds.Hold(ctx, wanted, seconds, s.Reservations.Terms)
		switch {
		case !looked && (errors.Is(err, stock.ErrHeld) || errors.Is(err, stock.ErrLimit) || errors.Is(err, stock.ErrTooManyHolds)):
			looked = true
			if ended, _ := s.holds.EndOverdue(ctx, s.Name, wanted); ended > 0 {
				continue
			}
		case errors.Is(err, stock.ErrConflict) && !errors.Is(err, stock.ErrUnknown):
			select {
			case <-time.After(s.Deps.Retry):
				continue
			case <-patient.Done():
			}
		}
		return h, err
	}
}

// asked returns the id of the reservation of a request, and who asks.
func (s *Shop) asked(c *gin.Context) (id string, by stock.Author, err error) {
	if id, err = uuidOf(c.Param("reservation"), "a reservation's id is a UUID, as the answer to it gave it"); err != nil {
		return id, by, err
	}
	by = stock.Author{RequestID: requestID(c), Shop: s.Name}
	by.Subject, err = s.subject(c)
	return id, by, err
}

// theirs returns a reservation, unless it is another customer's. Staff may have any.
func (s *Shop) theirs(ctx context.Context, c *gin.Context, id string, by stock.Author) (stock.Hold, error) {
	h, err := find(ctx, s.store, func(at *stock.Store) (stock.Hold, error) { return at.HoldByID(ctx, id) })
	if err == nil && !c.GetBool(forStaff) && h.Subject != by.Subject {
		err = stock.ErrNotFound
	}
	return h, err
}

// getReservation shows a reservation with its history.
func (s *Shop) getReservation(c *gin.Context) error {
	id, by, err := s.asked(c)
	if err != nil {
		return err
	}
	var steps []stock.HoldStep
	h, err := inSlot(s, c, s.reads, func(ctx context.Context) (stock.Hold, error) {
		h, err := s.theirs(ctx, c, id, by)
		if err == nil {
			steps, err = s.store.HoldHistory(ctx, h)
		}
		return h, err
	})
	if err != nil {
		return err
	}
	shown := showReservation(h)
	for _, step := range steps {
		public := publicStep{State: step.Becomes, At: step.At, Reason: step.Reason}
		if c.GetBool(forStaff) {
			public.By = step.DoneBy
		}
		shown.History = append(shown.History, public)
	}
	c.JSON(http.StatusOK, shown)
	return nil
}

type reservationList struct {
	Reservations []publicReservation `json:"reservations"`
	Next         string              `json:"next,omitempty"` // where the list goes on
}

// getReservations lists those of the customer, the newest first.
func (s *Shop) getReservations(c *gin.Context) error {
	subject, err := s.subject(c)
	if err != nil {
		return err
	}
	before, limit, err := queryPage(c)
	if err != nil {
		return err
	}
	holds, err := inSlot(s, c, s.reads, func(ctx context.Context) ([]stock.Hold, error) {
		return s.store.HoldsOf(ctx, subject, before, limit)
	})
	if err != nil {
		return err
	}
	list := reservationList{Reservations: []publicReservation{}}
	for _, h := range holds {
		list.Reservations = append(list.Reservations, showReservation(h))
	}
	if len(holds) == limit {
		list.Next = nextPage(c, holds[limit-1].PublicID)
	}
	c.JSON(http.StatusOK, list)
	return nil
}

func (s *Shop) release(c *gin.Context) error {
	body, err := readBody[releasing](c)
	if err != nil {
		return err
	}
	return s.move(c, s.sales, stock.Release(body.Reason))
}

func (s *Shop) extend(c *gin.Context) error {
	body, err := readBody[extension](c)
	if err != nil {
		return err
	}
	return s.move(c, s.sales, stock.Extend(int64(body.Seconds), s.Reservations.Terms))
}

func (s *Shop) beginPayment(c *gin.Context) error {
	return s.move(c, s.payments, stock.BeginPayment(s.Reservations.Terms))
}

// failPayment is among the changes: it waits for the items.
func (s *Shop) failPayment(c *gin.Context) error { return s.move(c, s.changes, stock.Fail()) }

func (s *Shop) confirm(c *gin.Context) error {
	body, err := readBody[confirmation](c)
	if err == nil {
		err = s.moveBy(c, s.payments, func(ctx context.Context, by stock.Author, id string) (stock.Hold, error) {
			paid := stock.Sale{RequestID: by.RequestID, Shop: s.Name, Strategy: s.Strategy.Name, Limit: s.Limit, Holds: true}
			return s.holds.Confirm(ctx, by, id, body.Reference, paid, s.Reservations.Terms)
		})
	}
	r, _ := errors.AsType[refusal](err)
	recorded := ""
	switch is := func(of error) bool { return errors.Is(err, of) }; {
	case is(stock.ErrTwiceReturned) || is(stock.ErrLateReturned): // it needs nobody
	case is(stock.ErrPaidTwice) || is(stock.ErrPaidLate):
		recorded = "yes"
	case is(stock.ErrReference) || is(stock.ErrReferences) || is(stock.ErrNotFound) || r.Problem == malformed || r.Problem == invalid:
		recorded = "no"
	} // the rest is sent again
	if recorded != "" && body.Reference != "" {
		s.metrics.refusedPayments.WithLabelValues(recorded).Inc()
		level := slog.LevelWarn
		if recorded == "no" { // it is in no table, so a log of errors alone must have it
			level = slog.LevelError
		}
		s.money.Log(c.Request.Context(), level, "a payment was not taken", "reservation", c.Param("reservation"), "reference", body.Reference,
			"error", err, "request", requestID(c))
	}
	return err
}

func (s *Shop) move(c *gin.Context, of *slots, to stock.Transition) error {
	return s.moveBy(c, of, func(ctx context.Context, by stock.Author, id string) (stock.Hold, error) {
		return s.holds.Move(ctx, by, id, to)
	})
}

// moveBy makes a transition of the reservation of a request, and answers with what it is then.
func (s *Shop) moveBy(c *gin.Context, of *slots, move func(ctx context.Context, by stock.Author, id string) (stock.Hold, error)) error {
	id, by, err := s.asked(c)
	if err != nil {
		return err
	}
	h, err := inSlot(s, c, of, func(ctx context.Context) (stock.Hold, error) {
		if !c.GetBool(forStaff) {
			if h, err := s.theirs(ctx, c, id, by); err != nil {
				return h, err
			}
		}
		return move(ctx, by, id)
	})
	if err != nil {
		return err
	}
	if h.Moved {
		s.metrics.reservations[h.State].Inc()
	}
	c.JSON(http.StatusOK, showReservation(h))
	return nil
}

func (s *Shop) getPayment(c *gin.Context) error {
	return s.showPayment(c, func(ctx context.Context) (stock.Payment, error) {
		return stock.AtPrimary(ctx, s.store, func(at *stock.Store) (stock.Payment, error) { return at.Payment(ctx, c.Param("reference")) })
	})
}

// returnPayment notes that money was given back. It needs a key, as every change by staff does; the reference
// alone decides whether it is noted again.
func (s *Shop) returnPayment(c *gin.Context) error {
	by, err := s.author(c)
	if err != nil {
		return err
	}
	return s.showPayment(c, func(ctx context.Context) (stock.Payment, error) { return s.store.Return(ctx, by, c.Param("reference")) })
}

func (s *Shop) showPayment(c *gin.Context, find func(context.Context) (stock.Payment, error)) error {
	if _, err := s.subject(c); err != nil {
		return err
	}
	if !words.MatchString(c.Param("reference")) {
		return refusal{malformed, confirmation{}.ranges()}
	}
	p, err := inSlot(s, c, s.payments, find)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, p)
	return nil
}

// Overdue reservations are ended in rounds, at this interval by default, so many in one transaction.
const (
	sweepInterval = 250 * time.Millisecond
	sweepBatch    = 64
)

// anywhere is a function for [Shop.clear] that finds by itself where to begin.
func anywhere(clear func(ctx context.Context, ttl time.Duration, limit int) (int, error)) clearing {
	return func(ctx context.Context, from time.Time, ttl time.Duration, limit int) (int, time.Time, error) {
		n, err := clear(ctx, ttl, limit)
		return n, from, err
	}
}

// endReservations ends overdue reservations until ctx ends, counts what is held, and clears what is old.
func (s *Shop) endReservations(ctx context.Context) {
	if s.Reservations == nil || s.SweepInterval < 0 || !s.health.starts(ctx) {
		return
	}
	var clearing sync.WaitGroup
	defer clearing.Wait()
	clearing.Go(func() { s.clear(ctx, reservationKeys, s.KeyTTL, anywhere(s.store.ClearHoldKeys)) })
	clearing.Go(func() { s.clear(ctx, oldReservations, s.Reservations.Kept, anywhere(s.store.ForgetHolds)) })
	var counted time.Time
	for ctx.Err() == nil {
		more, err := s.endOverdue(ctx)
		if err != nil && ctx.Err() == nil {
			s.metrics.sweepFailures.Inc()
			s.Log.Warn("overdue reservations were not ended", "error", err)
			s.advise(ctx, err)
		}
		if time.Since(counted) > s.KeyInterval {
			counted = time.Now()
			if err := s.countReservations(ctx); err != nil && ctx.Err() == nil {
				s.Log.Warn("what reservations hold was not counted", "error", err)
				s.advise(ctx, err)
			}
		}
		if more {
			continue
		}
		select {
		case <-time.After(cmp.Or(s.SweepInterval, sweepInterval)):
		case <-ctx.Done():
		}
	}
}

func (s *Shop) endOverdue(ctx context.Context) (more bool, err error) {
	_, late, more, err := s.store.EndHolds(ctx, s.Name, sweepBatch)
	lateness := late.Seconds()
	if err != nil && late == 0 { // it could not look
		lateness = math.NaN()
	}
	s.metrics.lateness.Set(lateness)
	return more, err
}

func (s *Shop) countReservations(ctx context.Context) error {
	held, toReturn, err := s.store.CountHeld(ctx)
	if err != nil {
		s.metrics.unknown()
		return err
	}
	for _, state := range []stock.HoldState{stock.Held, stock.Paying} {
		s.metrics.heldUnits.WithLabelValues(string(state)).Set(float64(held[state].Units))
		s.metrics.liveReservations.WithLabelValues(string(state)).Set(float64(held[state].Holds))
	}
	s.metrics.toReturn.Set(float64(toReturn))
	return nil
}
