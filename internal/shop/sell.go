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

// Lab decorates a shop. A shop in production has none.
type Lab interface {
	// Requests returns a handler around the shop's own.
	Requests(shop http.Handler) http.Handler
	// Sales returns a function that sells, around the shop's own. Its errors are answered like
	// those of a sale, and those of [Malformed] as malformed.
	Sales(shop Sell) Sell
	// Order returns the JSON value that is shown of an order.
	Order(stock.Order) any
	// Close frees the lab's resources. No sale may begin after it.
	Close() error
}

// UseLab puts a lab around the shop. It must be called before [Shop.Serve], which closes the lab.
func (s *Shop) UseLab(l Lab) {
	s.lab, s.sellBy, s.show = l, l.Sales(s.sellBy), l.Order
}

// Seller returns the seller of the shop's strategy.
func (s *Shop) Seller() *strategy.Seller { return s.seller }
