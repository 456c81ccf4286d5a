package shop

import (
	"context"
	"net/http"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Sell makes a sale and records its order.
type Sell func(ctx context.Context, wanted stock.Sale) (stock.Order, error)

// sell makes the sale that a request asks for. It reports whether the order was made before.
func (s *Shop) sell(ctx context.Context, wanted stock.Sale) (order stock.Order, replayed bool, err error) {
	ctx = sale.WithHook(ctx, s.metrics.sale())
	if s.Tracing != nil {
		ctx = sale.WithHook(ctx, s.traceLock(ctx))
	}
	return s.sellOnce(ctx, wanted, s.sellBy)
}

// Lab is what a lab puts around a shop. A shop in production has none.
type Lab interface {
	// Requests returns a handler around the shop's own.
	Requests(shop http.Handler) http.Handler
	// Sales returns a way to sell around the shop's own. Its errors are answered as those of a sale,
	// and those of [Malformed] as what they are.
	Sales(shop Sell) Sell
	// Order returns what is shown of an order, as JSON.
	Order(stock.Order) any
	// Close frees what the lab holds. No sale may begin any more.
	Close() error
}

// UseLab puts a lab around the shop. It must be called before [Shop.Serve], which closes the lab.
func (s *Shop) UseLab(l Lab) {
	s.lab, s.sellBy, s.show = l, l.Sales(s.sellBy), l.Order
}

// Seller returns what sells by the shop's strategy.
func (s *Shop) Seller() *strategy.Seller { return s.seller }
