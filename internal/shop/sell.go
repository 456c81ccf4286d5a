package shop

import (
	"fmt"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
	"stocklock/internal/trace"
)

// sell makes the sale under the shop's strategy, or in the lab under the one
// that the request asks for. It says whether the order was made before.
func (s *Shop) sell(c *gin.Context, sale stock.Sale) (order stock.Order, replayed bool, err error) {
	ctx := c.Request.Context()
	measure := s.metrics.sale()
	if s.Lab == nil {
		ctx = trace.WithHook(ctx, measure)
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
	watched := trace.WithHook(ctx, s.Lab.hook(s.Log, asked, sale, measure))
	seller := s.sellers.get(asked.strategy)
	sell := seller.Sell
	if asked.nested {
		sell = seller.SellNested
	}
	return s.sellOnce(ctx, sale, func(sale stock.Sale) (stock.Order, error) { return sell(watched, sale) })
}
