package load

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
)

// Outcome is what became of a request, as its client saw it.
type Outcome string

const (
	Sold     Outcome = "sold"
	SoldOut  Outcome = "sold_out"
	Busy     Outcome = "busy"    // the lock was not free in time
	Fenced   Outcome = "fenced"  // a newer holder had been there: refused by the database
	Lost     Outcome = "lost"    // the lock was lost before anything was written
	Unknown  Outcome = "unknown" // no answer came: the audit says whether there is an order
	Refused  Outcome = "refused" // nobody listened: nothing was done
	Conflict Outcome = "conflict"
	Failed   Outcome = "error" // an answer that should not be
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

// classify turns an answer, or the lack of one, into an outcome. A vegeta result
// counts a 409 as failure; here it is the right answer to a sold-out item.
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
