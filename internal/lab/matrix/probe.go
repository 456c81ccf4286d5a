package matrix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/stock"
)

// probe checks a shop that was given by address: it must be ready, obey the lab's headers, and sell
// by the strategy from the database that store reads. It buys one unit of an item made for that.
func probe(ctx context.Context, shop, strategy string, store *stock.Store) error {
	run, err := audit.Start(ctx, store, audit.Run{
		ID: "probe-" + time.Now().UTC().Format("150405.000000000"), Strategy: strategy, Scenario: "probe", InitialStock: 1,
	})
	if err != nil {
		return err
	}
	a := load.Send(ctx, load.Order{Shop: shop, ItemID: run.ItemID, Quantity: 1, Strategy: strategy, Run: run.ID})
	switch {
	case a.Err != nil:
		return a.Err
	case a.Status == http.StatusNotFound || a.Status == http.StatusConflict: // no such item, or another one
		return errors.New("the shop does not know the item that was just made: it sells from another database than --mysql")
	case a.Outcome != load.Sold:
		return fmt.Errorf("a sale was answered with %d %s: %s", a.Status, http.StatusText(a.Status), a.Detail())
	}
	if order, err := a.Sale(); err != nil || order.Run != run.ID || order.Strategy != strategy {
		return errors.New("the shop does not obey the lab's headers: start it with SHOP_LAB=true")
	}
	return nil
}
