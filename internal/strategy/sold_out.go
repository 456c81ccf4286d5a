package strategy

import (
	"context"
	"sync"

	"stocklock/internal/stock"
)

// soldOutItems remembers items that were sold out. The next sale of such an item first sends a
// plain SELECT, which waits for no lock. An UPDATE would lock the row even without a match. The
// memory only saves work: each sale asks the database whether the item is sold out.
//
// It is safe for concurrent use.
type soldOutItems struct {
	mu    sync.Mutex
	items map[uint64]struct{}
}

// maxSoldOut bounds the memory. Above it, all items are forgotten.
const maxSoldOut = 10_000

func (s *soldOutItems) note(itemID uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil || len(s.items) >= maxSoldOut {
		s.items = map[uint64]struct{}{}
	}
	s.items[itemID] = struct{}{}
}

// check returns stock.ErrSoldOut if the item was sold out before, and still has fewer units than
// quantity.
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
