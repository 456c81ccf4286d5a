package exercise

import (
	"context"
	"fmt"
	"sync"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/stock"
)

// How many units two items have that are sold at once, and how many customers each of them has.
const (
	itemUnits     = 20
	itemCustomers = 30
)

// twoItems has customers of two items buy at once, and holds the orders of each to its stock.
func (r *cells) twoItems(ctx context.Context) (Verdict, error) {
	testbed, err := r.servers.Testbed(ctx, rig.TestbedOptions{
		Name: "items", Shops: 1, DSN: r.plan.MySQL, Env: map[string]string{"SHOP_LAB": "true", "SHOP_LOG_LEVEL": "error"},
	})
	if err != nil {
		return Verdict{}, err
	}
	var items [2]stock.Item
	for i := range items {
		if items[i], err = r.store.CreateItem(ctx, fmt.Sprintf("item %d", i+1), itemUnits); err != nil {
			return Verdict{}, err
		}
	}
	var buying sync.WaitGroup
	for range itemCustomers {
		for _, item := range items {
			buying.Go(func() {
				load.Send(ctx, load.Order{Shop: testbed.Shops[0].URL, ItemID: item.ID, Quantity: 1, Strategy: r.by.Name})
			})
		}
	}
	buying.Wait()
	for i, item := range items {
		now, err := r.store.Read(ctx, item.ID)
		if err != nil {
			return Verdict{}, err
		}
		orders, err := r.store.ItemOrders(ctx, item.ID)
		if err != nil {
			return Verdict{}, err
		}
		if now.Stock != 0 || len(orders) != itemUnits {
			return Verdict{Cause: MixedItems, Said: fmt.Sprintf("two items with %d units each were sold at once to %d customers each: item %d has %d orders, and %d units are left",
				itemUnits, itemCustomers, i+1, len(orders), now.Stock)}, nil
		}
	}
	r.done("two items are sold at once")
	return Verdict{}, ctx.Err()
}
