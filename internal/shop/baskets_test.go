package shop

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/stock"
)

// order buys one unit of each item in one order.
func (r *running) order(items []stock.Item, headers ...string) answer {
	r.t.Helper()
	var lines []string
	for _, item := range items {
		lines = append(lines, fmt.Sprintf(`{"item_id": %d, "quantity": 1}`, item.ID))
	}
	return r.orderLines(strings.Join(lines, ","), headers...)
}

func (r *running) orderLines(lines string, headers ...string) answer {
	r.t.Helper()
	header := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return r.do(r.t.Context(), http.MethodPost, "/api/v1/orders", `{"lines":[`+lines+`]}`, header)
}

// wantLeft compares the stock of items.
func (r *running) wantLeft(items []stock.Item, want ...int64) {
	r.t.Helper()
	for i, item := range items {
		if left := r.left(item); left != want[i] {
			r.t.Errorf("%d units are left of item %d, want %d", left, i+1, want[i])
		}
	}
}

// TestAnOrderOfSeveralItems posts lines in no order, and one item twice, and repeats the request.
func TestAnOrderOfSeveralItems(t *testing.T) {
	s := open(t, nil)
	items := []stock.Item{s.item(5), s.item(5)}
	lines := fmt.Sprintf(`{"item_id":%d,"quantity":1},{"item_id":%d,"quantity":2},{"item_id":%[1]d,"quantity":2}`, items[1].ID, items[0].ID)
	got := s.orderLines(lines, "Idempotency-Key", "key-of-some-customer-1")
	order := got.order(t)
	want := publicOrder{ID: order.ID, Lines: []publicLine{{ItemID: items[0].ID, Quantity: 2}, {ItemID: items[1].ID, Quantity: 3}}, CreatedAt: order.CreatedAt}
	if got.status != 201 || !reflect.DeepEqual(order, want) {
		t.Fatalf("answered %d %s, want %+v", got.status, got.body, want)
	}
	again := s.orderLines(lines, "Idempotency-Key", "key-of-some-customer-1")
	if again.body != got.body || again.header.Get(ReplayedHeader) != "true" {
		t.Errorf("a repeat: %d %s", again.status, again.body)
	}
	for _, path := range []string{got.header.Get("Location"), "/api/v1/orders?idempotency_key=key-of-some-customer-1"} {
		if read := s.get(path); read.body != got.body {
			t.Errorf("%s: %d %s, want %s", path, read.status, read.body, got.body)
		}
	}
	if other := s.order(items, "Idempotency-Key", "key-of-some-customer-1"); other.problem() != "idempotency-key-reused" {
		t.Errorf("other lines under the key: %d %s", other.status, other.body)
	}
	s.wantLeft(items, 3, 2)
}

// TestAnOrderOfOneLineIsThatOfItsItem: both requests make the same order under one key.
func TestAnOrderOfOneLineIsThatOfItsItem(t *testing.T) {
	s := open(t, nil)
	item := s.item(5)
	first := s.buy(item, "Idempotency-Key", "key-of-some-customer-1")
	again := s.order([]stock.Item{item}, "Idempotency-Key", "key-of-some-customer-1")
	if first.status != 201 || again.body != first.body || again.header.Get(ReplayedHeader) != "true" {
		t.Errorf("%d %s, and %d %s", first.status, first.body, again.status, again.body)
	}
	s.wantLeft([]stock.Item{item}, 4)
}

// TestARefusedOrderNamesItsLines has a line that is sold out, one that exceeds the limit and one whose
// item does not exist.
func TestARefusedOrderNamesItsLines(t *testing.T) {
	s := open(t, func(c *Config) { c.Limit, c.Subject = 2, SubjectHeader("X-Subject") })
	items := []stock.Item{s.item(5), s.item(0), s.item(5)}
	missing := stock.Item{ID: items[2].ID + 1000}
	got := s.order([]stock.Item{missing, items[1], items[0]}, "X-Subject", "ann")
	var body problemBody
	decode(t, got, &body)
	want := []refusedLine{{items[1].ID, "/problems/sold-out"}, {missing.ID, "/problems/not-found"}}
	if got.problem() != "sold-out" || !slices.Equal(body.Lines, want) {
		t.Errorf("answered %d %s, want sold-out with the lines %v", got.status, got.body, want)
	}
	three := fmt.Sprintf(`{"item_id":%d,"quantity":1},{"item_id":%d,"quantity":3}`, items[0].ID, items[2].ID)
	got = s.orderLines(three, "X-Subject", "ann")
	decode(t, got, &body)
	if got.problem() != "limit-reached" || !slices.Equal(body.Lines, []refusedLine{{items[2].ID, "/problems/limit-reached"}}) {
		t.Errorf("answered %d %s, want limit-reached with one line", got.status, got.body)
	}
	s.wantLeft(items, 5, 0, 5)
}

// TestALimitHoldsOverAllOrders buys at once, cancels a line, and buys again.
func TestALimitHoldsOverAllOrders(t *testing.T) {
	s := open(t, func(c *Config) { staffed(c); c.Limit = 2 })
	items := []stock.Item{s.item(10), s.item(10)}
	if got := s.order(items); got.problem() != "malformed" {
		t.Errorf("without a subject: %d %s", got.status, got.body)
	}
	if got := s.buy(items[0]); got.problem() != "malformed" {
		t.Errorf("one item without a subject: %d %s", got.status, got.body)
	}
	var mu sync.Mutex
	var orders []publicOrder
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			buy := func() answer { return s.order(items, "X-Subject", "ann") }
			if n%2 == 0 {
				buy = func() answer { return s.buy(items[0], "X-Subject", "ann") }
			}
			got := buy()
			mu.Lock()
			defer mu.Unlock()
			if got.status == 201 {
				orders = append(orders, got.order(t))
			} else if got.problem() != "limit-reached" {
				t.Errorf("answered %d %s", got.status, got.body)
			}
		})
	}
	wg.Wait()
	if left := s.left(items[0]); len(orders) == 0 || left != 8 {
		t.Fatalf("%d units are left after %d orders, want 8", left, len(orders))
	}
	if got := s.staff("POST", fmt.Sprintf("/api/v1/orders/%s/lines/%d/cancellation", orders[0].ID, items[0].ID), "k", ""); got.status != 200 {
		t.Fatalf("cancel a line: %d %s", got.status, got.body)
	}
	if first, second := s.buy(items[0], "X-Subject", "ann"), s.buy(items[0], "X-Subject", "ann"); first.status != 201 || second.problem() != "limit-reached" {
		t.Errorf("after a cancellation: %d %s, and %d %s", first.status, first.body, second.status, second.body)
	}
	if got := s.order(items, "X-Subject", "bob"); got.status != 201 {
		t.Errorf("another customer: %d %s", got.status, got.body)
	}
}

// TestALineIsCancelledOnce cancels a line, which is repeated, the first line, and then the order.
func TestALineIsCancelledOnce(t *testing.T) {
	s := open(t, staffed)
	items := []stock.Item{s.item(5), s.item(5), s.item(5), s.item(5)}
	order := s.order(items, "X-Subject", "bob").order(t)
	path := "/api/v1/orders/" + order.ID
	line := fmt.Sprintf("%s/lines/%d/cancellation", path, items[1].ID)
	first, again := s.staff("POST", line, "k-1", ""), s.staff("POST", line, "k-1", "")
	if got := first.order(t); got.CancelledAt != nil || got.Lines[0].CancelledAt != nil || got.Lines[1].CancelledAt == nil || got.Lines[2].CancelledAt != nil {
		t.Errorf("after one line: %s", first.body)
	}
	if again.body != first.body || again.header.Get(ReplayedHeader) != "true" {
		t.Errorf("repeated: %d %s, want %s", again.status, again.body, first.body)
	}
	s.wantLeft(items, 4, 5, 4, 4)
	for _, wrong := range []struct{ path, key, problem string }{
		{line, "k-2", "already-cancelled"},
		{path + "/cancellation", "k-1", "idempotency-key-reused"},
		{fmt.Sprintf("%s/lines/%d/cancellation", path, items[0].ID), "k-1", "idempotency-key-reused"},
		{fmt.Sprintf("%s/lines/%d/cancellation", path, items[2].ID+1000), "k-3", "not-found"},
		{path + "/lines/x/cancellation", "k-3", "malformed"},
	} {
		if got := s.staff("POST", wrong.path, wrong.key, ""); got.problem() != wrong.problem {
			t.Errorf("%s under %s: %d %s, want %s", wrong.path, wrong.key, got.status, got.body, wrong.problem)
		}
	}
	s.wantLeft(items, 4, 5, 4, 4)
	s.staff("POST", fmt.Sprintf("%s/lines/%d/cancellation", path, items[0].ID), "k-3", "")
	rest, repeated := s.staff("POST", path+"/cancellation", "k-4", ""), s.staff("POST", path+"/cancellation", "k-4", "")
	if got := rest.order(t); got.CancelledAt == nil || !got.CancelledAt.Equal(*got.Lines[3].CancelledAt) || !got.CancelledAt.After(*got.Lines[0].CancelledAt) || repeated.body != rest.body || repeated.header.Get(ReplayedHeader) != "true" {
		t.Errorf("the rest: %d %s, repeated %s", rest.status, rest.body, repeated.body)
	}
	s.wantLeft(items, 5, 5, 5, 5)
	if got := s.staff("POST", path+"/cancellation", "k-5", ""); got.problem() != "already-cancelled" {
		t.Errorf("cancelled twice: %d %s", got.status, got.body)
	}
}

// TestACustomerListsOrders follows the pages while orders are added.
func TestACustomerListsOrders(t *testing.T) {
	s := open(t, func(c *Config) { c.Subject = SubjectHeader("X-Subject") })
	items := []stock.Item{s.item(100), s.item(100)}
	ann := http.Header{"X-Subject": {"ann"}}
	list := func(path string) (page struct {
		Orders []publicOrder
		Next   string
	}) {
		t.Helper()
		got := s.do(t.Context(), http.MethodGet, path, "", ann)
		if got.status != 200 {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		decode(t, got, &page)
		return page
	}
	var want []publicOrder
	for n := range 5 {
		want = slices.Insert(want, 0, s.order(items[:1+n%2], "X-Subject", "ann").order(t))
		s.buy(items[0], "X-Subject", "bob")
	}
	if page := list("/api/v1/orders"); !reflect.DeepEqual(page.Orders, want) || page.Next != "" {
		t.Errorf("listed %+v\nwant %+v", page.Orders, want)
	}
	var got []publicOrder
	for next := "/api/v1/orders?limit=2&until=" + time.Now().Add(time.Minute).UTC().Format(time.RFC3339); next != ""; {
		page := list(next)
		got, next = append(got, page.Orders...), page.Next
		s.buy(items[0], "X-Subject", "ann")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("by pages %+v\nwant %+v", got, want)
	}
	if page := list("/api/v1/orders?from=" + want[1].CreatedAt.Format(time.RFC3339Nano) + "&until=" + want[0].CreatedAt.Format(time.RFC3339Nano)); len(page.Orders) != 1 || page.Orders[0].ID != want[1].ID {
		t.Errorf("of a period: %+v, want %+v", page.Orders, want[1])
	}
	for query, problem := range map[string]string{
		"limit=0": "invalid", "limit=101": "invalid", "before=1": "malformed", "from=today": "malformed", "until=": "malformed",
		"before=" + s.buy(items[0], "X-Subject", "bob").order(t).ID: "not-found",
	} {
		if got := s.do(t.Context(), http.MethodGet, "/api/v1/orders?"+query, "", ann); got.problem() != problem {
			t.Errorf("%s: %d %s, want %s", query, got.status, got.body, problem)
		}
	}
	if got := s.get("/api/v1/orders?limit=2"); got.problem() != "malformed" {
		t.Errorf("without a subject: %d %s", got.status, got.body)
	}
}

// TestWrongBasketsAreRefused sends what no order can be.
func TestWrongBasketsAreRefused(t *testing.T) {
	s := open(t, nil)
	item := s.item(100)
	line := fmt.Sprintf(`{"item_id":%d,"quantity":1}`, item.ID)
	longest := fmt.Sprintf(`{"item_id":%d,"quantity":%d}`, item.ID, stock.MaxStock)
	for body, want := range map[string]string{
		``:                                       "malformed",
		`{}`:                                     "invalid",
		`{"lines":[]}`:                           "invalid",
		`{"lines":null}`:                         "invalid",
		`{"lines":[null]}`:                       "invalid",
		`{"lines":{}}`:                           "invalid",
		`{"lines":[{"item_id":1}]}`:              "invalid",
		`{"lines":[{"quantity":1}]}`:             "invalid",
		`{"lines":[` + line + `,{}]}`:            "invalid",
		`{"lines":[{"item_id":0,"quantity":1}]}`: "invalid",
		`{"lines":[{"item_id":1,"quantity":0}]}`: "invalid",
		`{"lines":[{"item_id":1,"quantity":1.5}]}`:                              "invalid",
		`{"lines":[{"item_id":1,"quantity":1000000000001}]}`:                    "invalid",
		`{"lines":[{"item_id":1,"quantity":1,"price":1}]}`:                      "malformed",
		`{"lines":[{"item_id":1,"Quantity":1}]}`:                                "malformed",
		`{"lines":[{"item_id":1,"quantity":1,"quantity":2}]}`:                   "malformed",
		`{"lines":[` + line + `],"lines":[` + line + `]}`:                       "malformed",
		`{"lines":[` + line + `]} x`:                                            "malformed",
		`{"lines":[` + strings.Repeat(line+",", maxLines) + line + `]}`:         "invalid",
		`{"lines":[` + strings.Repeat(longest+",", maxLines-1) + longest + `]}`: "sold-out", // the sum does not overflow
		`{"lines":[` + line + `]` + strings.Repeat(" ", maxBody) + `}`:          "too-large",
	} {
		got := s.do(t.Context(), http.MethodPost, "/api/v1/orders", body, http.Header{"Content-Type": {"application/json"}})
		if got.problem() != want {
			t.Errorf("%.80s: %d %s, want %s", body, got.status, got.body, want)
		}
	}
	s.wantLeft([]stock.Item{item}, 100)
	if got := s.orderLines(strings.Repeat(line+",", maxLines-1) + line); got.status != 201 {
		t.Errorf("%d lines: %d %s", maxLines, got.status, got.body)
	}
	s.wantLeft([]stock.Item{item}, 50)
}
