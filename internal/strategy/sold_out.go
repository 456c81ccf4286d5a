package strategy

import (
	"context"
	"errors"
	"slices"
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

// note notes the items that are sold out, where that is the error of a sale.
func (s *soldOutItems) note(wanted stock.Sale, err error) {
	if !errors.Is(err, stock.ErrSoldOut) {
		return
	}
	lines, ok := errors.AsType[stock.LineErrors](err)
	if !ok {
		lines = stock.LineErrors{{ItemID: wanted.ItemID, Err: stock.ErrSoldOut}}
	}
	for _, line := range lines {
		if errors.Is(line.Err, stock.ErrSoldOut) {
			s.add(line.ItemID)
		}
	}
}

func (s *soldOutItems) add(itemID uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil || len(s.items) >= maxSoldOut {
		s.items = map[uint64]struct{}{}
	}
	s.items[itemID] = struct{}{}
}

// check returns stock.ErrSoldOut if an item of the sale was sold out before, and there are still too
// few units.
func (s *soldOutItems) check(ctx context.Context, store *stock.Store, wanted stock.Sale) error {
	lines := wanted.Lines()
	isSuspected := func(l stock.Line) bool { _, is := s.items[l.ItemID]; return is }
	s.mu.Lock()
	suspected := slices.ContainsFunc(lines, isSuspected)
	s.mu.Unlock()
	if !suspected {
		return nil
	}
	items, err := store.ReadLines(ctx, wanted)
	if err != nil {
		return err
	}
	if err := wanted.Check(items); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range lines {
		delete(s.items, line.ItemID)
	}
	return nil
}
