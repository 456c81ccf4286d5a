package stock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Payment is what became of money, by the reference that its provider gave it. It is kept without an end. Its JSON is
// for staff.
type Payment struct {
	Reference  string       `gorm:"primaryKey" json:"reference"`
	Hold       string       `json:"reservation"`         // the public id of the hold that it was for
	Paid       *string      `json:"confirmed,omitempty"` // the public id of the one that it has confirmed, nil for none
	State      PaymentState `json:"state"`
	Reason     string       `json:"reason,omitempty"` // why it is to be returned: "second", "late" or "cancelled"; empty where it was taken
	RecordedAt time.Time    `json:"recorded_at"`
	RecordedBy string       `json:"recorded_by"`
	ReturnedAt *time.Time   `json:"returned_at,omitempty"`
	ReturnedBy *string      `json:"returned_by,omitempty"`

	IdempotencyKey *string `json:"-"` // of its return
}

// PaymentState says what became of money.
type PaymentState string

const (
	Taken    PaymentState = "taken" // it has paid an order
	ToReturn PaymentState = "to-return"
	Returned PaymentState = "returned"
)

// MaxReferences is how many payments are recorded for one hold.
const MaxReferences = 8

// These errors refuse a payment.
var (
	// ErrPaidTwice: another payment has confirmed the hold. This one was recorded, to be returned.
	ErrPaidTwice = errors.New("stock: the hold was paid by another payment")
	// ErrPaidLate: the hold had ended. The payment was recorded, to be returned.
	ErrPaidLate = errors.New("stock: the hold ended before its payment")
	// ErrTwiceReturned and ErrLateReturned are [ErrPaidTwice] and [ErrPaidLate] of money that was given back.
	ErrTwiceReturned = fmt.Errorf("%w, and given back", ErrPaidTwice)
	ErrLateReturned  = fmt.Errorf("%w, and given back", ErrPaidLate)
	// ErrReference: the reference is that of a payment for another hold. Nothing was recorded.
	ErrReference = errors.New("stock: the reference belongs to another hold")
	// ErrReferences: the hold has [MaxReferences] payments. Nothing was recorded.
	ErrReferences = errors.New("stock: the hold has too many payments")
	// ErrTaken: the payment has paid an order that stands.
	ErrTaken = errors.New("stock: the payment has paid an order")
)

// Transition changes a hold: see [Store.Move].
type Transition struct {
	To HoldState
	do func(tx Tx, h *Hold, by Author) error
}

// BeginPayment begins the payment window of a hold. A window that has begun does not move.
func BeginPayment(terms Terms) Transition {
	return Transition{Paying, func(tx Tx, h *Hold, by Author) error {
		switch {
		case h.State == Paying:
			return nil
		case !h.Live():
			return h.over()
		}
		until := tx.db.NowFunc().Add(terms.Window)
		if !until.After(h.HeldUntil) { // the window ends after the hold's
			until = h.HeldUntil.Add(time.Microsecond)
		}
		live := until.Add(terms.Grace)
		h.State, h.PayUntil, h.LiveUntil = Paying, &until, &live
		return tx.move(h, Held, by, "")
	}}
}

// Extend holds units for so many seconds more, once. It is [ErrHoldEnded] where that is in the past.
func Extend(seconds int64, terms Terms) Transition {
	return Transition{Held, func(tx Tx, h *Hold, by Author) error {
		until := h.HeldUntil.Add(time.Duration(seconds) * time.Second)
		switch {
		case h.State == Paying:
			return ErrPaying
		case !h.Live():
			return h.over()
		case h.Extended:
			return ErrExtended
		case until.Sub(h.CreatedAt) > terms.Longest:
			return ErrTooLong
		case !until.After(tx.db.NowFunc()): // no shop has ended it yet
			return ErrHoldEnded
		}
		h.HeldUntil, h.LiveUntil, h.Extended = until, &until, true
		return tx.move(h, Held, by, "extended")
	}}
}

// Release puts the units of a live hold back. One that was released before stays so.
func Release(reason string) Transition {
	return Transition{Released, func(tx Tx, h *Hold, by Author) error {
		switch {
		case h.State == Released:
			return nil
		case !h.Live():
			return h.over()
		}
		return tx.release(h, by, reason)
	}}
}

// Fail is for a payment that can be made no more. It releases a hold that is paying, whatever it is paid by, and changes
// no other one: notices of a provider come late, twice, and in any order.
func Fail() Transition {
	return Transition{Released, func(tx Tx, h *Hold, by Author) error {
		if h.State != Paying {
			return nil
		}
		return tx.release(h, by, "payment-failed")
	}}
}

func (t Tx) release(h *Hold, by Author, reason string) error {
	lines, _ := h.Wanted()
	if err := t.putBack(lines); err != nil {
		return err
	}
	was := h.State
	h.State = Released
	return t.move(h, was, by, reason)
}

// over is the error for a hold that is not live.
func (h Hold) over() error {
	if h.State == Confirmed {
		return ErrConfirmed
	}
	return ErrHoldEnded
}

// Move makes a transition of a hold. After a COMMIT without an answer, it looks whether that was done.
func (s *Store) Move(ctx context.Context, by Author, id string, to Transition) (Hold, error) {
	h, err := again(ctx, func() (Hold, error) {
		return Within(ctx, s, func(tx Tx) (Hold, error) {
			h, err := tx.lockHold(id)
			steps := h.Steps
			if err == nil {
				err = to.do(tx, &h, by)
			}
			if err == nil && h.Steps == steps {
				err = errUnwritten
			}
			return h, err
		})
	})
	if errors.Is(err, ErrUnknown) { // the lock waits for the end of that transaction
		asking, cancel := looking(ctx)
		defer cancel()
		made, missing := Within(asking, s, func(tx Tx) (Hold, error) {
			h, err := tx.lockHold(id)
			return h, cmp.Or(err, errUnwritten)
		})
		if missing == nil && made.State == h.State && made.Steps == h.Steps {
			made.Moved = h.Moved
			return made, nil
		}
	}
	return h, wrapped("change a reservation", err)
}

// Confirm confirms a live hold by a payment, and makes its order. Paid is the sale of that, without lines. The
// same payment again is answered with what it has confirmed.
//
// Money that cannot be taken is recorded, and the error says that it must be returned: [ErrPaidTwice] and
// [ErrPaidLate]. With terms.TakeLate, a payment for a hold that has ended makes a new one, confirmed, if its
// units are free and the limit of paid allows it. The ended one stays as it is.
func (s *Store) Confirm(ctx context.Context, by Author, id, reference string, paid Sale, terms Terms) (Hold, error) {
	var refused error // of money that was recorded
	h, err := again(ctx, func() (h Hold, err error) {
		refused = nil
		err = s.Transact(ctx, func(tx Tx) (err error) {
			h, refused, err = tx.confirm(by, id, reference, paid, terms)
			return err
		})
		if _, number := classOf(err); number == duplicate { // another hold was confirmed by it meanwhile
			err = ErrReference
		}
		return h, err
	})
	if errors.Is(err, ErrUnknown) {
		asking, cancel := looking(ctx)
		defer cancel()
		if made, missing := s.Payment(asking, reference); missing == nil && made.State == Taken && made.Hold == id {
			if paid, missing := s.HoldByID(asking, *made.Paid); missing == nil {
				paid.Moved = h.Moved
				return paid, nil
			}
		}
	}
	if err == nil && refused != nil {
		return h, refused
	}
	return h, wrapped("confirm a reservation", err)
}

func (t Tx) confirm(by Author, id, reference string, paid Sale, terms Terms) (h Hold, refused, err error) {
	if h, err = t.lockHold(id); err != nil {
		return h, nil, err
	}
	var known []Payment
	if err = t.Query(&known, "SELECT * FROM payments WHERE reference = ? OR hold = ? LIMIT ?", reference, id, MaxReferences+1); err != nil {
		return h, nil, err
	}
	replaced := false // by what another payment has confirmed, also where that was cancelled since
	for _, p := range known {
		switch {
		case p.Reference != reference:
			replaced = replaced || p.Paid != nil
			continue
		case p.Hold != id && (p.Paid == nil || *p.Paid != id):
			return h, nil, ErrReference
		case p.State == Taken:
			h, err = t.ReadHold(*p.Paid)
			return h, nil, cmp.Or(err, errUnwritten)
		}
		return h, h.unpaid(p), errUnwritten
	}
	if len(known) >= MaxReferences {
		return h, nil, ErrReferences
	}
	p := Payment{Reference: reference, Hold: id, State: Taken, RecordedAt: t.db.NowFunc(), RecordedBy: by.Subject}
	was, ended := h.State, !h.Live() || len(h.Lines) == 0 // an operator may have deleted them
	if terms.TakeLate && ended && was != Confirmed && !replaced {
		late, err := t.takeLate(h, by, reference, paid)
		if err == nil {
			p.Paid = &late.PublicID
			return late, nil, t.db.Create(&p).Error
		}
		if !errors.Is(err, ErrSoldOut) && !errors.Is(err, ErrLimit) {
			return h, nil, err
		}
	}
	if ended {
		p.State, p.Reason = ToReturn, "late"
		if was == Confirmed || replaced {
			p.Reason = "second"
		}
		return h, h.unpaid(p), t.db.Create(&p).Error
	}
	p.Paid = &h.PublicID
	if err = t.db.Create(&p).Error; err != nil {
		return h, nil, err
	}
	if err = t.orderHeld(&h, reference, paid); err != nil {
		return h, nil, err
	}
	return h, nil, t.move(&h, was, by, "")
}

// unpaid is the error for money that a hold does not take. What had confirmed another hold in its place did not come late.
func (h Hold) unpaid(p Payment) error {
	twice, late := ErrPaidTwice, ErrPaidLate
	if p.State == Returned {
		twice, late = ErrTwiceReturned, ErrLateReturned
	}
	if h.State == Confirmed || p.Paid != nil {
		return twice
	}
	return late
}

// orderHeld makes the order of a hold's units. The order says that it found them in the hold and left none:
// the items' rows are not touched.
func (t Tx) orderHeld(h *Hold, reference string, paid Sale) error {
	lines, read := h.Wanted()
	paid.SetLines(lines)
	paid.Subject, paid.Limit = h.Subject, 0
	order, err := record(t.db, paid, read)
	h.State, h.OrderID, h.Reference = Confirmed, &order.PublicID, &reference
	return err
}

// takeLate makes a confirmed hold in the place of one that has ended. If its units cannot be had, nothing is
// done.
func (t Tx) takeLate(ended Hold, by Author, reference string, paid Sale) (h Hold, err error) {
	if _, _, err = t.Exec("SAVEPOINT late"); err != nil {
		return h, err
	}
	defer func() {
		if errors.Is(err, ErrSoldOut) || errors.Is(err, ErrLimit) {
			if _, _, undo := t.Exec("ROLLBACK TO SAVEPOINT late"); undo != nil {
				err = undo
			}
		}
	}()
	lines, _ := ended.Wanted()
	if len(lines) == 0 { // its data was deleted
		return h, ErrSoldOut
	}
	paid.SetLines(lines)
	paid.Subject = ended.Subject
	if _, err = takeLines(t.db, lines, unfenced); err != nil {
		return h, err
	}
	if err = paid.checkLimit(t.db); err != nil {
		return h, err
	}
	now := t.db.NowFunc()
	h = Hold{
		PublicID: uuid.Must(uuid.NewV7()).String(), Subject: ended.Subject, Steps: 1, Seconds: ended.Seconds,
		CreatedAt: now, HeldUntil: now, EndedAt: &now, EndedBy: &by.Subject, InsteadOf: &ended.PublicID, Lines: ended.Lines, Moved: true,
	}
	if err = t.orderHeld(&h, reference, paid); err != nil {
		return h, err
	}
	h.Lines = nil
	if err = t.insertHold(&h, by, "paid-late"); err != nil {
		return h, err
	}
	return h, t.insertHoldLines(&h, lines)
}

// lockConfirmed locks the hold whose confirmation has made an order, as far as there is one, and returns it. The row is one
// of the order's. Only what was found is locked: a shop without reservations need not have the right to lock holds.
func (t Tx) lockConfirmed(row Order) (holds []Hold, err error) {
	err = t.Query(&holds, "SELECT id, reference FROM holds WHERE order_id = (SELECT public_id FROM orders WHERE id = ?)", row.first())
	if err == nil && len(holds) > 0 {
		err = t.Query(&holds, "SELECT id, reference FROM holds WHERE id = ? FOR UPDATE", holds[0].ID)
	}
	return holds, err
}

// first is the id of the first row of the order of a row.
func (o Order) first() uint64 {
	if o.LineOf != nil {
		return *o.LineOf
	}
	return o.ID
}

// unpay notes that the money of an order is to be returned, if no line of it stands any more. The hold that paid
// it is locked, so that cancellations of two lines see each other.
func (t Tx) unpay(by []Hold, row Order) error {
	if len(by) == 0 {
		return nil
	}
	if stands, err := t.stands("id = ?", row.first()); err != nil || stands {
		return err
	}
	_, _, err := t.Exec("UPDATE payments SET state = ?, reason = 'cancelled' WHERE reference = ? AND state = ?", ToReturn, *by[0].Reference, Taken)
	return err
}

// stands reports whether a line of an order does, which is found by a column of its first row.
func (t Tx) stands(first string, arg any) (bool, error) {
	var lines []int
	err := t.Query(&lines, "SELECT COUNT(*) FROM orders f JOIN orders o ON o.id = f.id OR o.subject = f.subject AND o.line_of = f.id"+
		" WHERE f."+first+" AND o.cancelled_at IS NULL", arg)
	return err == nil && lines[0] > 0, err
}

// Payment returns a payment by its reference, or [ErrNotFound].
func (s *Store) Payment(ctx context.Context, reference string) (Payment, error) {
	p, err := again(ctx, func() (Payment, error) { return one[Payment](s.db.WithContext(ctx), "reference = ?", reference) })
	return p, wrapped("read a payment", err)
}

// Return notes that money was given back. Money that has paid an order is refused with [ErrTaken]: a line of the
// order stands.
func (s *Store) Return(ctx context.Context, by Author, reference string) (Payment, error) {
	p, err := Within(ctx, s, func(tx Tx) (p Payment, err error) {
		var rows []Payment
		if err := tx.Query(&rows, "SELECT * FROM payments WHERE reference = ? FOR UPDATE", reference); err != nil {
			return p, err
		}
		if len(rows) == 0 {
			return p, ErrNotFound
		}
		switch p = rows[0]; p.State {
		case Returned:
			return p, errUnwritten
		case Taken: // also where two writers of a cluster have cancelled a line each, and each counted the other's
			if stands, err := tx.stands("public_id = (SELECT order_id FROM holds WHERE public_id = ?)", *p.Paid); err != nil {
				return p, err
			} else if stands {
				return p, ErrTaken
			}
			p.Reason = "cancelled"
		}
		now := tx.db.NowFunc()
		p.State, p.ReturnedAt, p.ReturnedBy, p.IdempotencyKey = Returned, &now, &by.Subject, &by.IdempotencyKey
		return p, tx.db.Select("state", "reason", "returned_at", "returned_by", "idempotency_key").Updates(&p).Error
	})
	return p, wrapped("return the payment "+reference, err)
}
