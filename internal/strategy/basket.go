package strategy

import (
	"context"

	"stocklock/internal/stock"
)

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
