package shop

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// TestARequestThatNamesNobodyIsRefused asks a shop whose gateway names the customer. One that names two is refused, too.
func TestARequestThatNamesNobodyIsRefused(t *testing.T) {
	s := open(t, staffed)
	item := s.item(5)
	order := s.buy(item, "X-Subject", "ann").order(t)
	key := http.Header{"Idempotency-Key": {"key-of-some-customer-1"}}
	two := http.Header{"X-Subject": {"ann", "eve"}, "X-Staff": {"ann", "eve"}}
	ofStaff, err := send(t.Context(), http.MethodGet, s.staffURL+"/api/v1/orders/"+order.ID, "", two)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]answer{
		"a sale":            s.buy(item),
		"a basket":          s.order([]stock.Item{item}),
		"a list":            s.get("/api/v1/orders"),
		"a look at a key":   s.do(t.Context(), http.MethodGet, "/api/v1/orders", "", key),
		"a look at a order": s.get("/api/v1/orders/" + order.ID),
		"two customers":     s.do(t.Context(), http.MethodGet, "/api/v1/orders/"+order.ID, "", two),
		"two of the staff":  ofStaff,
	} {
		if got.problem() != "malformed" {
			t.Errorf("%s: %d %s, want 400", name, got.status, got.body)
		}
	}
	for _, path := range []string{itemPath(item), "/api/v1/items", "/docs", "/openapi.yaml", "/readyz", "/livez", "/problems/busy"} {
		if got := s.get(path); got.status >= 400 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	s.wantLeft([]stock.Item{item}, 4)
}

// TestALimitNeedsACustomer: nobody walks around it by a request without a name.
func TestALimitNeedsACustomer(t *testing.T) {
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequest(http.MethodPost, "/", nil)
	for limit, refused := range map[int64]bool{0: false, 1: true} {
		s := &Shop{Config: Config{Subject: SubjectHeader("X-Subject"), Anonymous: true, Limit: limit}}
		if _, err := s.subject(c); (err != nil) != refused {
			t.Errorf("a limit of %d: %v", limit, err)
		}
	}
}

// TestAnOrderIsReadByItsSubject has another customer, and staff, who know its id and its key. An order of nobody is read
// by everybody who knows its id, and is in no list.
func TestAnOrderIsReadByItsSubject(t *testing.T) {
	s := open(t, func(c *Config) {
		staffed(c)
		c.Anonymous = true
	})
	const key = "key-of-some-customer-1"
	item := s.item(5)
	order, nobodys := s.buy(item, "X-Subject", "ann", "Idempotency-Key", key).order(t), s.buy(item).order(t)
	byID, byKey := "/api/v1/orders/"+order.ID, "/api/v1/orders"
	for _, test := range []struct {
		url, path, subject string
		status             int
	}{
		{s.url, byID, "ann", 200}, {s.url, byID, "eve", 404}, {s.staffURL, byID, "staff", 200},
		{s.url, byKey, "ann", 200}, {s.url, byKey, "eve", 404}, {s.url, "/api/v1/orders/" + nobodys.ID, "eve", 200},
	} {
		header := http.Header{"X-Subject": {test.subject}, "X-Staff": {test.subject}}
		if test.path == byKey {
			header.Set("Idempotency-Key", key)
		}
		got, err := send(t.Context(), http.MethodGet, test.url+test.path, "", header)
		if err != nil || got.status != test.status {
			t.Errorf("%s reads %s: %d %s, %v; want %d", test.subject, test.path, got.status, got.body, err, test.status)
		}
	}
	if got := s.do(t.Context(), http.MethodGet, byKey, "", http.Header{"X-Subject": {"ann"}}); !strings.Contains(got.body, order.ID) || strings.Contains(got.body, nobodys.ID) {
		t.Errorf("the orders of ann are %d %s", got.status, got.body)
	}
}

func TestShopsThatCannotBe(t *testing.T) {
	absolute := strategy.Strategy{Name: "absolute"}
	locks, client := openLocks(t, redisURL(t))
	defer client.Close()
	for want, cfg := range map[string]Config{
		"--name (SHOP_NAME): the name":                   {},
		"--limit (SHOP_LIMIT) needs --subject-header":    {Name: "shop", Limit: 1},
		"--cancel-within (SHOP_CANCEL_WITHIN) needs":     {Name: "shop", CancelWithin: 1},
		"--cancel-within (SHOP_CANCEL_WITHIN): absolute": {Name: "shop", CancelWithin: 1, Subject: SubjectHeader("X"), Strategy: absolute},
		"absolute writes over what was restocked":        {Name: "shop", Staff: SubjectHeader("X"), Strategy: absolute},
		"strategy patient needs a lease of 1s or more":   {Name: "shop", Strategy: strategy.Strategy{Name: "patient", ShortestLease: time.Second}},
	} {
		cfg.Deps.Locks = locks
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
