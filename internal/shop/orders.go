package shop

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"stocklock/internal/stock"
)

func (s *Shop) postOrder(c *gin.Context) {
	sale, err := s.readSale(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	replayed := false
	order, err := inPlace(s, c, func(ctx context.Context) (order stock.Order, err error) {
		order, replayed, err = s.sell(ctx, sale)
		s.health.sold(err != nil && ctx.Err() == nil && slices.Contains([]string{unavailable.slug, internalError.slug}, explain(ctx, err).slug))
		return order, err
	})
	if err != nil {
		s.fail(c, err)
		return
	}
	s.Log.DebugContext(c.Request.Context(), "sold", "request", sale.RequestID, "item", order.ItemID, "order", order.ID,
		"token", order.Token, "left", order.StockWritten, "replayed", replayed)
	c.Set(outcomeKey, "sold")
	if replayed {
		c.Set(outcomeKey, "replayed")
		c.Header(replayedHeader, "true")
	}
	c.Header("Location", "/api/v1/orders/"+order.PublicID)
	body, err := json.Marshal(s.show(order))
	if err != nil {
		s.fail(c, err)
		return
	}
	// With its length, the answer is complete as soon as its bytes are sent.
	c.Header("Content-Length", strconv.Itoa(len(body)))
	c.Data(http.StatusCreated, "application/json; charset=utf-8", body)
}

// publicOrder is an order as customers see it.
type publicOrder struct {
	ID        string    `json:"id"`
	ItemID    uint64    `json:"item_id"`
	Quantity  int64     `json:"quantity"`
	CreatedAt time.Time `json:"created_at"`

	CancelledAt *time.Time `json:"cancelled_at,omitempty"`
}

func showToCustomer(o stock.Order) any {
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

// newOrder is the body of an order.
type newOrder struct {
	Quantity whole `json:"quantity" binding:"min=1"`
}

func (newOrder) example() string { return `{"quantity": 1}` }

func (newOrder) ranges() string {
	return "quantity must be a whole number from 1 to 9223372036854775807"
}

// readSale reads the sale that a request asks for, and its customer.
func (s *Shop) readSale(c *gin.Context) (stock.Sale, error) {
	itemID, err := pathNumber(c, "item")
	if err != nil {
		return stock.Sale{}, err
	}
	order, err := readBody[newOrder](c)
	if err != nil {
		return stock.Sale{}, err
	}
	subject, err := s.subject(c.Request.Header)
	if err != nil {
		return stock.Sale{}, err
	}
	key, err := requestKey(c.Request.Header, subject)
	if err != nil {
		return stock.Sale{}, err
	}
	return stock.Sale{ItemID: itemID, Quantity: int64(order.Quantity), RequestID: requestID(c), Shop: s.Name, Subject: subject, IdempotencyKey: key}, nil
}
