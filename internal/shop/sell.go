package shop

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
	"stocklock/internal/trace"
)

// sell makes the sale under the shop's strategy, or in the lab under the one
// that the request asks for. It says whether the order was made before.
func (s *Shop) sell(c *gin.Context, sale stock.Sale) (order stock.Order, replayed bool, err error) {
	ctx := c.Request.Context()
	watchers := hooks{s.metrics.sale()}
	if s.Tracing != nil {
		watchers = append(watchers, s.traceLock(ctx))
	}
	if s.Lab == nil {
		ctx = trace.WithHook(ctx, watchers.call)
		seller := s.sellers.get(s.Strategy)
		return s.sellOnce(ctx, sale, func(sale stock.Sale) (stock.Order, error) { return seller.Sell(ctx, sale) })
	}
	asked, err := readExperiment(c, s.Strategy)
	if err != nil {
		return stock.Order{}, false, err
	}
	if err := asked.strategy.Check(s.Deps); err != nil {
		return stock.Order{}, false, refusal{malformed, fmt.Sprintf("%s: %v", labStrategyHeader, err)}
	}
	sale.Run = asked.run
	watchers = append(watchers, s.Lab.hook(s.Log, asked, sale)) // last, because it may sleep
	watched := trace.WithHook(ctx, watchers.call)
	seller := s.sellers.get(asked.strategy)
	sell := seller.Sell
	if asked.nested {
		sell = seller.SellNested
	}
	return s.sellOnce(ctx, sale, func(sale stock.Sale) (stock.Order, error) { return sell(watched, sale) })
}

// hooks are called one after the other.
type hooks []trace.Hook

func (h hooks) call(ctx context.Context, p trace.Point, facts []slog.Attr) {
	for _, hook := range h {
		hook(ctx, p, facts)
	}
}
