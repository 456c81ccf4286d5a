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

// order makes a handler from a function that reads a sale from a request.
func (s *Shop) order(read func(*gin.Context) (stock.Sale, error)) gin.HandlerFunc {
	return s.handle(func(c *gin.Context) error {
		sale, err := read(c)
		if err != nil {
			return err
		}
		return s.answerOrder(c, sale)
	})
}

// answerOrder makes a sale and answers with its order.
func (s *Shop) answerOrder(c *gin.Context, sale stock.Sale) error {
	replayed := false
	order, err := inSlot(s, c, s.sales, func(ctx context.Context) (order stock.Order, err error) {
		order, replayed, err = s.sell(ctx, sale)
		switch {
		case err == nil && !replayed: // a refusal, or an order that was made before, says nothing of writes
			s.health.noteSale(false)
		case err != nil && ctx.Err() == nil && slices.Contains([]Problem{Unavailable, internalError}, explain(ctx, err).Problem):
			s.health.noteSale(true)
		}
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
	c.Header("Location", OrdersOfItems+"/"+order.PublicID)
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
		ctx = sale.WithHook(ctx, s.Tracing.Sale(ctx))
	}
	return s.sellOnce(ctx, wanted, s.sellBy)
}

// publicOrder is an order as customers see it. The item and the quantity are those of the only line.
type publicOrder struct {
	ID        string       `json:"id"`
	ItemID    uint64       `json:"item_id,omitempty"`
	Quantity  int64        `json:"quantity,omitempty"`
	Lines     []publicLine `json:"lines"`
	CreatedAt time.Time    `json:"created_at"`

	CancelledAt *time.Time `json:"cancelled_at,omitempty"` // when the last line was cancelled; nil while one stands
}

type publicLine struct {
	ItemID   uint64 `json:"item_id"`
	Quantity int64  `json:"quantity"`

	CancelledAt *time.Time `json:"cancelled_at,omitempty"`
}

func showToCustomer(o stock.Order) any {
	public := publicOrder{ID: o.PublicID, CreatedAt: o.CreatedAt, CancelledAt: o.CancelledAt}
	if len(o.More) == 0 {
		public.ItemID, public.Quantity = o.ItemID, o.Quantity
	}
	for _, row := range o.Rows() {
		public.Lines = append(public.Lines, publicLine{row.ItemID, row.Quantity, row.CancelledAt})
		switch {
		case row.CancelledAt == nil || public.CancelledAt == nil:
			public.CancelledAt = nil
		case row.CancelledAt.After(*public.CancelledAt):
			public.CancelledAt = row.CancelledAt
		}
	}
	return public
}

// getOrder shows an order unless it is another customer's. One without a customer can be read by everybody
// who knows its id, and staff can read all.
func (s *Shop) getOrder(c *gin.Context) error {
	id, err := pathOrder(c)
	if err != nil {
		return err
	}
	subject, err := s.subject(c)
	if err != nil {
		return err
	}
	return s.showOrder(c, func(ctx context.Context) (stock.Order, error) {
		order, err := find(ctx, s.store, func(at *stock.Store) (stock.Order, error) { return at.Order(ctx, id) })
		if err == nil && order.Subject != "" && order.Subject != subject && !c.GetBool(forStaff) {
			err = stock.ErrNotFound
		}
		return order, err
	})
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
	return uuidOf(c.Param("order"), "an order's id is a UUID, as the answer to the order gave it")
}

func uuidOf(id, want string) (string, error) {
	if err := uuid.Validate(id); err != nil || len(id) != maxOrderID {
		return "", refusal{malformed, want}
	}
	return strings.ToLower(id), nil
}

// getOrders shows the order under a key, for a client that never saw the answer. Without a key it lists
// the orders of the customer.
func (s *Shop) getOrders(c *gin.Context) error {
	subject, err := s.subject(c)
	if err != nil {
		return err
	}
	key, err := requestKey(c.Request.Header, subject)
	if asked, inQuery := c.GetQuery("idempotency_key"); inQuery && err == nil && key == "" {
		key, err = readIdempotencyKey(asked, subject)
	}
	if err != nil {
		return err
	}
	if key != "" {
		return s.showOrder(c, func(ctx context.Context) (stock.Order, error) {
			return find(ctx, s.store, func(at *stock.Store) (stock.Order, error) { return at.OrderByKey(ctx, subject, key) })
		})
	}
	if subject == "" {
		return refusal{malformed, "say which order, by its " + IdempotencyKeyHeader + "; orders are listed only for a customer whom a gateway names"}
	}
	return s.listOrders(c, subject)
}

type orderList struct {
	Orders []any  `json:"orders"`
	Next   string `json:"next,omitempty"` // where the list goes on
}

// listOrders lists the orders of a subject, the newest first. A page goes on behind the last order of
// the one before, by its id: a number of the row would tell how many orders there are.
func (s *Shop) listOrders(c *gin.Context, subject string) error {
	var in stock.Period
	var err error
	if in.From, err = queryTime(c, "from", earliest); err != nil {
		return err
	}
	if in.Until, err = queryTime(c, "until", latest); err != nil {
		return err
	}
	before, limit, err := queryPage(c)
	if err != nil {
		return err
	}
	orders, err := inSlot(s, c, s.reads, func(ctx context.Context) ([]stock.Order, error) {
		return s.store.OrdersOf(ctx, subject, in, before, limit)
	})
	if err != nil {
		return err
	}
	list := orderList{Orders: make([]any, len(orders))}
	for i, order := range orders {
		list.Orders[i] = s.show(order)
	}
	if len(orders) == limit {
		list.Next = nextPage(c, orders[limit-1].PublicID)
	}
	c.JSON(http.StatusOK, list)
	return nil
}

// queryPage reads which page of a customer's list is asked for: behind the one with the id before, if that is not empty.
func queryPage(c *gin.Context) (before string, limit int, err error) {
	before, given := c.GetQuery("before")
	if given {
		if before, err = uuidOf(before, "before is the id of the last one of a page"); err != nil {
			return "", 0, err
		}
	}
	most, err := queryNumber(c, "limit", defaultPage, 1, maxOrdersPage)
	return before, int(most), err
}

// nextPage is where a list goes on behind the one with this id.
func nextPage(c *gin.Context, last string) string {
	next := c.Request.URL.Query()
	next.Set("before", last)
	return c.Request.URL.Path + "?" + next.Encode()
}

// maxOrdersPage is how many orders a page may have. Each may have maxLines lines.
const maxOrdersPage = 100

// What MySQL can compare with a time.
var earliest, latest = time.Unix(0, 0).UTC(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// queryTime reads a parameter that may be left out. No order is outside of the bounds.
func queryTime(c *gin.Context, name string, missing time.Time) (time.Time, error) {
	text, given := c.GetQuery(name)
	if !given {
		return missing, nil
	}
	at, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	switch {
	case err != nil:
		return at, refusal{malformed, fmt.Sprintf("%s must be a time of RFC 3339 such as 2026-01-31T12:00:00Z, not %.40q", name, text)}
	case at.Before(earliest):
		return earliest, nil
	case at.After(latest):
		return latest, nil
	}
	return at.UTC(), nil
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

// maxLines is how many lines an order may have.
const maxLines = 50

// newBasket is the body of an order of several items.
type newBasket struct {
	Lines []newLine `json:"lines" range:"lines,dive"`
}

type newLine struct {
	ItemID   whole `json:"item_id" range:"min=1"`
	Quantity whole `json:"quantity" range:"restocked"`
}

func (newBasket) example() string { return `{"lines": [{"item_id": 1, "quantity": 1}]}` }

func (newBasket) ranges() string {
	return fmt.Sprintf("lines must have 1 to %d lines, each with an item_id from 1 to %d and a quantity from 1 to %d, which are whole numbers",
		maxLines, math.MaxInt64, stock.MaxStock)
}

// readSale reads the sale of one item.
func (s *Shop) readSale(c *gin.Context) (stock.Sale, error) {
	itemID, err := pathNumber(c, "item")
	if err != nil {
		return stock.Sale{}, err
	}
	order, err := readBody[newOrder](c)
	if err != nil {
		return stock.Sale{}, err
	}
	sale, err := s.readCustomer(c)
	sale.ItemID, sale.Quantity = itemID, int64(order.Quantity)
	return sale, err
}

// readBasket reads the sale of several items. No sum of quantities overflows.
func (s *Shop) readBasket(c *gin.Context) (stock.Sale, error) {
	basket, err := readBody[newBasket](c)
	if err != nil {
		return stock.Sale{}, err
	}
	sale, err := s.readCustomer(c)
	sale.SetLines(linesOf(basket.Lines))
	return sale, err
}

func linesOf(posted []newLine) []stock.Line {
	lines := make([]stock.Line, len(posted))
	for i, line := range posted {
		lines[i] = stock.Line{ItemID: uint64(line.ItemID), Quantity: int64(line.Quantity)}
	}
	return lines
}

// readCustomer reads who asks for a sale, and the key of the request.
func (s *Shop) readCustomer(c *gin.Context) (stock.Sale, error) {
	subject, err := s.subject(c)
	if err != nil {
		return stock.Sale{}, err
	}
	key, err := requestKey(c.Request.Header, subject)
	if err != nil {
		return stock.Sale{}, err
	}
	return stock.Sale{RequestID: requestID(c), Shop: s.Name, Subject: subject, IdempotencyKey: key, Limit: s.Limit, Holds: s.Reservations != nil}, nil
}
