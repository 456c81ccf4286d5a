package strategy

import (
	"context"

	"stocklock/internal/stock"
)

// basketsInRows are the basket properties of a strategy that locks rows in the order of the items, in
// one transaction.
var basketsInRows = Properties{
	Has:           Crossable | AddsUp | Isolated | Whole | Unstarved,
	NotApplicable: FreesLocks | OvertakeProof,
}

// basketsUnderLocks are those of a strategy that does so under locks with leases, and compares their
// tokens.
var basketsUnderLocks = Properties{Has: basketsInRows.Has | FreesLocks | OvertakeProof}

// BasketsInRows returns the basket properties of a strategy that locks only rows, in the order of the
// items, in one transaction.
func BasketsInRows() Properties { return basketsInRows }

type postedKey struct{}

// WithPosted returns a context for a sale whose customer posted these lines. [stock.Sale.SetLines] has
// sorted and merged those of the sale itself. Only strategies that do without need them.
func WithPosted(ctx context.Context, lines []stock.Line) context.Context {
	return context.WithValue(ctx, postedKey{}, lines)
}

// Posted returns the lines of a sale as its customer posted them, or those of the sale.
func Posted(ctx context.Context, sale stock.Sale) []stock.Line {
	if lines, ok := ctx.Value(postedKey{}).([]stock.Line); ok {
		return lines
	}
	return sale.Lines()
}
