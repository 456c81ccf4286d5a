package stock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// Hold keeps units of items for a customer who pays. The API calls it a reservation. Its units leave the
// items' stock when it is made, and come back when it is released or expires.
//
// The state decides, and not the clock: a hold that is overdue can be confirmed until a shop has ended it.
type Hold struct {
	ID        uint64
	PublicID  string
	Subject   string // the customer; empty when its data was deleted
	State     HoldState
	Steps     int // the entries of its history
	Seconds   int64
	CreatedAt time.Time
	HeldUntil time.Time
	Extended  bool
	PayUntil  *time.Time // the end of the payment window; nil before the payment has begun
	LiveUntil *time.Time // when shops may end it; nil for one that is over
	EndedAt   *time.Time
	EndedBy   *string
	OrderID   *string // the public id of its order
	Reference *string // of its payment
	InsteadOf *string // the public id of the ended one whose payment came late

	Lines []HoldLine `gorm:"-"` // in the order of the items
	Moved bool       `gorm:"-"` // the call that returned it has changed its state
}

// HoldState is the state of a [Hold]. A live one is held or paying.
type HoldState string

const (
	Held      HoldState = "held"
	Paying    HoldState = "paying"    // the customer is at the payment provider
	Confirmed HoldState = "confirmed" // paid: it has an order
	Released  HoldState = "released"  // given back
	Expired   HoldState = "expired"   // ended by a shop, because its time was over
)

// Live reports whether the hold has its units.
func (h Hold) Live() bool { return h.State == Held || h.State == Paying }

// HoldLine is what a hold has of one item.
type HoldLine struct {
	HoldID    uint64
	ItemID    uint64
	Quantity  int64
	Subject   string
	LiveUntil *time.Time
}

// HoldStep is an entry of a hold's history.
type HoldStep struct {
	HoldID    uint64
	N         int       // from 1
	Was       HoldState // empty for the first
	Becomes   HoldState
	At        time.Time
	DoneBy    string // a subject, or the shop that ended it
	Reason    string // may be empty
	RequestID string
}

// TableName is for gorm.
func (HoldStep) TableName() string { return "hold_history" }

// Terms are the bounds of holds.
type Terms struct {
	Open    int           // how many live ones a customer may have
	Longest time.Duration // how long one may be held, with its extension
	Window  time.Duration // how long a payment may take
	Grace   time.Duration // how much later a payment may be confirmed before a shop ends the hold
	// TakeLate takes a payment for an ended hold if its units are free: see [Store.Confirm].
	TakeLate bool
}

// These errors refuse a request about a hold. Except where one says otherwise, nothing was written.
var (
	// ErrHeld: fewer units are free than were asked for, and others hold some, which may come back.
	ErrHeld = errors.New("stock: others hold the units")
	// ErrTooManyHolds: the customer has as many live holds as it may have.
	ErrTooManyHolds = errors.New("stock: the customer has too many live holds")
	// ErrHoldEnded: the hold was released, or has expired.
	ErrHoldEnded = errors.New("stock: the hold has ended")
	// ErrConfirmed: the hold is confirmed, and has its order.
	ErrConfirmed = errors.New("stock: the hold is confirmed")
	// ErrExtended: the hold was extended before.
	ErrExtended = errors.New("stock: the hold was extended before")
	// ErrPaying: the hold's payment has begun.
	ErrPaying = errors.New("stock: the payment has begun")
	// ErrTooLong: the hold would be held for longer than [Terms] allow.
	ErrTooLong = errors.New("stock: the hold would last too long")
)

// Holder makes and ends holds, as [Store] does.
type Holder interface {
	Hold(ctx context.Context, wanted Sale, seconds int64, terms Terms) (Hold, error)
	EndOverdue(ctx context.Context, shop string, wanted Sale) (ended int, err error)
	Move(ctx context.Context, by Author, id string, to Transition) (Hold, error)
	Confirm(ctx context.Context, by Author, id, reference string, paid Sale, terms Terms) (Hold, error)
}

// holdWrites need what a hold, its payment and its end need, and touch no row: see [Store.CanSell].
var holdWrites = []string{
	"UPDATE holds h, hold_lines l, payments p SET h.steps = 0, l.quantity = 0, p.reason = '' WHERE FALSE",
	"INSERT INTO hold_customers SELECT * FROM hold_customers WHERE FALSE ON DUPLICATE KEY UPDATE subject = ''",
	"INSERT INTO hold_keys SELECT * FROM hold_keys WHERE FALSE",
	"INSERT INTO holds SELECT * FROM holds WHERE FALSE",
	"INSERT INTO hold_history SELECT * FROM hold_history WHERE FALSE",
	"INSERT INTO hold_lines SELECT * FROM hold_lines WHERE FALSE",
	"INSERT INTO payments SELECT * FROM payments WHERE FALSE",
}

// Hold takes the units of the sale's lines for so many seconds, or none. Of all holds of a subject under one
// idempotency key, one is made: another one is [ErrRepeated].
func (s *Store) Hold(ctx context.Context, wanted Sale, seconds int64, terms Terms) (Hold, error) {
	h, err := Within(ctx, s, func(tx Tx) (Hold, error) { return tx.Hold(wanted, seconds, terms) })
	if errors.Is(err, ErrSoldOut) {
		asking, cancel := looking(ctx)
		defer cancel()
		if err = s.RefusalAtPrimary(asking, wanted); err == nil { // units came back
			err = ErrConflict
		}
	}
	if errors.Is(err, ErrUnknown) {
		asking, cancel := looking(ctx)
		defer cancel()
		if made, missing := s.HoldByID(asking, h.PublicID); missing == nil {
			return made, nil
		}
	}
	return h, wrapped("hold units", err)
}

// Hold is [Store.Hold] in this transaction. It is [ErrSoldOut] where too few units are free, whatever the reason.
//
// Everything but the lines is inserted before the items' rows are locked.
func (t Tx) Hold(wanted Sale, seconds int64, terms Terms) (h Hold, err error) {
	now := t.db.NowFunc()
	until := now.Add(time.Duration(seconds) * time.Second)
	h = Hold{
		PublicID: uuid.Must(uuid.NewV7()).String(), Subject: wanted.Subject, State: Held, Steps: 1, Seconds: seconds,
		CreatedAt: now, HeldUntil: until, LiveUntil: &until,
	}
	if _, _, err := t.Exec("INSERT INTO hold_customers (subject) VALUES (?) ON DUPLICATE KEY UPDATE subject = subject", h.Subject); err != nil {
		return h, err
	}
	var open []int
	if err := t.Query(&open, "SELECT COUNT(*) FROM holds WHERE subject = ? AND live_until IS NOT NULL", h.Subject); err != nil {
		return h, err
	}
	if _, _, err := t.Exec("INSERT INTO hold_keys (subject, idempotency_key, hold, keyed_at) VALUES (?, ?, ?, UTC_TIMESTAMP(6))",
		h.Subject, wanted.IdempotencyKey, h.PublicID); err != nil {
		return h, err
	}
	if open[0] >= terms.Open {
		return h, ErrTooManyHolds
	}
	if err := t.insertHold(&h, Author{Subject: wanted.Subject, RequestID: wanted.RequestID}, ""); err != nil {
		return h, err
	}
	if _, err = takeLines(t.db, wanted.Lines(), unfenced); err == nil {
		err = wanted.checkLimit(t.db)
	}
	if err != nil {
		return h, err
	}
	return h, t.insertHoldLines(&h, wanted.Lines())
}

// insertHold inserts a hold without its lines, and the first entry of its history.
func (t Tx) insertHold(h *Hold, by Author, reason string) error {
	created := t.db.Omit("ID").Create(h)
	if created.Error != nil {
		return created.Error
	}
	return t.noteStep(*h, "", by, reason, h.CreatedAt)
}

func (t Tx) insertHoldLines(h *Hold, lines []Line) error {
	for _, line := range lines {
		h.Lines = append(h.Lines, HoldLine{h.ID, line.ItemID, line.Quantity, h.Subject, h.LiveUntil})
	}
	return t.db.Create(&h.Lines).Error
}

func (t Tx) noteStep(h Hold, was HoldState, by Author, reason string, at time.Time) error {
	return t.db.Create(&HoldStep{h.ID, h.Steps, was, h.State, at, by.Subject, reason, by.RequestID}).Error
}

// HoldByID returns the hold with this public id, or [ErrNotFound].
func (s *Store) HoldByID(ctx context.Context, publicID string) (Hold, error) {
	return s.holdWhere(ctx, "h.public_id = ?", publicID)
}

// HoldByKey returns the hold that a subject made under this idempotency key, or [ErrNotFound].
func (s *Store) HoldByKey(ctx context.Context, subject, key string) (Hold, error) {
	return s.holdWhere(ctx, "h.public_id = (SELECT hold FROM hold_keys WHERE subject = ? AND idempotency_key = ?)", subject, key)
}

func (s *Store) holdWhere(ctx context.Context, where string, args ...any) (Hold, error) {
	return again(ctx, func() (Hold, error) { return holdWhere(s.db.WithContext(ctx), where, args...) })
}

// holdWhere reads a hold, named h, with its lines in one statement: see [wholeOrders].
func holdWhere(db *gorm.DB, where string, args ...any) (h Hold, err error) {
	var rows []struct {
		Hold   `gorm:"embedded"`
		ItemID uint64
		Units  int64
	}
	err = db.Raw("SELECT h.*, l.item_id, l.quantity AS units FROM holds h LEFT JOIN hold_lines l ON l.hold_id = h.id WHERE "+where, args...).Scan(&rows).Error
	if err != nil {
		return h, wrapped("read a reservation", err)
	}
	if len(rows) == 0 {
		return h, ErrNotFound
	}
	h = rows[0].Hold
	for _, row := range rows {
		if row.ItemID != 0 { // the lines of what was forgotten are deleted
			h.Lines = append(h.Lines, HoldLine{h.ID, row.ItemID, row.Units, h.Subject, h.LiveUntil})
		}
	}
	slices.SortFunc(h.Lines, func(a, b HoldLine) int { return cmp.Compare(a.ItemID, b.ItemID) })
	return h, nil
}

// HoldsOf returns up to limit holds of a subject, the newest first. Before is the public id of one of them,
// behind which the list goes on, or empty. It is [ErrNotFound] if it is none of the subject's.
func (s *Store) HoldsOf(ctx context.Context, subject, before string, limit int) ([]Hold, error) {
	query, err := s.newestOf(ctx, "holds", subject, before, limit)
	if err != nil {
		return nil, err
	}
	holds, err := again(ctx, func() ([]Hold, error) { return all[Hold](query) })
	if err != nil || len(holds) == 0 {
		return nil, wrapped("list reservations", err)
	}
	at := map[uint64]*Hold{}
	var ids []uint64
	for i := range holds {
		ids, at[holds[i].ID] = append(ids, holds[i].ID), &holds[i]
	}
	lines, err := again(ctx, func() ([]HoldLine, error) {
		return all[HoldLine](s.db.WithContext(ctx).Order("item_id"), "hold_id IN ?", ids)
	})
	for _, line := range lines {
		at[line.HoldID].Lines = append(at[line.HoldID].Lines, line)
	}
	return holds, wrapped("read the lines of reservations", err)
}

// HoldHistory returns the transitions of a hold, the oldest first.
func (s *Store) HoldHistory(ctx context.Context, h Hold) ([]HoldStep, error) {
	steps, err := again(ctx, func() ([]HoldStep, error) {
		return all[HoldStep](s.db.WithContext(ctx).Order("n"), "hold_id = ?", h.ID)
	})
	return steps, wrapped("read the history of a reservation", err)
}

// Wanted returns the hold's lines as those of a sale, and the units that each line finds in the hold.
func (h Hold) Wanted() (lines []Line, found []int64) {
	for _, line := range h.Lines {
		lines, found = append(lines, Line{ItemID: line.ItemID, Quantity: line.Quantity}), append(found, line.Quantity)
	}
	return lines, found
}

// ReadHold reads a hold with its lines, and locks nothing.
func (t Tx) ReadHold(publicID string) (Hold, error) {
	return holdWhere(t.db, "h.public_id = ?", publicID)
}

// lockHold is ReadHold, and locks the rows until the transaction ends. Every writer locks a hold before its lines, and
// before the rows of its items, but for a sweep that waits for items: it takes only holds that nobody has locked.
func (t Tx) lockHold(publicID string) (Hold, error) {
	return holdWhere(t.db, "h.public_id = ?"+forUpdate, publicID)
}

// move writes a hold's new state, with the history, and the times of its lines.
func (t Tx) move(h *Hold, was HoldState, by Author, reason string) error {
	h.Steps, h.Moved = h.Steps+1, h.State != was
	now := t.db.NowFunc()
	if !h.Live() {
		h.LiveUntil, h.EndedAt, h.EndedBy = nil, &now, &by.Subject
	}
	if err := t.db.Select("*").Omit("id", "public_id").Updates(h).Error; err != nil {
		return err
	}
	if _, _, err := t.Exec("UPDATE hold_lines SET live_until = ? WHERE hold_id = ?", h.LiveUntil, h.ID); err != nil {
		return err
	}
	return t.noteStep(*h, was, by, reason, now)
}
