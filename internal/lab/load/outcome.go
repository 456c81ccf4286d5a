package load

import (
	"cmp"
	"encoding/json"
	"errors"
	"net"
	"net/http"

	"stocklock/internal/shop"
)

// Outcome is what became of an order, as its customer saw it.
type Outcome string

const (
	Sold     Outcome = "sold"
	SoldOut  Outcome = "sold_out"
	Busy     Outcome = "busy"    // rejected: the lock was not free in time
	Fenced   Outcome = "fenced"  // refused by the database, because of a newer holder
	Lost     Outcome = "lost"    // the lock was lost before anything was written
	Unknown  Outcome = "unknown" // no answer: the audit says whether there is an order
	Refused  Outcome = "refused" // the connection was refused, or the shop was shutting down
	Conflict Outcome = "conflict"
	Limited  Outcome = "limited" // the customer would have had too many units
	Failed   Outcome = "error"   // an unexpected answer

	// Those of requests about a reservation.
	Done       Outcome = "done"      // it is not confirmed, or not yet
	MustReturn Outcome = "to_return" // the money was not taken
	OtherState Outcome = "too_late"  // the reservation has ended, or was confirmed
	InUse      Outcome = "in_use"    // the payment is another reservation's
)

// NoAnswer is in words how a customer was answered who got no answer.
const NoAnswer = "no answer"

// Denies reports whether the shop said that it has made no order.
func (o Outcome) Denies() bool { return denials[o] }

var denials = map[Outcome]bool{SoldOut: true, Busy: true, Fenced: true, Lost: true, Refused: true, Conflict: true, Limited: true,
	MustReturn: true, OtherState: true, InUse: true}

// byProblem maps the slug of a problem to an outcome of an order, or of a reservation. The other problems of
// shop.Problems answer wrong requests, which a load test does not send.
var byProblem = map[string]Outcome{
	shop.SoldOut.Slug:      SoldOut,
	shop.LimitReached.Slug: Limited,
	shop.HeldByOthers.Slug: Busy,
	shop.Busy.Slug:         Busy,
	shop.FencedOff.Slug:    Fenced,
	shop.LockLost.Slug:     Lost,
	shop.Conflict.Slug:     Conflict,
	shop.Unavailable.Slug:  Unknown,
	shop.ShuttingDown.Slug: Refused,

	shop.MustReturn.Slug:       MustReturn,
	shop.ReservationEnded.Slug: OtherState,
	shop.AlreadyConfirmed.Slug: OtherState,
	shop.ReferenceInUse.Slug:   InUse,
}

// Decides reports whether asking again would bring no other answer.
func (o Outcome) Decides() bool { return o == Sold || o == Done || denials[o] && !again[o] }

var again = map[Outcome]bool{Busy: true, Fenced: true, Lost: true, Refused: true, Conflict: true}

// classify turns an answer, or the lack of one, into an outcome. Vegeta counts a 409 as a failure.
// Here it is the right answer of a sold-out item.
func classify(status int, body []byte, err error) Outcome {
	dial, network := errors.AsType[*net.OpError](err)
	switch {
	case network && dial.Op == "dial":
		return Refused
	case err != nil || status == 0:
		return Unknown
	case status == http.StatusCreated:
		return Sold
	}
	return cmp.Or(byProblem[ProblemOf(body)], Failed)
}

// ProblemOf returns the slug of the problem in an answer, empty for anything else.
func ProblemOf(body []byte) string {
	var problem struct{ Type string }
	if json.Unmarshal(body, &problem) != nil {
		return ""
	}
	if slug, ok := shop.ProblemSlug(problem.Type); ok {
		return slug
	}
	return ""
}
