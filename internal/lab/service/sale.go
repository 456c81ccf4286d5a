package service

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/load"
)

// Reply is how a customer was answered.
type Reply struct {
	Outcome load.Outcome // Sold, SoldOut, Busy, Unknown for no answer, Failed for one that the description does not know
	Status  int
	Body    string // its beginning
	Err     error
}

// String is the reply in a few words.
func (r Reply) String() string {
	switch r.Outcome {
	case load.Unknown:
		return load.NoAnswer
	case load.Failed:
		return strings.TrimSuffix(fmt.Sprintf("%d: %s", r.Status, r.Body), ": ")
	}
	return string(r.Outcome)
}

// maxBody bounds what is read of an answer.
const maxBody = 1 << 20

func (p *Process) call(ctx context.Context, r Request, values map[string]string) (status int, body []byte, err error) {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, p.URL+fill(r.Path, values), strings.NewReader(fill(r.Body, values)))
	if err != nil {
		return 0, nil, err
	}
	if r.Body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Headers {
		request.Header.Set(name, fill(value, values))
	}
	request.GetBody = nil // never sent twice
	answer, err := p.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxBody))
	return answer.StatusCode, body, err
}

// Sale is what one customer buys: one unit.
type Sale struct {
	Item     int64
	Customer string
	Key      string
}

func (o Sale) values() map[string]string {
	return map[string]string{"item": strconv.FormatInt(o.Item, 10), "customer": o.Customer, "key": o.Key, "quantity": "1"}
}

// Buy has a customer buy at a process.
func (s *Service) Buy(ctx context.Context, p *Process, o Sale) Reply {
	status, body, err := p.call(ctx, s.File.Buy, o.values())
	r := Reply{Outcome: load.Unknown, Status: status, Body: brief(body), Err: err}
	if err == nil {
		r.Outcome = s.File.outcome(status, body)
	}
	return r
}

// NewSale is the sale of another customer. Its key is its own.
func (s *Service) NewSale(item int64, customer string) Sale {
	return Sale{Item: item, Customer: customer, Key: fmt.Sprintf("try-%d-%s", s.buys.Add(1), customer)}
}

// NewItem is another item where each run can have its own, and else the only one.
func (s *Service) NewItem() int64 {
	if !s.File.Fresh() {
		return firstItem
	}
	return s.items.Add(1)
}

// outcome reads an answer. What names a field comes before what goes by the status alone.
func (f *File) outcome(status int, body []byte) load.Outcome {
	for _, byField := range []bool{true, false} {
		for word, outcome := range map[string]load.Outcome{sold: load.Sold, soldOut: load.SoldOut, busy: load.Busy} {
			a := f.Answers[word]
			if (a.Field != "") != byField || len(a.Status) > 0 && !slices.Contains(a.Status, status) {
				continue
			}
			if !byField {
				return outcome
			}
			for _, v := range fields(body, a.Field) {
				if v == a.Value || a.Value == "" {
					return outcome
				}
			}
		}
	}
	return load.Failed
}

// fields are the values of a field of a JSON text, such as orders.customer: of each element where there is an
// array on the way.
func fields(body []byte, path string) []string {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return nil
	}
	return walk(v, strings.Split(path, "."))
}

func walk(v any, path []string) (found []string) {
	switch v := v.(type) {
	case []any:
		for _, each := range v {
			found = append(found, walk(each, path)...)
		}
	case map[string]any:
		if len(path) > 0 {
			if inner, ok := v[path[0]]; ok {
				return walk(inner, path[1:])
			}
		}
	case nil:
	default:
		if len(path) == 0 {
			return []string{fmt.Sprint(v)}
		}
	}
	return found
}

// Order is one that stands.
type Order struct {
	Customer string
	Units    int64
}

// inStock says that a way of setting or counting does not work.
func (s *Service) inStock(field string, err error) error {
	return s.File.mistake("stock."+field, "%s: %v", field, err)
}

// SetStock gives an item so many units, and no orders.
func (s *Service) SetStock(ctx context.Context, item, units int64) error {
	values := Sale{Item: item}.values()
	values["stock"] = strconv.FormatInt(units, 10)
	if r := s.File.Stock.SetRequest; r.Path != "" {
		if r.Method == "" {
			r.Method = http.MethodPut
		}
		status, body, err := s.Processes[0].call(ctx, r, values)
		if err == nil && status >= http.StatusBadRequest {
			err = fmt.Errorf("%s %s was answered with %d: %s", r.Method, fill(r.Path, values), status, brief(body))
		}
		if err != nil {
			return s.inStock("set_request", err)
		}
		return nil
	}
	for _, statement := range s.File.set {
		if _, err := s.DB.ExecContext(ctx, fill(statement, values)); err != nil {
			return s.inStock("set", err)
		}
	}
	return nil
}

// Left is how many units of an item are left.
func (s *Service) Left(ctx context.Context, item int64) (int64, error) {
	values := Sale{Item: item}.values()
	if r := s.File.Stock.LeftRequest; r.Path != "" {
		found, err := s.counted(ctx, r, values)
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
		return n, nil
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
		found, err := s.counted(ctx, r, values)
		if err != nil {
			return nil, s.inStock("orders_request", err)
		}
		all := make([]Order, len(found))
		for i, customer := range found {
			all[i] = Order{customer, 1}
		}
		return all, nil
	}
	rows, err := s.DB.QueryContext(ctx, fill(s.File.Stock.Orders, values))
	if err != nil {
		return nil, s.inStock("orders", err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err == nil && len(columns) > 2 {
		err = fmt.Errorf("it has %d columns: want the customer, and the quantity where that is not 1", len(columns))
	}
	if err != nil {
		return nil, s.inStock("orders", err)
	}
	var all []Order
	for rows.Next() {
		o := Order{Units: 1}
		to := []any{&o.Customer, &o.Units}[:len(columns)]
		if err := rows.Scan(to...); err != nil {
			return nil, s.inStock("orders", err)
		}
		all = append(all, o)
	}
	if err := rows.Err(); err != nil {
		return nil, s.inStock("orders", err)
	}
	return all, nil
}

func (s *Service) counted(ctx context.Context, r Request, values map[string]string) ([]string, error) {
	status, body, err := s.Processes[0].call(ctx, r, values)
	if err == nil && status >= http.StatusBadRequest {
		err = fmt.Errorf("%s was answered with %d: %s", fill(r.Path, values), status, brief(body))
	}
	return fields(body, r.Value), err
}

const briefly = 200

func brief(body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > briefly {
		return text[:briefly] + "…"
	}
	return text
}
