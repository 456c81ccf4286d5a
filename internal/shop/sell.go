package shop

import (
	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
)

// sell makes the sale under the shop's strategy, or in the lab under the one
// that the request asks for.
func (s *Shop) sell(c *gin.Context, sale stock.Sale) (stock.Order, error) {
	ctx := c.Request.Context()
	if s.Lab == nil {
		return s.sellers.get(s.Strategy).Sell(ctx, sale)
	}
	asked, err := readExperiment(c, s.Strategy)
	if err != nil {
		return stock.Order{}, err
	}
	sale.Run = asked.run
	ctx = s.Lab.watch(ctx, s.Log, asked, sale)
	seller := s.sellers.get(asked.strategy)
	if asked.nested {
		return seller.SellNested(ctx, sale)
	}
	return seller.Sell(ctx, sale)
}
