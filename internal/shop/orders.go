package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

func (s *Shop) postOrder(c *gin.Context) error {
	sale, err := s.readSale(c)
	if err != nil {
		return err
	}
	replayed := false
	order, err := inSlot(s, c, s.sales, func(ctx context.Context) (order stock.Order, err error) {
		order, replayed, err = s.sell(ctx, sale)
		s.health.sold(err != nil && ctx.Err() == nil && slices.Contains([]Problem{Unavailable, internalError}, explain(ctx, err).Problem))
		return order, err
	})
	if err != nil {
		return err
	}
	if s.Log.Enabled(c.Request.Context(), slog.LevelDebug) { // boxing the fields costs even without
		s.Log.DebugContext(c.Request.Context(), "sold", "request", sale.RequestID, "item", order.ItemID, "order", order.ID,
			"token", order.Token, "left", order.StockWritten, "replayed", replayed)
	}
	c.Set(outcomeKey, "sold")
	if replayed {
		c.Set(outcomeKey, "replayed")
		c.Header(ReplayedHeader, "true")
	}
	c.Header("Location", apiPrefix+"/orders/"+order.PublicID)
	body, err := json.Marshal(s.show(order))
	if err != nil {
		return err
	}
	// With its length, the answer is complete as soon as its bytes are sent.
	c.Header("Content-Length", strconv.Itoa(len(body)))
	c.Data(http.StatusCreated, "application/json; charset=utf-8", body)
	return nil
}

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

func (s *Shop) getOrder(c *gin.Context) error {
	id, err := pathOrder(c)
	if err != nil {
		return err
	}
	return s.showOrder(c, func(ctx context.Context) (stock.Order, error) { return s.store.Order(ctx, id) })
}

func (s *Shop) showOrder(c *gin.Context, find func(context.Context) (stock.Order, error)) error {
	order, err := inSlot(s, c, s.reads, find)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, s.show(order))
	return nil
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
func (s *Shop) getOrderByKey(c *gin.Context) error {
	asked := c.Query("idempotency_key")
	if asked == "" {
		return refusal{malformed, "say which order: /api/v1/orders?idempotency_key=KEY"}
	}
	subject, err := s.subject(c.Request.Header)
	if err != nil {
		return err
	}
	key, err := readIdempotencyKey(asked, subject)
	if err != nil {
		return err
	}
	return s.showOrder(c, func(ctx context.Context) (stock.Order, error) { return s.store.OrderByKey(ctx, subject, key) })
}

// maxQuantity is the largest quantity of an order: all that the column orders.quantity can hold. The
// schema NewOrder of openapi.yaml has it, too: a test holds the two together.
const maxQuantity = math.MaxInt64

// newOrder is the body of an order.
type newOrder struct {
	Quantity whole `json:"quantity" range:"ordered"`
}

func (newOrder) example() string { return `{"quantity": 1}` }

func (newOrder) ranges() string {
	return fmt.Sprintf("quantity must be a whole number from 1 to %d", maxQuantity)
}

// read reads the body that nearly all clients send, in a tenth of the time of [parseBody]. It reports
// false for any other body, right or wrong.
func (o *newOrder) read(text []byte) bool {
	const spaces = " \t\r\n"
	text, begins := bytes.CutPrefix(bytes.Trim(text, spaces), []byte(`{"quantity":`))
	text, ends := bytes.CutSuffix(text, []byte("}"))
	text = bytes.Trim(text, spaces)
	if !begins || !ends || len(text) == 0 || text[0] < '1' || text[0] > '9' {
		return false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil {
		o.Quantity = whole(n)
	}
	return err == nil
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
