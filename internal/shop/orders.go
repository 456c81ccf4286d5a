package shop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"stocklock/internal/stock"
)

// maxBody is how many bytes an order may have.
const maxBody = 1 << 10

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

// publicOrder is what a customer sees of an order.
type publicOrder struct {
	ID        string    `json:"id"`
	ItemID    uint64    `json:"item_id"`
	Quantity  int64     `json:"quantity"`
	CreatedAt time.Time `json:"created_at"`
}

func showToCustomer(o stock.Order) any {
	return publicOrder{o.PublicID, o.ItemID, o.Quantity, o.CreatedAt}
}

func (s *Shop) getOrder(c *gin.Context) {
	id := c.Param("order")
	if err := uuid.Validate(id); err != nil || len(id) != maxOrderID {
		s.fail(c, refusal{malformed, "an order's id is a UUID, as the answer to the order gave it"})
		return
	}
	order, err := inPlace(s, c, func(ctx context.Context) (stock.Order, error) { return s.store.Order(ctx, strings.ToLower(id)) })
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, s.show(order))
}

// maxOrderID is the length of a UUID in its usual form.
const maxOrderID = 36

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

func (s *Shop) readSale(c *gin.Context) (stock.Sale, error) {
	itemID, err := pathNumber(c, "item")
	if err != nil {
		return stock.Sale{}, err
	}
	if err := wantJSON(c.Request); err != nil {
		return stock.Sale{}, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if err != nil {
		return stock.Sale{}, unread(err)
	}
	quantity, err := readQuantity(body)
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
	return stock.Sale{ItemID: itemID, Quantity: quantity, RequestID: requestID(c), Shop: s.Name, Subject: subject, IdempotencyKey: key}, nil
}

// wantJSON refuses a body that is not JSON as it stands, and one that is announced to be too large.
func wantJSON(r *http.Request) error {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return refusal{wrongMediaType, "send the order with Content-Type: application/json"}
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refusal{wrongMediaType, fmt.Sprintf("send the order in UTF-8, not in %q", charset)}
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" {
		return refusal{wrongMediaType, fmt.Sprintf("send the order without Content-Encoding, not with %q", encoding)}
	}
	if r.ContentLength > maxBody {
		return errTooLarge
	}
	return nil
}

var errTooLarge = refusal{tooLarge, fmt.Sprintf("an order has at most %d bytes", maxBody)}

// unread says why the body did not come. The errors' own texts are about this side: they have its
// address.
func unread(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errTooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refusal{tooSlow, fmt.Sprintf("the body did not come within %s: nothing was sold", readTimeout)}
	}
	return refusal{malformed, "the body cannot be read: it is shorter than was announced, or its chunks are wrong"}
}

// readQuantity reads {"quantity": N}, nothing else and nothing after it.
func readQuantity(body []byte) (int64, error) {
	var order struct {
		Quantity *int64 `json:"quantity"`
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	if err := in.Decode(&order); err != nil {
		return 0, unreadable(err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return 0, unreadable(errors.New("something comes after it"))
	}
	if err := checkNames(body); err != nil {
		return 0, unreadable(err)
	}
	if order.Quantity == nil || *order.Quantity < 1 {
		return 0, errQuantity
	}
	return *order.Quantity, nil
}

// checkNames refuses what the decoder lets through: names in capitals, and one name twice, of which
// it takes the last.
func checkNames(order []byte) error {
	in := json.NewDecoder(bytes.NewReader(order))
	seen := false
	for {
		token, err := in.Token()
		if err != nil {
			return nil // the end: all of it has been decoded before
		}
		switch name, isName := token.(string); {
		case !isName:
		case name != "quantity":
			return fmt.Errorf("unknown field %q", name)
		case seen:
			return errors.New("it has the quantity twice")
		default:
			seen = true
		}
	}
}

var errQuantity = refusal{invalid, "quantity must be a whole number from 1 to 9223372036854775807"}

// unreadable says what is wrong in terms of the request, not of this program.
func unreadable(err error) error {
	why := strings.TrimPrefix(err.Error(), "json: ")
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "quantity" {
			return errQuantity
		}
		why = "it is of the type " + wrong.Value
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		why = "it ends too early"
	}
	return refusal{malformed, `the body must be {"quantity": 1}: ` + why}
}
