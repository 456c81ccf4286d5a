// Package baskets has ways of taking several items in one sale, as people take them. Most of them break.
//
// They exist to be compared, with the strategies of package strategy that sell baskets. Each has one line
// in the list, and declares its basket properties. No shop in production contains them. Their customers'
// lines come in the order in which they were posted: see [strategy.Posted].
package baskets

import (
	"cmp"
	"context"
	"slices"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

var all = []ladder.Rung{
	rowsUnsorted,
	rowsSorted,
	oneStatement,
	saga,
	lineByLine,
	locksUnsorted,
	locksSorted,
	locksParallel,
	locksAllOrNone,
	lockForAll,
	countersLua,
	countersDecr,
}

// All returns the ways in teaching order, without the strategies that are fit for production.
func All() []ladder.Rung { return slices.Clone(all) }

// declare adds what all ways have in common, and those that work in the database alone.
func declare(s strategy.Strategy, d declared.Strategy) ladder.Rung {
	d.OnlyBaskets, d.Guard = true, cmp.Or(d.Guard, "nothing")
	if s.WithoutRedis {
		d.WaitsInMySQL, d.Properties = true, ladder.DatabaseLock
	}
	return ladder.Declare(s, d)
}

// linesOf returns the lines that a way takes, in its order.
type linesOf func(ctx context.Context, wanted stock.Sale) []stock.Line

// sorted has the lines in the order of their items. Those of one item are one.
func sorted(_ context.Context, wanted stock.Sale) []stock.Line { return wanted.Lines() }

// with returns the sale of these lines, as they are.
func with(wanted stock.Sale, lines []stock.Line) stock.Sale {
	wanted.ItemID, wanted.Quantity, wanted.More = lines[0].ItemID, lines[0].Quantity, lines[1:]
	return wanted
}

// taken announces that the units of a line were taken.
func taken(ctx context.Context) { sale.At(ctx, sale.Taken) }
