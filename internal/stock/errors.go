package stock

import "errors"

// What can keep a sale from being made. All of them mean that nothing was
// written.
var (
	// ErrNotFound: there is no such item, or no such run.
	ErrNotFound = errors.New("stock: not found")
	// ErrSoldOut: fewer units are left than were asked for.
	ErrSoldOut = errors.New("stock: sold out")
	// ErrFenced: a newer holder of the lock has been here; this one was overtaken.
	ErrFenced = errors.New("stock: fenced off by a newer token")
	// ErrConflict: the item changed between the read and the write, or the database
	// chose this transaction to end a deadlock. Reading anew and trying again may succeed.
	ErrConflict = errors.New("stock: item changed since it was read")
)
