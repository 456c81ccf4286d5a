package service

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/seen"
)

// Order is one that stands.
type Order struct {
	Customer string
	Units    int64
}

// countLimit bounds setting and counting. The locks of a sale that is held can keep both waiting.
const countLimit = 10 * time.Second

// errServer is in the chain of an error about a service that fails.
var errServer = errors.New("the service fails")

// inStock says that a way of setting or counting does not work. It is a [Mistake] where that does not pass.
func (s *Service) inStock(field string, err error) error {
	var refused *mysqldriver.MySQLError
	locked := errors.As(err, &refused) && (refused.Number == 1205 || refused.Number == 1213)
	if locked || errors.As(err, new(net.Error)) || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) || errors.Is(err, errServer) {
		return fmt.Errorf("stock.%s: %w", field, err)
	}
	return s.File.mistake("stock."+field, "%s: %v", field, err)
}

// ask sends a request about the stock to a process of which no customer buys. It asks again while the service fails:
// a connection to a server that was started again can be dead.
func (s *Service) ask(ctx context.Context, r Request, values map[string]string) (body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	for {
		var status int
		status, body, err = s.counter.call(ctx, r, values)
		switch {
		case err == nil && status >= http.StatusInternalServerError:
			err = fmt.Errorf("%w: %s %s was answered with %d: %s", errServer, r.Method, fill(r.Path, values), status, brief(body))
		case err == nil && status >= http.StatusBadRequest:
			return nil, fmt.Errorf("%s %s was answered with %d: %s", r.Method, fill(r.Path, values), status, brief(body))
		case err == nil:
			return body, nil
		}
		if seen.Pause(ctx, askAgain) != nil {
			return nil, err
		}
	}
}

const askAgain = 50 * time.Millisecond

// SetStock gives an item so many units, and no orders.
func (s *Service) SetStock(ctx context.Context, item, units int64) error {
	values := Sale{Item: item}.values()
	values["stock"] = strconv.FormatInt(units, 10)
	if r := s.File.Stock.SetRequest; r.Path != "" {
		if _, err := s.ask(ctx, r, values); err != nil {
			return s.inStock("set_request", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	for _, statement := range s.File.set {
		if _, err := s.DB.ExecContext(ctx, fill(statement, values)); err != nil {
			return s.inStock("set", err)
		}
	}
	if s.File.Stock.SetRedis != "" {
		if err := s.InDatabase(ctx, command(s.File.Stock.SetRedis, values)...).Err; err != nil {
			return s.inStock("set_redis", err)
		}
	}
	return nil
}

// command is one of Redis, with its values.
func command(text string, values map[string]string) (words []any) {
	for word := range strings.FieldsSeq(text) {
		words = append(words, fill(word, values))
	}
	return words
}

// Left is how many units of an item are left. A counter outside of SQL may go below zero for each customer who finds none.
func (s *Service) Left(ctx context.Context, item int64) (int64, error) {
	values := Sale{Item: item}.values()
	if r := s.File.Stock.LeftRequest; r.Path != "" {
		body, err := s.ask(ctx, r, values)
		found := fields(body, r.Value)
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("the answer has %d values of %s: want one", len(found), r.Value)
		}
		n := int64(0)
		if err == nil {
			n, err = strconv.ParseInt(found[0], 10, 64)
		}
		if err != nil {
			return 0, s.inStock("left_request", err)
		}
		return max(0, n), nil
	}
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	if s.File.Stock.LeftRedis != "" {
		answer := s.InDatabase(ctx, command(s.File.Stock.LeftRedis, values)...)
		n, err := int64(0), answer.Err
		if err == nil && answer.Value != nil {
			n, err = strconv.ParseInt(fmt.Sprint(answer.Value), 10, 64)
		}
		if err != nil {
			return 0, s.inStock("left_redis", err)
		}
		return max(0, n), nil
	}
	var n sql.NullInt64
	if err := s.DB.QueryRowContext(ctx, fill(s.File.Stock.Left, values)).Scan(&n); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			err = errors.New("it found no row")
		}
		return 0, s.inStock("left", err)
	}
	return n.Int64, nil
}

// Orders are those of an item.
func (s *Service) Orders(ctx context.Context, item int64) ([]Order, error) {
	values := Sale{Item: item}.values()
	if r := s.File.Stock.OrdersRequest; r.Path != "" {
		body, err := s.ask(ctx, r, values)
		if err != nil {
			return nil, s.inStock("orders_request", err)
		}
		var all []Order
		for _, customer := range fields(body, r.Value) {
			all = append(all, Order{customer, 1})
		}
		return all, nil
	}
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	rows, err := s.DB.QueryContext(ctx, fill(s.File.Stock.Orders, values))
	if err != nil {
		return nil, s.inStock("orders", err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err == nil && len(columns) > 2 {
		err = fmt.Errorf("it has %d columns: want the customer, and the quantity where that is not 1", len(columns))
	}
	var all []Order
	for err == nil && rows.Next() {
		o := Order{Units: 1}
		err = rows.Scan([]any{&o.Customer, &o.Units}[:len(columns)]...)
		all = append(all, o)
	}
	if err = cmp.Or(err, rows.Err()); err != nil {
		return nil, s.inStock("orders", err)
	}
	return all, nil
}

// Counts are how many units of an item are left, and its orders.
func (s *Service) Counts(ctx context.Context, item int64) (left int64, orders []Order, err error) {
	if left, err = s.Left(ctx, item); err == nil {
		orders, err = s.Orders(ctx, item)
	}
	return left, orders, err
}

// How long a count is awaited that changes when customers have been answered.
const (
	stillFor   = 2 * time.Second
	stillLimit = 10 * time.Second // or twice the patience, where that is longer
	countEvery = 100 * time.Millisecond
	lateFactor = 3 // so much later than the probe has seen it, a worker is not late yet
)

func (s *Service) longestChange() time.Duration { return max(stillLimit, 2*s.Patience()) }

// Patience is how long a count must be still before it is one that does not add up. It is longer where the probe has seen a
// sale go on behind its answer: a worker may be silent between two changes.
func (s *Service) Patience() time.Duration { return max(stillFor, s.patience) }

// InAll is how many units are left or in orders.
func InAll(left int64, orders []Order) int64 {
	for _, o := range orders {
		left += o.Units
	}
	return left
}

// Still waits until the count of an item was seen not to change for stillFor, and for Patience where it does not add up or
// nobody knows. It says false where it still changes after stillLimit, or twice the patience.
func (s *Service) Still(ctx context.Context, item int64, addsUp func(left int64, orders []Order) bool) (bool, error) {
	began, quiet := time.Now(), seen.Quiet{}
	was, since := "", began
	for {
		left, orders, err := s.Counts(ctx, item)
		if err != nil {
			return false, err
		}
		if now := fmt.Sprint(left, orders); now != was {
			if was, since = now, time.Now(); since.Sub(began) > s.longestChange() {
				return false, nil
			}
		}
		need := s.Patience()
		if addsUp != nil && addsUp(left, orders) {
			need = stillFor
		}
		if quiet.Until(since, time.Now(), countEvery) > need {
			return true, nil
		}
		if err := seen.Pause(ctx, countEvery); err != nil {
			return false, err
		}
	}
}
