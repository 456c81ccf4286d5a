package strategy

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

var forUpdate = Strategy{
	Name:         "for-update",
	Doc:          "SELECT ... FOR UPDATE: the database's row lock, freed by the commit or by the end of the connection",
	WithoutRedis: true,
	Mixable:      true,
	Baskets:      true,
	RefusesEarly: true,
	Build:        Retrying(sellForUpdate),
}

func sellForUpdate(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	order, err := store.ForUpdate(ctx, wanted, func(read []stock.Item) error {
		sale.At(ctx, sale.Read, slog.Int64("stock", read[0].Stock))
		err := wanted.Check(read)
		if err == nil {
			sale.At(ctx, sale.Write)
		}
		return err
	})
	return Written(ctx, order, err)
}
