// Package stock is the domain: items that have stock, orders that took some of it, and the MySQL
// store that keeps both.
//
// The store offers the building blocks of a sale: read the stock, or write it together with the
// order. A strategy decides which blocks a sale uses, in which order and under which lock.
//
// # Decisions
//
// A change locks the item's row, and takes neither the lock in Redis nor the fence. Under the row's
// lock, a change may write what it computed. The raised version informs writers that do not lock.
// So a restock never waits for a section of seconds. The price is that fenced cannot be mixed with
// changes.
//
// A withdrawn item has a stock of 0, and its units in another column. A flag would be one more
// condition in each statement of a sale, and old shops would not know it. A sale that reads and
// writes under a lock finds 0, or a raised version.
//
// A customer is erased by a command of the operator. A route would give each shop the right to
// change whose an order is.
//
// The age of a key has an indexed column of its own, NULL for an order without a key. The index
// therefore finds the oldest keys among millions of orders without reading the others. The database
// fills the column by its own clock, also for shops that do not know it. A computed column would
// need no code. But MariaDB then adds no further column to the table without a rebuild that blocks
// writes. Keys in a table of their own would cost each sale another INSERT, and old and new shops
// would look for a key in different places.
//
// One list says what an error of MySQL means (internal/stock/errors.go): nothing was done and all
// of it is repeated, nothing was done and a repeat fails, too, the server cannot work now, or the
// outcome is open. Each answer and each advice follows from it. An error that is not listed is
// answered with 503, and logged. At COMMIT, all but the errors that say that the server has rolled
// back leave the outcome open. The shop then looks for the order, and never repeats the sale. A
// plain read and a change of an item are tried three times. A sale is repeated by its strategy, for
// as long as it may wait.
//
// Where the database subtracts, the lines of a basket are one UPDATE and one SELECT. Where a strategy
// writes what it has computed, each line has an UPDATE. Rows are locked until COMMIT, so what counts is
// the number of round trips from the first row on: UPDATE, SELECT, two INSERTs, COMMIT, and one
// more with a limit. Fifty UPDATEs made fifty. FORCE INDEX (PRIMARY) and ORDER BY id make the
// server lock the rows in the order of their ids, and no others: a test sees it, on the server that
// it runs on. Under a lock in Redis, a basket acquires a lock for each of its lines, at most fifty,
// one inside the other.
//
// The first line of an order is the order. Its row has the public id and the key. Each further line
// is a row of orders, too, with the id of the first in line_of. So an order of one line writes one row.
// Code that counts units by item counts further lines, too, without a change. A table of lines would
// cost each sale another INSERT.
//
// A limit is counted from the orders, under the lock on the item's row. A counter for each customer
// would be one more row that can be wrong. The rows of all lines are locked first: a snapshot from
// before would not have the orders that were waited for.
//
// A list of orders goes on behind an order, not a number. New orders come before the first page and
// move nothing. The cursor is the public id of the last order of a page: a row's number would tell
// how much the shop sells.
//
// A migration is done under a lease in a row, and waits for tables in turns of a second. GET_LOCK
// is local to a node of a cluster. While an ALTER waits for a table, every sale waits behind it. It
// therefore gives up after a second, lets the sales pass, and tries again. The same repetition
// waits for the ALTER of a process that has died. Each file of sql/migrations has at most one
// statement that cannot be repeated.
//
// gorm writes models, and plain SQL the rest. A sale's UPDATE takes LAST_INSERT_ID from the answer,
// which gorm cannot express. gin's validator checks values. A strict decoder checks the names,
// because encoding/json under gin's binding accepts repeated names and names in capitals.
package stock

import (
	"cmp"
	"slices"
	"time"

	"gorm.io/gorm"
)

// Item is something that can sell out.
type Item struct {
	ID      uint64 `json:"id"`
	Name    string `json:"name"`
	Stock   int64  `json:"stock"`   // units left; negative only after an oversell
	Version int64  `json:"version"` // grows with every write of the item
	Fence   int64  `json:"-"`       // the highest fencing token that was admitted
	// Held are the units that are held for customers, besides the stock. [Store.View] reads them, and what asks
	// why a sale is refused reads 1 where somebody holds some.
	Held int64 `json:"held,omitempty" gorm:"->"`
	// Withdrawn has the units of an item that is not on sale, whose stock is 0. It is nil for one that is.
	Withdrawn *int64 `json:"withdrawn,omitempty"`
}

// Units returns how many units there are, on sale or not.
func (i Item) Units() int64 {
	if i.Withdrawn == nil {
		return i.Stock
	}
	return i.Stock + *i.Withdrawn
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

// Line is what a sale takes of one item.
type Line struct {
	ItemID   uint64
	Quantity int64 // at least 1
	Token    int64 // fencing token of the lock it is made under, 0 without one
}

// Sale is one customer's wish: some units of one item, or of several. Of several, all are sold or
// none.
type Sale struct {
	ItemID   uint64
	Quantity int64 // at least 1
	// More has the further lines of a basket. [Sale.SetLines] puts all lines in the order of their
	// items, in which every writer locks rows.
	More      []Line
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
	// Taken is called after the units of each line but the last were taken, in the transaction. It may be
	// nil.
	Taken func() `json:"-"`
	// Limit is how many units of one item the subject may have in orders that stand. 0 means no limit.
	Limit int64
	// Holds says that the shop offers reservations: the limit counts what is held for the subject, and a refusal
	// says whether others hold the units.
	Holds bool
}

// SetLines sets what the sale takes, which must be at least one line. Lines of the same item become
// one, with the sum of their quantities.
func (s *Sale) SetLines(lines []Line) {
	merged := summed(lines)
	s.ItemID, s.Quantity, s.Token, s.More = merged[0].ItemID, merged[0].Quantity, merged[0].Token, merged[1:]
}

// summed adds up the lines of each item, in the order of the items.
func summed(lines []Line) []Line {
	lines = slices.SortedStableFunc(slices.Values(lines), func(a, b Line) int { return cmp.Compare(a.ItemID, b.ItemID) })
	var merged []Line
	for _, line := range lines {
		if len(merged) == 0 {
			merged = append(merged, line)
		} else if last := &merged[len(merged)-1]; last.ItemID == line.ItemID {
			last.Quantity += line.Quantity
		} else {
			merged = append(merged, line)
		}
	}
	return merged
}

// Lines returns all lines of the sale, in the order of their items.
func (s Sale) Lines() []Line {
	return append([]Line{{s.ItemID, s.Quantity, s.Token}}, s.More...)
}

func (s Sale) ready(*gorm.DB) error {
	if s.Ready == nil {
		return nil
	}
	return s.Ready()
}

// Order is the row that proves a sale, with the stock that it read and wrote. Its JSON is for the
// lab. Customers see less.
//
// The order of a basket has a row for each line. The first row is the order: it has the public id and
// the key. What belongs to a line is in its own row: the item, the quantity, the token, the stock, and
// whether the line is cancelled.
type Order struct {
	ID           uint64    `json:"id,omitempty"`                            // in the order of the commits of an item; 0 where a batch has just made it
	LineOf       *uint64   `json:"line_of,omitempty" gorm:"default:null"`   // the first row's id; nil for the first row
	PublicID     string    `json:"public_id,omitempty" gorm:"default:null"` // UUIDv7; empty for orders made before there were such ids, and for further rows
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

	More []Order `json:"more,omitempty" gorm:"-"` // the further rows, in the order of their items
}

// Rows returns the rows of an order without their further rows.
func (o Order) Rows() []Order {
	rows := append([]Order{o}, o.More...)
	rows[0].More = nil
	return rows
}

// Row returns the row of an order that has the item.
func (o Order) Row(itemID uint64) (row Order, ok bool) {
	rows := o.Rows()
	at := slices.IndexFunc(rows, func(r Order) bool { return r.ItemID == itemID })
	if at < 0 {
		return Order{}, false
	}
	return rows[at], true
}
