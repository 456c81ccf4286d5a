package shop

import (
	"fmt"
	"math"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"stocklock/internal/stock"
)

// The problem types of reservations. See the table in problems.go.
var (
	HeldByOthers = problemType("held-by-others", http.StatusConflict, 5, "Others hold the units",
		"Too few units are free, and customers who are about to pay hold some. Nothing was sold. Some may come back: try again after Retry-After.")
	tooManyReservations = problemType("too-many-reservations", http.StatusConflict, 0, "The customer has too many open reservations",
		"Release one, pay for one, or wait until one ends. A shop may make none for a time, and says so. Nothing was reserved.")
	ReservationEnded = problemType("reservation-ended", http.StatusGone, 0, "The reservation has ended",
		"It was released, or its time was over. Its units are for sale again. Make a new one.")
	AlreadyConfirmed = problemType("already-confirmed", http.StatusConflict, 0, "The reservation is confirmed",
		"It was paid and has an order. What is undone from now on is the order. Nothing was done now.")
	extended = problemType("already-extended", http.StatusConflict, 0, "The reservation was extended already",
		"It can be extended once. Nothing was done.")
	paying = problemType("payment-under-way", http.StatusConflict, 0, "The payment is under way",
		"The payment window counts from its beginning on. Nothing was done.")
	MustReturn = problemType("payment-must-be-returned", http.StatusConflict, 0, "The payment must be returned",
		"The reservation was paid by another payment or its order was cancelled (409), or it has ended (410). The payment was recorded: give the money back once, and say so. GET the payment says whether that was done.")
	ReferenceInUse = problemType("reference-in-use", http.StatusConflict, 0, "The reference is that of another reservation's payment",
		"One payment pays one reservation. Nothing was recorded: find out whose money it is.")
	tooManyReferences = problemType("too-many-references", http.StatusConflict, 0, "The reservation has too many payments",
		fmt.Sprintf("At most %d payments are recorded for one reservation. This one was not: it is in the shop's log. Give the money back.", stock.MaxReferences))
	paymentTaken = problemType("payment-taken", http.StatusConflict, 0, "The payment has paid an order",
		"A line of the order stands. Cancel the order first. Nothing was done.")
)

// paidLate is MustReturn with the status of what is gone.
var paidLate = func() Problem {
	p := MustReturn
	p.Status = http.StatusGone
	return p
}()

const alreadyReturned = "the payment was not taken, and its money was given back: do nothing"

// reservationAnswers are the answers to the errors of reservations.
var reservationAnswers = []answerTo{
	{stock.ErrHeld, HeldByOthers, "fewer units are free than were asked for, and others hold some"},
	{stock.ErrTooManyHolds, tooManyReservations, "the customer has as many open reservations as one may have"},
	{stock.ErrHoldEnded, ReservationEnded, "the reservation was released or has expired: nothing was done"},
	{stock.ErrConfirmed, AlreadyConfirmed, "the reservation was confirmed before: nothing was done"},
	{stock.ErrExtended, extended, "the reservation was extended before: nothing was done"},
	{stock.ErrPaying, paying, "the payment has begun: nothing was done"},
	{stock.ErrTooLong, invalid, "the reservation would last longer than one may here: nothing was done"},
	{stock.ErrTwiceReturned, MustReturn, alreadyReturned},
	{stock.ErrLateReturned, paidLate, alreadyReturned},
	{stock.ErrPaidTwice, MustReturn, "another payment has confirmed the reservation, or its order was cancelled: GET the payment for what became of it"},
	{stock.ErrPaidLate, paidLate, "the reservation ended before its payment: the payment was recorded, to be returned"},
	{stock.ErrReference, ReferenceInUse, "the reference is that of a payment for another reservation: nothing was recorded"},
	{stock.ErrReferences, tooManyReferences, "the reservation has too many payments: this one was not recorded"},
	{stock.ErrTaken, paymentTaken, "the payment has paid an order that stands: nothing was done"},
}

// reservationMetrics are those of a shop that offers reservations.
type reservationMetrics struct {
	reservations     map[stock.HoldState]prometheus.Counter // but expired, which the store counts
	liveReservations *prometheus.GaugeVec
	heldUnits        *prometheus.GaugeVec
	lateness         prometheus.Gauge
	toReturn         prometheus.Gauge
	refusedPayments  *prometheus.CounterVec
	sweepFailures    prometheus.Counter
}

// open registers the metrics, where the shop offers reservations.
func (m *reservationMetrics) open(s *Shop, registry *prometheus.Registry) {
	if s.Reservations == nil {
		return
	}
	auto, byState := promauto.With(registry), []string{"state"}
	counter := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	gauge := func(name, help string) prometheus.GaugeOpts { return prometheus.GaugeOpts{Name: name, Help: help} }
	m.reservations = map[stock.HoldState]prometheus.Counter{}
	transitions := counter("shop_reservations_total", "Transitions of reservations that this shop has made, by the state that they led to.")
	for _, state := range []stock.HoldState{stock.Held, stock.Paying, stock.Confirmed, stock.Released} {
		transitions.ConstLabels = prometheus.Labels{"state": string(state)}
		m.reservations[state] = auto.NewCounter(transitions)
	}
	transitions.ConstLabels = prometheus.Labels{"state": string(stock.Expired)}
	auto.NewCounterFunc(transitions, func() float64 { return float64(s.store.Expired()) })
	m.liveReservations = auto.NewGaugeVec(gauge("shop_reservations_live", "Reservations of all shops that hold units, by state: held or paying; NaN where this shop could not count."), byState)
	m.heldUnits = auto.NewGaugeVec(gauge("shop_reserved_units", "Units that reservations of all shops hold, by state: held or paying; NaN where this shop could not count."), byState)
	m.lateness = auto.NewGauge(gauge("shop_reservation_lateness_seconds", "How long the longest overdue reservation was overdue when this shop last looked; 0 for none, NaN where it could not look."))
	m.lateness.Set(math.NaN())
	m.toReturn = auto.NewGauge(gauge("shop_payments_to_return", "Payments of all shops that were not taken, and whose money was not given back yet; NaN where this shop could not count."))
	m.unknown()
	m.refusedPayments = auto.NewCounterVec(counter("shop_payments_refused_total", "Confirmations whose payment was not taken, by whether it is recorded, to be returned: yes for one that was late or the second; no for one of another reservation or of none, one too many, or malformed."), []string{"recorded"})
	for _, recorded := range []string{"yes", "no"} {
		m.refusedPayments.WithLabelValues(recorded)
	}
	m.sweepFailures = auto.NewCounter(counter("shop_reservation_sweep_failures_total", "Rounds of ending overdue reservations that failed. Another shop may end them."))
}

// unknown says that what is held was not counted. Before the first count, the series are there, too.
func (m *reservationMetrics) unknown() {
	for _, state := range []stock.HoldState{stock.Held, stock.Paying} {
		m.liveReservations.WithLabelValues(string(state)).Set(math.NaN())
		m.heldUnits.WithLabelValues(string(state)).Set(math.NaN())
	}
	m.toReturn.Set(math.NaN())
}
