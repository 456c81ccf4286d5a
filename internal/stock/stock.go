// Package stock is the domain: items that have stock, orders that took some of
// it, and the MySQL store that keeps both.
//
// The store offers the building blocks of a sale (read the stock, write it and
// the order together) and not the sale itself: which blocks, in which order and
// under which lock, is what a strategy decides.
package stock

import "time"

// Item is something that can sell out.
type Item struct {
	ID      uint64 `json:"id"`
	Name    string `json:"name"`
	Stock   int64  `json:"stock"`   // units left; negative only after an oversell
	Version int64  `json:"version"` // grows with every write of the item
	Fence   int64  `json:"-"`       // the highest fencing token that was let in
}

// Take says what is left after taking quantity units, or ErrSoldOut.
func (i Item) Take(quantity int64) (left int64, err error) {
	if i.Stock < quantity {
		return i.Stock, ErrSoldOut
	}
	return i.Stock - quantity, nil
}

// Sale is one customer's wish: some units of one item.
type Sale struct {
	ItemID    uint64
	Quantity  int64 // at least 1
	RequestID string
	Strategy  string
	Run       string // the load-test run it belongs to, empty outside one
	Shop      string // the process that serves it
	Token     int64  // fencing token of the lock it is made under, 0 without one
	// Subject is the customer, empty where no gateway names one.
	Subject string
	// IdempotencyKey names the customer's wish: of all sales of a subject with one key only one is
	// made. Empty means that it has none.
	IdempotencyKey string
	// OrderID becomes the public id of the order, which is unique: a sale that may be made twice
	// brings it. Empty means that the store makes one.
	OrderID string
	// Ready is called when the sale has its connection and before it writes. Its error refuses the
	// sale. Nil allows every sale.
	Ready func() error `json:"-"`
}

func (s Sale) ready() error {
	if s.Ready == nil {
		return nil
	}
	return s.Ready()
}

// Order is the row that proves a sale, with what it read and wrote. Its JSON is the lab's:
// customers are shown less.
type Order struct {
	ID           uint64    `json:"id"`                  // in the order of the commits of an item
	PublicID     string    `json:"public_id,omitempty"` // UUIDv7; empty for orders made before there were such ids
	Subject      string    `json:"subject,omitempty"`
	ItemID       uint64    `json:"item_id"`
	Quantity     int64     `json:"quantity"`
	StockRead    int64     `json:"stock_read"`
	StockWritten int64     `json:"stock_written"`
	Token        int64     `json:"token,string"` // a string, because it passes 2^53
	Strategy     string    `json:"strategy"`
	Run          string    `json:"run,omitempty"`
	Shop         string    `json:"shop"`
	RequestID    string    `json:"request_id"`
	CreatedAt    time.Time `json:"created_at"`

	CancelledAt *time.Time `json:"cancelled_at,omitempty"` // nil for an order that stands

	IdempotencyKey *string `json:"idempotency_key,omitempty"` // nil where the sale had none
}
