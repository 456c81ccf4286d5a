package baskets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

var oneStatement = declare(strategy.Strategy{
	Name:         "one-statement",
	Doc:          "one UPDATE for all rows, with a CASE for the quantities: of two lines of one item, only the first counts",
	WithoutRedis: true,
	Build:        strategy.Retrying(sellInOneStatement),
}, declared.Strategy{
	Source:    "Magento 1, Mage_CatalogInventory_Model_Resource_Stock: UPDATE ... SET qty = CASE product_id WHEN ... END",
	Decrement: "UPDATE ... SET stock = stock - CASE id WHEN ... END WHERE id IN (...) AND stock >= ...",
	Telling:   "same-item-twice",
	Baskets: &declared.Properties{
		Has:           ladder.BasketsInRows.Has &^ declared.AddsUp,
		NotApplicable: ladder.BasketsInRows.NotApplicable,
	},
})

func sellInOneStatement(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	wanted = with(wanted, strategy.Posted(ctx, wanted))
	lines := wanted.Lines()
	var quantity, ids strings.Builder
	items := map[uint64]bool{}
	for i, line := range lines {
		fmt.Fprintf(&quantity, " WHEN %d THEN %d", line.ItemID, line.Quantity)
		if items[line.ItemID] = true; i > 0 {
			ids.WriteByte(',')
		}
		fmt.Fprint(&ids, line.ItemID)
	}
	update := fmt.Sprintf("UPDATE items SET stock = stock - CASE id%s END, version = version + 1 WHERE id IN (%s) AND stock >= CASE id%[1]s END",
		&quantity, &ids)
	order, err := stock.Within(ctx, store, func(tx stock.Tx) (none stock.Order, err error) {
		sale.At(ctx, sale.Write)
		matched, _, err := tx.Exec(update)
		if err != nil {
			return none, err
		}
		if int(matched) < len(items) {
			return none, stock.ErrSoldOut
		}
		taken(ctx)
		return tx.RecordLines(wanted, slices.Repeat([]int64{0}, len(lines))) // it has read nothing
	})
	return strategy.Written(ctx, order, err)
}
