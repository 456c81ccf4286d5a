package shop

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// newOrder is the body of an order.
type newOrder struct {
	Quantity int64 `json:"quantity" binding:"min=1"`
}

func (newOrder) example() string { return `{"quantity": 1}` }

func (newOrder) ranges() string {
	return "quantity must be a whole number from 1 to 9223372036854775807"
}

// postOrder sells. What is written, and under which lock, is the strategy's: see [strategy.Seller].
func (s *Shop) postOrder(c *gin.Context) {
	wanted, err := s.readSale(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	replayed := false
	order, err := inPlace(s, c, func(ctx context.Context) (order stock.Order, err error) {
		order, replayed, err = s.sell(ctx, c.Request.Header, wanted)
		s.health.sold(err != nil && ctx.Err() == nil && slices.Contains([]string{unavailable.slug, internalError.slug}, explain(ctx, err).slug))
		return order, err
	})
	if err != nil {
		s.fail(c, err)
		return
	}
	s.Log.DebugContext(c.Request.Context(), "sold", "request", wanted.RequestID, "item", order.ItemID, "order", order.ID,
		"token", order.Token, "left", order.StockWritten, "replayed", replayed)
	s.answerSold(c, order, replayed)
	if s.lab != nil {
		s.lab.Answered(c.Request, wanted, c.Writer.Flush)
	}
}

// readSale reads what a request wants to buy, and for whom.
func (s *Shop) readSale(c *gin.Context) (wanted stock.Sale, err error) {
	wanted = stock.Sale{RequestID: requestID(c), Shop: s.Name}
	if wanted.ItemID, err = pathNumber(c, "item"); err != nil {
		return wanted, err
	}
	body, err := readBody[newOrder](c)
	if err != nil {
		return wanted, err
	}
	wanted.Quantity = body.Quantity
	if wanted.Subject, err = s.subject(c.Request.Header); err != nil {
		return wanted, err
	}
	wanted.IdempotencyKey, err = requestKey(c.Request.Header, wanted.Subject)
	return wanted, err
}

// sell makes the sale unless it was made before under its key, and measures its lock.
func (s *Shop) sell(ctx context.Context, header http.Header, wanted stock.Sale) (order stock.Order, replayed bool, err error) {
	sell := s.seller.Sell
	if s.lab != nil {
		if sell, err = s.lab.Sale(header); err != nil {
			return stock.Order{}, false, err
		}
	}
	ctx = sale.WithHook(ctx, s.metrics.sale())
	if s.Tracing != nil {
		ctx = sale.WithHook(ctx, s.traceLock(ctx))
	}
	return s.sellOnce(ctx, wanted, sell)
}

func (s *Shop) answerSold(c *gin.Context, order stock.Order, replayed bool) {
	c.Set(outcomeKey, "sold")
	if replayed {
		c.Set(outcomeKey, "replayed")
		c.Header(replayedHeader, "true")
	}
	c.Header("Location", apiPrefix+"/orders/"+order.PublicID)
	body, err := json.Marshal(s.show(order))
	if err != nil {
		s.fail(c, err)
		return
	}
	// With its length, the answer is complete as soon as its bytes are sent.
	c.Header("Content-Length", strconv.Itoa(len(body)))
	c.Data(http.StatusCreated, "application/json; charset=utf-8", body)
}
