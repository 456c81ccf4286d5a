package shop

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
)

// FuzzOrder: a body is refused, or it is an order of 1 or more and nothing else.
func FuzzOrder(f *testing.F) {
	for _, body := range []string{`{"quantity":1}`, `{"quantity": 9223372036854775808}`, `{"quantity":1.5}`, `{"quantity":10.0e-1}`, `{"quantity":1}{}`, `[1]`, `null`,
		`{"Quantity":3}`, "{\"quantity\":2}\n", `{"quantity":1,"quantity":2}`, ``} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		parsed, err := parseBody[newOrder](body)
		if err != nil {
			if _, ok := errors.AsType[refusal](err); !ok {
				t.Errorf("the error is no refusal: %v", err)
			}
			return
		}
		quantity := parsed.Quantity
		var order map[string]json.Number
		if err := json.Unmarshal(body, &order); err != nil || len(order) != 1 || !isNumber(order["quantity"].String(), int64(quantity)) || quantity < 1 {
			t.Errorf("accepted %q as %d", body, quantity)
		}
		if bytes.Count(body, []byte(`"`)) != 2 {
			t.Errorf("accepted %q, which has more than one name", body)
		}
	})
}

// isNumber reports whether a text is this number.
func isNumber(text string, n int64) bool {
	value, ok := new(big.Rat).SetString(text)
	return ok && value.Cmp(new(big.Rat).SetInt64(n)) == 0
}

// FuzzRequest: whatever is asked of a shop, here one whose servers are gone, it answers, and errors
// are problems of a documented kind that admit no defect.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/api/v1/items?after=1&limit=2", "", "", "")
	f.Add("POST", "/api/v1/items/1/orders", "application/json", "key", `{"quantity":1}`)
	f.Add("POST", "/api/v1/items/18446744073709551616/orders", "text/plain", `"`, `{`)
	f.Add("GET", "/api/v1/orders?idempotency_key=%20", "", "", "")
	f.Add("HEAD", "/problems/../..//docs;x?=&&", "", "", "")
	f.Add("DELETE", "/api/v1/items/-1", "", "", "x")
	f.Add("GET", "/readyz", "", "", "")
	f.Add("GET", "/"+strings.Repeat("x", maxInstance), "", "", "")
	f.Add("GET", "/"+strings.Repeat("x", maxInstance-2)+"\xff", "", "", "")
	f.Add("POST", "/api/v1/items", "application/json", "key", `{"name":"book","stock":1}`)
	f.Add("POST", "/api/v1/orders", "application/json", "", `{"lines":[{"item_id":1,"quantity":1}]}`)
	f.Add("PUT", "/api/v1/items/1/stock", "application/json", "key", `{"stock":1}`)
	store := stocktest.OpenAt(f, "shop:secret@tcp(127.0.0.1:1)/stocklock")
	locks, client := openLocks(f, "redis://127.0.0.1:1")
	f.Cleanup(func() { _ = client.Close() })
	s, err := New(Config{Name: "shop", Strategy: byName(f, "conditional"), MaxInFlight: 10, MaxConnections: 10, Log: slog.New(slog.DiscardHandler), Deps: strategy.Deps{Store: store, Locks: locks}})
	if err != nil {
		f.Fatal(err)
	}
	for _, d := range s.health.dependencies {
		close(d.prepared) // they had been there
	}
	engine := s.staffEngine()
	known := map[string]bool{}
	for _, k := range problems {
		known["/problems/"+k.Slug] = k != internalError
	}
	f.Fuzz(func(t *testing.T, method, target, contentType, key, body string) {
		request, err := http.NewRequest(method, "http://shop"+target, strings.NewReader(body))
		if err != nil {
			return // no HTTP server would let it through
		}
		request.Header.Set("Content-Type", contentType)
		request.Header.Set(IdempotencyKeyHeader, key)
		answer := httptest.NewRecorder()
		engine.ServeHTTP(answer, request)
		var p problemBody
		switch {
		case answer.Code < 300 || answer.Code == http.StatusNotModified:
		case method == http.MethodHead:
			if answer.Code == http.StatusInternalServerError {
				t.Errorf("HEAD %q: %d", target, answer.Code)
			}
		case json.Unmarshal(answer.Body.Bytes(), &p) != nil || !known[p.Type] || p.Status != answer.Code || utf8.RuneCountInString(p.Instance) > maxInstance:
			t.Errorf("%s %q: %d %s", method, target, answer.Code, answer.Body)
		}
	})
}

// FuzzHeaders: whatever the headers are, what is taken from them fits the database.
func FuzzHeaders(f *testing.F) {
	f.Add("id", "key")
	f.Add("ä b", `"key"`)
	f.Add("", `"`)
	f.Fuzz(func(t *testing.T, id, key string) {
		request := httptest.NewRequest(http.MethodPost, "/", nil)
		request.Header.Set(RequestIDHeader, id)
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = request
		identify(c)
		if got := requestID(c); !isLabel(got, maxRequestIDLength) || isLabel(id, maxRequestIDLength) && got != id {
			t.Errorf("the request id %q became %q", id, got)
		}
		if got, err := readIdempotencyKey(key, ""); err == nil && (!isLabel(got, maxKeyLength) || len(got) < leastSecretKey) {
			t.Errorf("the key %q became %q", key, got)
		}
	})
}
