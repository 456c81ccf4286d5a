// Package stock is the domain: items that have stock, orders that took some of it, and the MySQL
// store that keeps both.
//
// The store offers the building blocks of a sale: read the stock, or write it together with the
// order. A strategy decides which blocks a sale uses, in which order and under which lock.
package stock

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Item is something that can sell out.
type Item struct {
	ID      uint64 `json:"id"`
	Name    string `json:"name"`
	Stock   int64  `json:"stock"`   // units left; negative only after an oversell
	Version int64  `json:"version"` // grows with every write of the item
	Fence   int64  `json:"-"`       // the highest fencing token that was admitted
}

// Seen reports whether an item is as a client has seen it. Nil allows any.
type Seen func(Item) bool

func (s Seen) allows(item Item) bool { return s == nil || s(item) }

// Take returns the units that are left after taking quantity units, or ErrSoldOut.
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
	// Subject is the customer. It is empty if no gateway names one.
	Subject string
	// IdempotencyKey names the customer's order. Of all sales of a subject under one key, only one
	// is made. Empty means no key.
	IdempotencyKey string
	// OrderID becomes the public id of the order, which is unique. A sale that may be made twice
	// sets it. If it is empty, the store makes one.
	OrderID string
	// Ready is called when the sale has its connection, before it writes. Its error refuses the
	// sale. Nil allows every sale.
	Ready func() error `json:"-"`
}

func (s Sale) ready() error {
	if s.Ready == nil {
		return nil
	}
	return s.Ready()
}

// Order is the row that proves a sale, with the stock that it read and wrote. Its JSON is for the
// lab. Customers see less.
type Order struct {
	ID           uint64    `json:"id,omitempty"`        // in the order of the commits of an item; 0 where a batch has just made it
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
	KeyedAt        keyedAt `json:"-" gorm:"->:false;<-:create"`
}

// keyedAt makes the database write the time of its clock. It reports whether there is a key.
type keyedAt bool

// GormValue implements [gorm.Valuer].
func (k keyedAt) GormValue(context.Context, *gorm.DB) clause.Expr {
	if k {
		return clause.Expr{SQL: "UTC_TIMESTAMP(6)"}
	}
	return clause.Expr{SQL: "NULL"}
}
