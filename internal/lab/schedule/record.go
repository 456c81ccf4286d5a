package schedule

import (
	"slices"
	"time"
)

// Record is what happened in one run of a schedule.
type Record struct {
	Strategy  string   `json:"strategy"`
	Schedule  Schedule `json:"-"`
	Listed    string   `json:"schedule"` // the shortest text that plays the same
	Customers int      `json:"customers"`
	LeaseMS   int64    `json:"lease_ms"`
	Entries   []Entry  `json:"entries"`
	Outcome   Outcome  `json:"outcome"`

	chosen   Schedule // everything that was chosen, the unlisted rest included
	switches int
	tenures  []tenure
	timeless bool // see [Record.WithoutTimes]
	// spoiled says why the run does not count: the machine was too slow for its lease.
	spoiled string
}

// Played is everything that was played, the unlisted rest included.
func (r Record) Played() Schedule { return slices.Clone(r.chosen) }

// Entry is one line of a record: a step with its answer, an event, or what a shop did on its own.
type Entry struct {
	AtMS     float64  `json:"at_ms"`
	Choice   string   `json:"choice"` // A.set, wait, or empty for what a shop did on its own
	Customer string   `json:"customer,omitempty"`
	Server   string   `json:"server,omitempty"`
	Sent     string   `json:"sent,omitempty"`
	Answer   string   `json:"answer,omitempty"`
	Blocked  string   `json:"blocked,omitempty"` // by what, where no answer came
	Note     string   `json:"note,omitempty"`
	State    *State   `json:"state,omitempty"` // after it, where it was looked at
	Own      bool     `json:"own,omitempty"`
	Request  *Request `json:"-"`

	customer Customer
	event    Event
}

// State is what the servers had at one moment.
type State struct {
	Lock   string `json:"lock"`             // what the lock's key holds, empty for no key
	Holder string `json:"holder,omitempty"` // the customer who set it, where that is known
	TTLMS  int64  `json:"ttl_ms"`           // 0 where it is not known, -1 for a key without an expiry, -2 for no key
	Kept   string `json:"kept,omitempty"`   // what else the strategy keeps in Redis
	Stock  int64  `json:"stock"`
	// Elsewhere is how many units the strategy keeps in rows of its own.
	Elsewhere int64   `json:"elsewhere,omitempty"`
	Fence     int64   `json:"fence,omitempty"`
	Orders    []Order `json:"orders,omitempty"`
}

// Order is one row of the table of orders.
type Order struct {
	ID       uint64 `json:"id"`
	Customer string `json:"customer"`
	Read     int64  `json:"read"`
	Written  int64  `json:"written"`
}

// Verdict is the word of an outcome, as in the matrix.
type Verdict string

const (
	Held     Verdict = "held"     // exactly what there was to sell was sold
	Oversold Verdict = "oversold" // more was sold
	Lied     Verdict = "lied"     // a customer was told sold and has no order
	Left     Verdict = "left"     // a customer was told sold out while there were units
	Stuck    Verdict = "stuck"    // nobody can buy what is left
)

// Outcome is how a run ended, by the rows in MySQL and by what the customers were told.
type Outcome struct {
	Verdict  Verdict           `json:"verdict"`
	N        int64             `json:"n,omitempty"` // units oversold or left, or answers that lied
	Cause    Cause             `json:"cause,omitempty"`
	Stock    int64             `json:"stock"` // units there were to sell
	Orders   []Order           `json:"orders"`
	Answers  map[string]string `json:"answers"` // by customer: sold, sold-out, busy, none, ...
	Ordinary string            `json:"ordinary,omitempty"`
}

// Bad says whether the strategy failed.
func (o Outcome) Bad() bool { return o.Verdict != Held }

// tenure is the time for which one customer had the lock.
type tenure struct {
	customer   Customer // 0 where it is not known who
	from, to   int      // entries; to is -1 while it lasts
	endedBy    Customer // who ended it with a step, 0 where an event or time did
	endedEvent Event    // what ended it, empty for a step or the lease
	noExpiry   bool     // it had none when it was last seen
	checked    bool     // whoever ended it had looked at the owner in a request before
	fresh      bool     // nothing that lets a lease pass happened while it lasted
}

func sinceMS(begun time.Time) float64 { return float64(time.Since(begun).Microseconds()) / 1000 }
