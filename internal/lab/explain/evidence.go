// Package explain says why a cell ended as it did: which two holders were in the
// section at once, which lease had ended and through what, who waits for whom; and
// for a cell that held, what would have broken a weaker lock and what prevented it.
//
// It works on evidence alone (the shops' trace, what Redis announced, what the lab
// did, the orders in MySQL) and looks at no clock and no server.
package explain

import (
	"strings"
	"time"

	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// Evidence is everything that is known about one run of a cell.
type Evidence struct {
	Strategy     string
	Exclusive    bool // whether its guard reaches across processes
	Recovers     bool // whether its lock frees itself, also where Redis knows of no expiry
	Lease        time.Duration
	InitialStock int64
	Began        time.Time // of the attack
	Ended        time.Time // of the attack

	Traced        bool // the shops wrote traces
	Events        []labmode.Event
	Changes       []Change // of the lock's keys
	Interventions []Intervention
	Requests      []Request
	Orders        []stock.Order // as they were committed
	Locks         []Lock        // what Redis had at the end of the attack
	Stuck         bool
}

// Request is one request as its client saw it.
type Request struct {
	ID       string
	Shop     string
	Sent     time.Time
	Answered time.Time // zero where no answer came
	Outcome  string
	Nested   bool // it takes its lock a second time
	Fault    bool // it carries a fault; other requests may carry more work
}

// Lock is a key of the lock that is there, with what Redis says of its expiry.
type Lock struct {
	Key string
	TTL time.Duration // negative for none
}

// label is the short name of a request: its number in the run.
func label(request string) string {
	return "#" + request[strings.LastIndexByte(request, '-')+1:]
}
