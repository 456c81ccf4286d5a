package shop

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/gin-gonic/gin"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// sell makes the sale under the shop's strategy, or in the lab under the one
// that the request asks for. It says whether the order was made before.
func (s *Shop) sell(c *gin.Context, wanted stock.Sale) (order stock.Order, replayed bool, err error) {
	ctx := c.Request.Context()
	watchers := hooks{s.metrics.sale()}
	if s.Tracing != nil {
		watchers = append(watchers, s.traceLock(ctx))
	}
	if s.Lab == nil {
		ctx = sale.WithHook(ctx, watchers.call)
		seller := s.sellers.get(s.Strategy)
		return s.sellOnce(ctx, wanted, func(wanted stock.Sale) (stock.Order, error) { return seller.Sell(ctx, wanted) })
	}
	asked, err := readExperiment(c, s.Strategy)
	if err != nil {
		return stock.Order{}, false, err
	}
	if err := asked.strategy.Check(s.Deps); err != nil {
		return stock.Order{}, false, refusal{malformed, fmt.Sprintf("%s: %v", labStrategyHeader, err)}
	}
	wanted.Run = asked.run
	watchers = append(watchers, s.Lab.hook(s.Log, asked, wanted)) // last, because it may sleep
	watched := sale.WithHook(ctx, watchers.call)
	seller := s.sellers.get(asked.strategy)
	sell := seller.Sell
	if asked.nested {
		sell = seller.SellNested
	}
	return s.sellOnce(ctx, wanted, func(wanted stock.Sale) (stock.Order, error) { return sell(watched, wanted) })
}

// hooks are called one after the other.
type hooks []sale.Hook

func (h hooks) call(ctx context.Context, p sale.Point, facts []slog.Attr) {
	for _, hook := range h {
		hook(ctx, p, facts)
	}
}
