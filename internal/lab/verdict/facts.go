package verdict

import (
	"fmt"
	"math"
	"strings"

	"stocklock/internal/lab/words"
)

// Facts are what a run came to: counts by SQL, and what the customers were answered. A verdict
// follows from them, and its sentences are made of them. The zero value held.
//
// A purchase is what one customer wants: one request, or all requests under one idempotency key.
type Facts struct {
	Stock       int64   // units there were to sell, with those that came
	Sold        int64   // units in orders that stand
	Remaining   int64   // units in the database that are not sold
	Oversold    int64   // units sold beyond the stock
	LostUpdates int64   // units both in orders and left; negative for units that are in neither
	Twice       int64   // orders beyond the first one of a purchase
	HalfSold    int64   // orders of several items that stand without all that was ordered
	Unpaid      int64   // orders of reservations that no payment has paid
	Unserved    int64   // payments that were kept, without an order
	Unclaimed   int64   // units of several items in no order and not for sale
	Unordered   int64   // answers that said sold, of which no such order stands
	Unanswered  int64   // orders that stand, of purchases that nobody was told of as sold: no verdict follows from them
	Denied      int64   // purchases that have an order, and were answered otherwise
	Decided     int64   // purchases that have an order, or were answered for good: no verdict follows from them alone
	Crashed     int64   // sales of a schedule without an event that ended with an error, or without an answer
	Left        int64   // units that were left for certain when a customer was sent away
	Seconds     float64 // for which the load was sent

	Errors     int64  // answers that should not be
	FirstError string // one of them
	Stuck      bool   // stock and demand were left, and nothing was sold for so long
	Deserted   error  // why no shop answers any more, nil while one does
	DemandLeft bool   // the load ended, or time was up, while units were sold, or somebody was answered for good
	Starves    bool   // the strategy declares that demand may be left
	Undecided  string // whose answer should decide, and does not; empty for nobody's
	Outlasted  bool   // work longer than the lease was to be sold, and never was
	// Waiting is what requests wait for where nothing is sold any more. It is nil where that is not
	// the reason.
	Waiting *Waiting
}

// Judgement is a verdict, with the harness' problem where it is [Invalid] or [Skipped].
type Judgement struct {
	Kind    Kind
	Problem string
}

// Failed is the judgement where the harness failed.
func Failed(format string, args ...any) Judgement {
	return Judgement{Kind: Invalid, Problem: strings.TrimSpace(fmt.Sprintf(format, args...))}
}

// Verdict judges the facts: the first case that applies. What SQL and the answers prove comes before
// unexpected answers, which cannot undo it. Of two proofs, the one that costs the shop more comes
// first. Units that an unexpected answer keeps from the customers prove nothing.
func (f Facts) Verdict() Judgement {
	for _, kind := range []Kind{Oversold, Twice, HalfSold, Unpaid, Unserved, Lied, Denied, Unclaimed, Unbalanced, Crashed} {
		if v := Of(kind); v.Count(f) > 0 || v.Signed && v.Count(f) < 0 {
			return Judgement{Kind: kind}
		}
	}
	switch {
	case f.Errors > 0:
		return Failed("%d unexpected answers, such as: %s", f.Errors, f.FirstError)
	case f.Left > 0 && !f.Stuck:
		return Judgement{Kind: Left}
	case f.Stuck && f.Deserted != nil:
		return Failed("no shop answers any more; shops given by --shop must be restarted from outside: %v", f.Deserted)
	case f.Stuck:
		return Judgement{Kind: Stuck}
	case f.Undecided != "":
		return Failed("%s, which decides nothing: a server was away, or the machine stalled", f.Undecided)
	case f.Remaining > 0 && f.DemandLeft:
		return Judgement{Kind: Held} // and Degraded
	case f.Remaining > 0:
		return Failed("the attack ended with %d of %d unsold", f.Remaining, f.Stock)
	case f.Outlasted:
		return Judgement{Kind: Stuck}
	default:
		return Judgement{Kind: Held}
	}
}

// Waiting is the lock that requests wait for when nothing is sold any more. Without a lock in
// Redis, each request waits for itself, or for its own process.
type Waiting struct {
	Lock    string   `json:"lock,omitempty"`
	LeaseMS *float64 `json:"lease_ms,omitempty"` // time left, nil for a lock without an expiry
	Unseen  string   `json:"unseen,omitempty"`   // why Redis was not asked
	Fenced  bool     `json:"fenced,omitempty"`   // no lock, but the fence, refuses every sale
}

// text says what is waited for, as far as it was seen.
func (w *Waiting) text() words.Text {
	switch {
	case w == nil:
		return words.Of("waiting.unseen")
	case w.Fenced:
		return words.Of("waiting.fenced")
	case w.Unseen != "":
		return words.AsItStands(w.Unseen)
	case w.Lock == "":
		return words.Of("waiting.none")
	case w.LeaseMS == nil:
		return words.Of("waiting.held", "lock", w.Lock)
	default:
		return words.Of("waiting.held", "lock", w.Lock, "left_ms", math.Round(*w.LeaseMS))
	}
}
