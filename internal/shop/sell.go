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

// Lab decides for each request how it is sold. A shop in production has none.
type Lab interface {
	// Sale returns how a request with these headers is sold, or why it cannot be: see [Malformed].
	Sale(header http.Header) (Sell, error)
	// Order returns what is shown of an order, as JSON.
	Order(stock.Order) any
	// Answered is called when a sale of such a request is answered as sold, in the handler. flush
	// sends the answer to the client.
	Answered(r *http.Request, wanted stock.Sale, flush func())
	// Close frees what the lab holds. No sale may begin any more.
	Close() error
}

// UseLab makes the shop sell as the lab says. It must be called before [Shop.Serve], which closes
// the lab.
func (s *Shop) UseLab(l Lab) { s.lab = l }

// Seller returns what sells by the shop's strategy.
func (s *Shop) Seller() *strategy.Seller { return s.seller }

// sell makes the sale that a request asks for. It reports whether the order was made before.
func (s *Shop) sell(ctx context.Context, header http.Header, wanted stock.Sale) (order stock.Order, replayed bool, err error) {
	ctx = sale.WithHook(ctx, s.metrics.sale())
	if s.Tracing != nil {
		ctx = sale.WithHook(ctx, s.traceLock(ctx))
	}
	sell := Sell(s.seller.Sell)
	if s.lab != nil {
		if sell, err = s.lab.Sale(header); err != nil {
			return stock.Order{}, false, err
		}
	}
	return s.sellOnce(ctx, wanted, sell)
}
