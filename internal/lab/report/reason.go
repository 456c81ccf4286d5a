package report

import (
	"fmt"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
)

// reason says in words what a cell's verdict rests on. It is empty where the cell held and
// sold all.
func reason(c trial.Result) string {
	switch {
	case c.Problem != "":
		return c.Problem
	case c.Degraded():
		return fmt.Sprintf("sold %d of %d in %.0f s, with demand left", c.Sold, c.InitialStock, c.LoadMS/1000)
	case c.Verdict == scenario.Oversold:
		return fmt.Sprintf("%d orders for a stock of %d", c.Sold, c.InitialStock)
	case c.Verdict == scenario.Lied:
		return fmt.Sprintf("%d requests were answered as sold, and have no order", c.AnswersWithoutOrder)
	case c.Verdict == scenario.Left:
		return fmt.Sprintf("the last answers say sold out, and the database has %d of %d", c.Remaining, c.InitialStock)
	case c.Verdict == scenario.Unbalanced:
		return fmt.Sprintf("%d in orders and %d left of a stock of %d", c.Sold, c.Remaining, c.InitialStock)
	case c.Verdict == scenario.Stuck && c.Waiting == nil:
		return "work that outlasts the lease never sells: each time the lock was lost"
	case c.Verdict == scenario.Stuck:
		return fmt.Sprintf("%d of %d left and wanted; %s", c.Remaining, c.InitialStock, waiting(*c.Waiting))
	default:
		return ""
	}
}

func waiting(w trial.Waiting) string {
	switch {
	case w.Unseen != "":
		return w.Unseen
	case w.Lock == "":
		return "no lock in Redis: each request waits for itself, or for its own process"
	case w.LeaseMS == nil:
		return "lock " + w.Lock + " is held with no expiry"
	default:
		return fmt.Sprintf("lock %s is held for another %.0f ms", w.Lock, *w.LeaseMS)
	}
}
