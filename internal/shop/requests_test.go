package shop

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stocklock/internal/stock"
)

func ordersPath(item stock.Item) string { return fmt.Sprintf("/api/v1/items/%d/orders", item.ID) }

func TestBadRequestsAreAnsweredAndSellNothing(t *testing.T) {
	s := open(t, nil)
	item := s.item(100)
	orders := ordersPath(item)
	const post, get = http.MethodPost, http.MethodGet
	tests := []struct {
		name, method, path, body string
		status                   int
		problem                  string
	}{
		{"no body", post, orders, "", 400, "malformed"},
		{"half a body", post, orders, `{"quantity"`, 400, "malformed"},
		{"no JSON", post, orders, "quantity=1", 400, "malformed"},
		{"an array", post, orders, "[1]", 400, "malformed"},
		{"an unknown field", post, orders, `{"quantity":1,"price":1}`, 400, "malformed"},
		{"a field in capitals", post, orders, `{"QUANTITY":1}`, 400, "malformed"},
		{"a quantity twice", post, orders, `{"quantity":1,"quantity":2}`, 400, "malformed"},
		{"a quantity twice, once in capitals", post, orders, `{"quantity":1,"Quantity":1}`, 400, "malformed"},
		{"a quantity after null", post, orders, `{"quantity":null,"quantity":1}`, 400, "malformed"},
		{"a second order", post, orders, `{"quantity":1}{"quantity":1}`, 400, "malformed"},
		{"garbage after the order", post, orders, `{"quantity":1} x`, 400, "malformed"},
		{"null", post, orders, "null", 422, "invalid"},
		{"no quantity", post, orders, "{}", 422, "invalid"},
		{"quantity null", post, orders, `{"quantity":null}`, 422, "invalid"},
		{"quantity 0", post, orders, `{"quantity":0}`, 422, "invalid"},
		{"quantity -1", post, orders, `{"quantity":-1}`, 422, "invalid"},
		{"quantity 2^63", post, orders, `{"quantity":9223372036854775808}`, 422, "invalid"},
		{"quantity -2^63", post, orders, `{"quantity":-9223372036854775808}`, 422, "invalid"},
		{"quantity 1.5", post, orders, `{"quantity":1.5}`, 422, "invalid"},
		{"quantity 1e3", post, orders, `{"quantity":1e3}`, 409, "sold-out"},
		{"quantity 1e99", post, orders, `{"quantity":1e99}`, 422, "invalid"},
		{"quantity 1e999999999", post, orders, `{"quantity":1e999999999}`, 422, "invalid"},
		{"a quantity of many digits", post, orders, `{"quantity":` + strings.Repeat("9", 100) + `}`, 422, "invalid"},
		{"quantity as text", post, orders, `{"quantity":"1"}`, 422, "invalid"},
		{"more than there is", post, orders, fmt.Sprintf(`{"quantity":%d}`, maxQuantity), 409, "sold-out"},
		{"10 MB", post, orders, strings.Repeat("x", 10<<20), 413, "too-large"},
		{"a long tail", post, orders, `{"quantity":1}` + strings.Repeat(" ", maxBody), 413, "too-large"},
		{"an unknown item", post, "/api/v1/items/9223372036854775807/orders", `{"quantity":1}`, 404, "not-found"},
		{"an item that is no number", post, "/api/v1/items/book/orders", `{"quantity":1}`, 400, "malformed"},
		{"an item below 0", post, "/api/v1/items/-1/orders", `{"quantity":1}`, 400, "malformed"},
		{"an item beyond 63 bits", post, "/api/v1/items/9223372036854775808/orders", `{"quantity":1}`, 400, "malformed"},
		{"a wrong method", http.MethodDelete, orders, "", 405, "method-not-allowed"},
		{"orders read", get, orders, "", 405, "method-not-allowed"},
		{"an unknown path", get, "/nowhere", "", 404, "not-found"},
		{"a trailing slash", post, orders + "/", `{"quantity":1}`, 404, "not-found"},
		{"read an unknown item", get, "/api/v1/items/0", "", 404, "not-found"},
		{"read an unknown order", get, "/api/v1/orders/019353a2-0000-7000-8000-000000000000", "", 404, "not-found"},
		{"read an order by a number", get, "/api/v1/orders/1", "", 400, "malformed"},
		{"read an order that is no number", get, "/api/v1/orders/x", "", 400, "malformed"},
		{"an encoded slash", post, fmt.Sprintf("/api/v1/items/%d%%2Forders", item.ID), `{"quantity":1}`, 405, "method-not-allowed"},
		{"a query that cannot be read", get, "/api/v1/items?limit=%zz", "", 400, "malformed"},
		{"a page too large", get, "/api/v1/items?limit=501", "", 422, "invalid"},
		{"a page of nothing", get, "/api/v1/items?limit=0", "", 422, "invalid"},
		{"a page of words", get, "/api/v1/items?after=x", "", 400, "malformed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.do(t.Context(), test.method, test.path, test.body, http.Header{"Content-Type": {"application/json"}})
			if got.status != test.status || got.problem() != test.problem {
				t.Errorf("%s %s answered %d %s, want %d with the problem %s", test.method, test.path, got.status, got.body, test.status, test.problem)
			}
		})
	}
	if left := s.left(item); left != 100 {
		t.Errorf("%d units are left after nothing but bad requests, want 100", left)
	}
}

func TestNumbersThatCannotBeAreToldTheirRange(t *testing.T) {
	s := open(t, nil)
	const whole = "must be a whole number from "
	for path, says := range map[string]string{
		"/api/v1/items/-1":                   "the item id " + whole + `0 to 9223372036854775807, not \"-1\"`,
		"/api/v1/items/18446744073709551616": "the item id " + whole + "0 to 9223372036854775807",
		"/api/v1/orders/book":                "an order's id is a UUID",
		"/api/v1/items?after=-1":             "after " + whole + "0 to 9223372036854775807",
		"/api/v1/items?limit=-1":             "limit " + whole + "1 to 500",
		"/api/v1/items?limit=":               "limit " + whole + "1 to 500",
		"/api/v1/items?limit=0":              "limit " + whole + "1 to 500",
		"/api/v1/items?limit=501":            "limit " + whole + `1 to 500, not \"501\"`,
	} {
		if got := s.get(path); !strings.Contains(got.body, says) {
			t.Errorf("%s: %d %s, want %q", path, got.status, got.body, says)
		}
	}
}

func TestOrdersAreJSONInUTF8(t *testing.T) {
	s := open(t, nil)
	item := s.item(100)
	order := func(header http.Header) answer {
		return s.do(t.Context(), http.MethodPost, ordersPath(item), `{"quantity": 1}`, header)
	}
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application/json; charset", "application/json; charset=latin1"} {
		if got := order(http.Header{"Content-Type": {media}}); got.status != 415 || got.problem() != "unsupported-media-type" {
			t.Errorf("Content-Type %q answered %d %s, want 415", media, got.status, got.body)
		}
	}
	if got := order(http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}); got.status != 415 {
		t.Errorf("Content-Encoding gzip answered %d %s, want 415", got.status, got.body)
	}
	if left := s.left(item); left != 100 {
		t.Errorf("%d units left, want 100", left)
	}
	for _, media := range []string{"application/json", "application/json; charset=utf-8", `APPLICATION/JSON;Charset="UTF-8"`} {
		if got := order(http.Header{"Content-Type": {media}}); got.status != 201 {
			t.Errorf("Content-Type %q answered %d %s, want 201", media, got.status, got.body)
		}
	}
}

// TestABodyThatCannotBeRead is told apart from one that says something wrong, and the answer says
// nothing about this side.
func TestABodyThatCannotBeRead(t *testing.T) {
	s := open(t, nil)
	item := s.item(1)
	impatient := httptest.NewUnstartedServer(nil)
	impatient.Config = s.server(s.inLab(s.engine()))
	if is := impatient.Config; is.ReadHeaderTimeout != readHeaderTimeout || is.ReadTimeout != readTimeout || is.IdleTimeout != idleTimeout {
		t.Fatalf("the timeouts are %s, %s and %s", is.ReadHeaderTimeout, is.ReadTimeout, is.IdleTimeout)
	}
	impatient.Config.ReadTimeout = 300 * time.Millisecond
	impatient.Start()
	defer impatient.Close()
	for _, test := range []struct {
		name, framing, body, says string
		status                    int
	}{
		{"too slow", "Content-Length: 14", `{"quantity"`, "did not come within", 408},
		{"nothing at all", "Content-Length: 14", "", "did not come within", 408},
		{"no chunk", "Transfer-Encoding: chunked", "zz\r\n", "the body cannot be read", 400},
	} {
		conn, err := net.Dial("tcp", impatient.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", ordersPath(item), test.framing, test.body)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		got := answer{response.StatusCode, response.Header, string(body), response.Close}
		checkContract(t, http.MethodPost, ordersPath(item), nil, got)
		if got.status != test.status || !strings.Contains(got.body, test.says) || strings.Contains(got.body, "127.0.0.1") || !got.last {
			t.Errorf("%s: %d %s, closes %t; want %d, %q, no address, and a closed connection", test.name, got.status, got.body, got.last, test.status, test.says)
		}
	}
	if left := s.left(item); left != 1 {
		t.Errorf("%d units left, want 1", left)
	}
}

func TestHeadersBeyondTheLimitAreRefused(t *testing.T) {
	s := open(t, nil)
	for _, test := range []struct{ bytes, status int }{
		{maxHeaderBytes, http.StatusOK},
		{maxHeaderBytes + 8<<10, http.StatusRequestHeaderFieldsTooLarge}, // what SECURITY.md promises
		{64 << 10, http.StatusRequestHeaderFieldsTooLarge},
	} {
		s.get("/livez") // a connection that was used before lets most through
		got, err := s.try(t.Context(), http.MethodGet, "/livez", "", http.Header{"X-Long": {strings.Repeat("x", test.bytes)}})
		if err != nil || got.status != test.status {
			t.Errorf("%d bytes of headers: %d, %v, want %d", test.bytes, got.status, err, test.status)
		}
	}
}

func TestProblemsNameTheRequest(t *testing.T) {
	s := open(t, nil)
	got := s.do(t.Context(), http.MethodGet, "/nowhere", "", http.Header{"X-Request-Id": {"abc-1"}})
	want := `{"type":"/problems/not-found","title":"There is no such thing","status":404,` +
		`"detail":"there is nothing at this path","instance":"/nowhere","request_id":"abc-1"}`
	if got.body != want {
		t.Errorf("answered %s\nwant %s", got.body, want)
	}
}

func TestRequestIDs(t *testing.T) {
	s := open(t, nil)
	for _, test := range []struct {
		name, sent string
		kept       bool
	}{
		{"one character", "x", true},
		{"the longest", strings.Repeat("x", 64), true},
		{"too long", strings.Repeat("x", 65), false},
		{"a space inside", "a b", false},
		{"not ASCII", "ä", false},
		{"none", "", false},
	} {
		got := s.do(t.Context(), http.MethodGet, "/livez", "", http.Header{"X-Request-Id": {test.sent}}).header.Get("X-Request-Id")
		if kept := got == test.sent; kept != test.kept || !isLabel(got, 64) {
			t.Errorf("%s: sent %q, got %q", test.name, test.sent, got)
		}
	}
}
