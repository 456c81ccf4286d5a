package stock

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// Decrement sells with one conditional statement for all lines, UPDATE ... SET stock = stock - ? WHERE
// stock >= ?. It needs neither a lock nor a read before it.
//
// The UPDATE comes before the INSERT of the order. An INSERT first would hold the row's lock for
// one round trip less. The order could then not say which stock it read, and the ids of orders
// would not follow their commits.
func (s *Store) Decrement(ctx context.Context, sale Sale) (Order, error) {
	return s.decrement(ctx, sale, unfenced)
}

// DecrementFenced is [Store.Decrement] that also raises each item's fence to the line's token. It is
// refused with [ErrFenced] if a fence is above the token.
//
// The fence adds order, not safety. It refuses an overtaken holder, whose write would still
// be right, because it subtracts from the stock in the row. Only a write that depends on a read
// needs [Store.RaiseFence], which raises the fence in a commit of its own before the read.
func (s *Store) DecrementFenced(ctx context.Context, sale Sale) (Order, error) {
	return s.decrement(ctx, sale, fencedBelow)
}

// DecrementOverFence is [Store.DecrementFenced] that sets the fences to the tokens whatever they
// were. It is for a holder that takes itself for not overtaken, and met the fence of a clock that was ahead. One
// that is wrong about that sells out of order, and oversells nothing.
func (s *Store) DecrementOverFence(ctx context.Context, sale Sale) (Order, error) {
	return s.decrement(ctx, sale, overFence)
}

// fence says what an UPDATE does with the fences.
type fence int

const (
	unfenced    fence = iota
	fencedBelow       // it sets them to the tokens, where none is above its token
	overFence         // it sets them to the tokens
)

// decrement takes the units of all lines and records the order. After a refusal, it asks for the reason
// without the locks on the rows.
func (s *Store) decrement(ctx context.Context, sale Sale, by fence) (order Order, err error) {
	refused := false
	err = s.transaction(ctx, RowTimeout, nil, func(tx *gorm.DB) (err error) {
		if err = sale.ready(tx); err != nil {
			return err
		}
		read, err := takeLines(tx, sale.Lines(), by)
		if refused = errors.Is(err, ErrSoldOut); err != nil {
			return err
		}
		for range sale.More {
			if sale.Taken != nil {
				sale.Taken()
			}
		}
		order, err = record(tx, sale, read)
		return err
	})
	if err = s.lookUp(ctx, err, order); refused {
		asking, cancel := looking(ctx) // a lock that is lost is no reason
		defer cancel()
		err = s.whyRefused(asking, sale, by)
	}
	return order, orderError(sale, err)
}

// whyRefused says why a sale was refused. If units have come back since then, it is a conflict. Of one item and
// without a look at its fence, the UPDATE has said that it is sold out, and the look may be at a replica that is behind.
// Elsewhere the look decides.
func (s *Store) whyRefused(ctx context.Context, sale Sale, by fence) error {
	look := func(at *Store) ([]Item, error) { return at.readRefused(ctx, sale) }
	said := by != fencedBelow && len(sale.More) == 0 && !sale.Holds
	var items []Item
	var err error
	if said {
		items, err = look(s)
	} else {
		items, err = AtPrimary(ctx, s, look)
	}
	if err != nil {
		return err
	}
	for i, line := range sale.Lines() {
		if item := items[i]; by == fencedBelow && item.Fence > line.Token && item.Stock >= line.Quantity {
			return ErrFenced
		}
	}
	if said {
		items[0].Stock = min(items[0].Stock, sale.Quantity-1)
	}
	if err := sale.refusedBy(items, nil, sale.soldOut()); err != nil {
		return err
	}
	return ErrConflict
}

// takeLines takes the units of all lines, and returns the stock that each line found, or [ErrSoldOut] if an
// item has too few or a fence is too high. The rows stay locked until the transaction ends.
//
// Of one line, the answer to the UPDATE has the units left. Several lines are one UPDATE and one SELECT. The
// server locks their rows in the order of their ids, as each other writer does: FORCE INDEX and ORDER BY
// make it read them so, and no others, however few rows the table has.
func takeLines(tx *gorm.DB, lines []Line, by fence) (read []int64, err error) {
	set, setArgs, where, args := "", []any(nil), "", []any(nil)
	if len(lines) == 1 {
		line := lines[0]
		if by != unfenced {
			set, setArgs = ", fence = ?", []any{line.Token}
		}
		where, args = "id = ? AND stock >= ?", []any{line.ItemID, line.Quantity}
		if by == fencedBelow {
			where, args = where+" AND fence <= ?", append(args, line.Token)
		}
		matched, left, err := exec(tx, "UPDATE items SET stock = LAST_INSERT_ID(stock - ?), version = version + 1"+set+" WHERE "+where,
			slices.Concat([]any{line.Quantity}, setArgs, args)...)
		if err == nil && matched == 0 {
			err = ErrSoldOut
		}
		return []int64{left + line.Quantity}, err
	}
	quantities, quantityArgs := perItem(lines, func(line Line) int64 { return line.Quantity })
	tokens, tokenArgs := perItem(lines, func(line Line) int64 { return line.Token })
	ids := anyOf(itemsOf(lines))
	in := "(" + marks(len(ids)) + ")"
	if by != unfenced {
		set, setArgs = ", fence = "+tokens, tokenArgs
	}
	where, args = "id IN "+in+" AND stock >= "+quantities, slices.Concat(ids, quantityArgs)
	if by == fencedBelow {
		where, args = where+" AND fence <= "+tokens, slices.Concat(args, tokenArgs)
	}
	matched, _, err := exec(tx, "UPDATE items FORCE INDEX (PRIMARY) SET stock = stock - "+quantities+", version = version + 1"+set+" WHERE "+where+" ORDER BY id",
		slices.Concat(quantityArgs, setArgs, args)...)
	if err == nil && matched != int64(len(lines)) {
		err = ErrSoldOut
	}
	if err == nil {
		err = tx.Raw("SELECT stock FROM items FORCE INDEX (PRIMARY) WHERE id IN "+in+" ORDER BY id", ids...).Scan(&read).Error
	}
	if err != nil {
		return nil, err
	}
	for i, line := range lines {
		read[i] += line.Quantity
	}
	return read, nil
}

// putBack adds the units of lines to their items' stock, or to what is withdrawn. The lines are in the order of the items, each item
// once. There are none where an operator has deleted those of a hold.
func (t Tx) putBack(lines []Line) error {
	if len(lines) == 0 {
		return nil
	}
	quantities, args := perItem(lines, func(line Line) int64 { return line.Quantity })
	_, _, err := t.Exec("UPDATE items FORCE INDEX (PRIMARY) SET stock = stock + IF(withdrawn IS NULL, "+quantities+", 0), withdrawn = withdrawn + "+quantities+
		", version = version + 1 WHERE id IN ("+marks(len(lines))+") ORDER BY id", slices.Concat(args, args, anyOf(itemsOf(lines)))...)
	return err
}

// perItem is an expression for a value of each line's item.
func perItem(lines []Line, value func(Line) int64) (expression string, args []any) {
	for _, line := range lines {
		args = append(args, line.ItemID, value(line))
	}
	return "CASE id" + strings.Repeat(" WHEN ? THEN ?", len(lines)) + " END", args
}

// marks returns n placeholders. N is 1 or more.
func marks(n int) string { return "?" + strings.Repeat(", ?", n-1) }

func anyOf(ids []uint64) []any { return each(ids, func(id uint64) any { return id }) }

// take takes units of an item, and returns the units left, or [ErrSoldOut]. The row stays locked until the
// transaction ends.
func take(tx *gorm.DB, itemID uint64, quantity int64) (left int64, err error) {
	read, err := takeLines(tx, []Line{{ItemID: itemID, Quantity: quantity}}, unfenced)
	return read[0] - quantity, err
}

// Key identifies a customer's order: see Sale.IdempotencyKey.
type Key struct{ Subject, IdempotencyKey string }

// Key returns the sale's key. Its IdempotencyKey is empty if the sale has none.
func (s Sale) Key() Key { return Key{s.Subject, s.IdempotencyKey} }
