package trial

import (
	"context"
	"slices"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

// Play is what goes wrong in a cell, once. One sale, the first, is sent while no other is under way.
// At a point it is held, or its shop is killed, or it loses an answer. The hold lasts until everything of Until was seen.
// All other sales go on as in every shop. The zero value does nothing.
type Play struct {
	At   sale.Point // where the first sale is held; empty for none
	Kill bool       // its shop is killed there instead
	// Lose loses the answer to the COMMIT of its order there. The customer has no idempotency key, by which
	// every strategy would find the order.
	Lose bool
	// Paused stops the whole shop of the first sale while it is held.
	Paused bool
	// Settled says that nothing waits for the end of the first sale's lease, which is [LongLease].
	// The leases of all other sales always are.
	Settled bool
	// Until is what must be seen, besides Reached and Intervened, before the hold is over.
	Until []Sight
	// Third goes on after that. The sale that entered is held at the point read, until the first
	// sale has released its lock and a third one has entered or was kept out.
	Third bool
	// Nested makes every sale take its lock a second time.
	Nested bool
	// FromFirstShop counts only sales of the first shop as others. The first sale goes to another.
	FromFirstShop bool

	// Prepare sets the testbed up before the first request. Restore undoes it after the last one.
	Prepare, Restore func(ctx context.Context, testbed *rig.Testbed) error
	// Intervene is called when the first sale is held, and Relieve when it has been answered.
	Intervene, Relieve func(ctx context.Context, testbed *rig.Testbed, at Reached) error
	// Intervention names what Intervene does, or Prepare where there is no Intervene. A size may
	// follow the name, after a space. The catalogue has its words, under done.
	Intervention string
}

// LongLease is the lease of every sale whose lease is not to end. No machine is paused for so
// long without notice.
const LongLease = 10 * time.Second

// Reached says where the first sale is held.
type Reached struct {
	Shop int      // the index of the shop that serves it
	Keys []string // where Redis keeps the item's lock or counter; none before Redis has announced one
}

// Sight is something that a play waits for. It is the name in saved results.
type Sight string

const (
	// ReachedPoint: the first sale is at its point, as its shop's trace says.
	ReachedPoint Sight = "reached"
	// Intervened: Intervene has returned.
	Intervened Sight = "intervened"
	// Exited: the shop that was killed has ended.
	Exited Sight = "exited"
	// LeaseOver: the server of the lock says that the lease of the first sale has ended, or that it
	// was renewed. A strategy without a lease has nothing to show.
	LeaseOver Sight = "lease-over"
	// AnswerLost: the COMMIT of the first sale was carried out, and its answer was lost.
	AnswerLost Sight = "answer-lost"
	// Overtaken: while a page view is held, a sale has written the row that it has read, and was answered. By
	// then it has deleted or set the copy.
	Overtaken Sight = "overtaken"
	// CopyStored: the page view has stored its copy, while no sale was under way.
	CopyStored Sight = "copy-stored"
	// BeforeCommit: another sale has read, or waits in MySQL, between the release and the commit of a sale
	// whose strategy releases first. It is waited for before the first sale is sent.
	BeforeCommit Sight = "before-commit"
	// Another: another sale has entered, or was kept out. A sale has entered when it has read the
	// stock, or has written where nothing is read. It is kept out when its guard refuses it or MySQL
	// makes it wait, and the lock is still the first sale's by its server.
	Another Sight = "another"
	// ThirdSale: the same of a third sale, after the first one's release.
	ThirdSale Sight = "third"
	// Again: a second acquire of the same sale was granted or refused.
	Again Sight = "again"
)

// OfView reports whether a page view is held, and not a sale. The lab makes it before the first sale, when
// there is no copy. Sales are then made one at a time until the page view has stored its own.
func (p Play) OfView() bool { return slices.Contains(sale.ViewPoints, p.At) }

// neverPassed says that what passes the points of the play never passes one.
func (p Play) neverPassed(point sale.Point) words.Text {
	if p.OfView() {
		return words.Of("unfit.view-point", "point", point)
	}
	return words.Of("unfit.point", "point", point)
}

// IsZero reports whether nothing goes wrong.
func (p Play) IsZero() bool { return p.At == "" && !p.Nested }

// Misses returns the point that the play needs and that sales of the strategy never pass, empty where
// it applies.
func (s Scenario) Misses(of declared.Strategy) sale.Point {
	needed := s.Crowd.At
	if s.Crowd.Nested {
		needed = sale.Acquired
	}
	if needed == "" || of.Passes(needed) {
		return ""
	}
	return needed
}
