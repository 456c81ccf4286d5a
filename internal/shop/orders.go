package shop

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"stocklock/internal/stock"
)

// publicOrder is what a customer sees of an order.
type publicOrder struct {
	ID          string     `json:"id"`
	ItemID      uint64     `json:"item_id"`
	Quantity    int64      `json:"quantity"`
	CreatedAt   time.Time  `json:"created_at"`
	CancelledAt *time.Time `json:"cancelled_at,omitempty"`
}

// show returns what is shown of an order: a lab shows all of it.
func (s *Shop) show(o stock.Order) any {
	if s.lab != nil {
		return s.lab.Order(o)
	}
	return publicOrder{o.PublicID, o.ItemID, o.Quantity, o.CreatedAt, o.CancelledAt}
}

func (s *Shop) getOrder(c *gin.Context) {
	id, err := pathOrder(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	order, err := inPlace(s, c, func(ctx context.Context) (stock.Order, error) { return s.store.Order(ctx, id) })
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, s.show(order))
}

// maxOrderID is the length of a UUID in its usual form.
const maxOrderID = 36

// pathOrder reads the id of an order.
func pathOrder(c *gin.Context) (string, error) {
	id := c.Param("order")
	if err := uuid.Validate(id); err != nil || len(id) != maxOrderID {
		return "", refusal{malformed, "an order's id is a UUID, as the answer to the order gave it"}
	}
	return strings.ToLower(id), nil
}

// getOrderByKey is for a client that never saw the answer.
func (s *Shop) getOrderByKey(c *gin.Context) {
	asked := c.Query("idempotency_key")
	if asked == "" {
		s.fail(c, refusal{malformed, "say which order: /api/v1/orders?idempotency_key=KEY"})
		return
	}
	subject, err := s.subject(c.Request.Header)
	if err != nil {
		s.fail(c, err)
		return
	}
	key, err := readIdempotencyKey(asked, subject)
	if err != nil {
		s.fail(c, err)
		return
	}
	order, err := inPlace(s, c, func(ctx context.Context) (stock.Order, error) { return s.store.OrderByKey(ctx, subject, key) })
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, s.show(order))
}
