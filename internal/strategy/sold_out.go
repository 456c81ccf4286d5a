package strategy

import (
	"context"
	"sync"

	"stocklock/internal/stock"
)

// soldOutItems remembers which items were found sold out. The next sale of such an item looks with
// a plain SELECT first, which waits for no lock: an UPDATE that matches no row locks it all the
// same. The memory only saves work. Whether an item is sold out is asked of the database each time.
//
// It is safe for concurrent use.
type soldOutItems struct {
	mu    sync.Mutex
	items map[uint64]struct{}
}

// maxSoldOut bounds the memory. Above it all is forgotten.
const maxSoldOut = 10_000

func (s *soldOutItems) note(itemID uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil || len(s.items) >= maxSoldOut {
		s.items = map[uint64]struct{}{}
	}
	s.items[itemID] = struct{}{}
}

// check returns stock.ErrSoldOut where the item was found sold out before and has still fewer units
// than these.
func (s *soldOutItems) check(ctx context.Context, store *stock.Store, itemID uint64, quantity int64) error {
	s.mu.Lock()
	_, suspected := s.items[itemID]
	s.mu.Unlock()
	if !suspected {
		return nil
	}
	item, err := store.Read(ctx, itemID)
	if err != nil {
		return err
	}
	if _, err := item.Take(quantity); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, itemID)
	return nil
}
