package load

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
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
	Failed   Outcome = "error" // an unexpected answer
)

// byProblem maps the last part of a problem's type to an outcome.
var byProblem = map[string]Outcome{
	"sold-out":      SoldOut,
	"busy":          Busy,
	"fenced-off":    Fenced,
	"lock-lost":     Lost,
	"conflict":      Conflict,
	"unavailable":   Unknown,
	"shutting-down": Refused,
}

// classify turns an answer, or the lack of one, into an outcome. Vegeta counts a 409 as a failure.
// Here it is the right answer of a sold-out item.
func classify(status int, body []byte, err error) Outcome {
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return Refused
	case err != nil || status == 0:
		return Unknown
	case status == http.StatusCreated:
		return Sold
	}
	var problem struct{ Type string }
	if json.Unmarshal(body, &problem) != nil {
		return Failed
	}
	if o, ok := byProblem[problem.Type[strings.LastIndexByte(problem.Type, '/')+1:]]; ok {
		return o
	}
	return Failed
}
