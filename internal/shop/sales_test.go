package shop

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"

	"github.com/gin-gonic/gin"
)

func TestASaleIsRecordedAndCanBeRead(t *testing.T) {
	s := open(t, func(c *Config) { c.Strategy = byName(t, "conditional") })
	item := s.item(3)
	got := s.do(t.Context(), http.MethodPost, ordersPath(item), `{"quantity":2}`,
		http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"r-1"}})
	order := got.order(t)
	want := publicOrder{ID: order.ID, ItemID: item.ID, Quantity: 2, Lines: []publicLine{{ItemID: item.ID, Quantity: 2}}, CreatedAt: order.CreatedAt}
	if got.status != http.StatusCreated || !reflect.DeepEqual(order, want) || time.Since(order.CreatedAt) > time.Minute {
		t.Errorf("answered %d %+v, want 201 %+v", got.status, order, want)
	}
	if again := s.get(got.header.Get("Location")).order(t); !reflect.DeepEqual(again, order) {
		t.Errorf("read again: %+v, want %+v", again, order)
	}
	row, err := s.store.Order(t.Context(), order.ID)
	recorded := stock.Order{ID: row.ID, PublicID: order.ID, ItemID: item.ID, Quantity: 2, StockRead: 3, StockWritten: 1, Strategy: "conditional",
		Shop: "test-shop", RequestID: "r-1", CreatedAt: row.CreatedAt}
	if err != nil || !reflect.DeepEqual(row, recorded) || row.ID == 0 {
		t.Errorf("recorded %+v, %v, want %+v", row, err, recorded)
	}
	if got := s.get(fmt.Sprintf("/api/v1/items/%d", item.ID)); got.body != fmt.Sprintf(`{"id":%d,"name":"item","stock":1,"version":1}`, item.ID) {
		t.Errorf("the item is now %s", got.body)
	}
}

func TestItemsComeInPages(t *testing.T) {
	s := open(t, nil)
	for range 5 {
		s.item(1)
	}
	var seen []uint64
	path := "/api/v1/items?limit=2"
	for path != "" {
		var page itemList
		decode(t, s.get(path), &page)
		for _, item := range page.Items {
			seen = append(seen, item.ID)
		}
		path = page.Next
	}
	if fmt.Sprint(seen) != "[1 2 3 4 5]" {
		t.Errorf("saw the items %v", seen)
	}
}

func TestACrowdBuysExactlyWhatThereIs(t *testing.T) {
	s := open(t, nil)
	item := s.item(20)
	statuses := map[int]int{}
	var mu sync.Mutex
	var crowd sync.WaitGroup
	for range 60 {
		crowd.Go(func() {
			got := s.buy(item)
			mu.Lock()
			defer mu.Unlock()
			statuses[got.status]++
		})
	}
	crowd.Wait()
	if statuses[201] != 20 || statuses[409] != 40 || s.left(item) != 0 {
		t.Errorf("answers by status: %v, %d units left; want 20 sold, 40 sold out, 0 left", statuses, s.left(item))
	}
}

// TestAClientThatLeavesBeforeItsSaleHasAConnection: the sale is not made.
func TestAClientThatLeavesBeforeItsSaleHasAConnection(t *testing.T) {
	for _, name := range []string{"conditional", "for-update"} {
		by := byName(t, name)
		s := open(t, func(c *Config) {
			c.Strategy, c.Deps.Store, c.Deps.Wait = by, stocktest.Open(t, stock.WithPoolSize(1)), time.Minute
		})
		item := stocktest.Item(t, s.Deps.Store, 1)
		only, err := s.Deps.Store.Pool().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		var buying sync.WaitGroup
		buying.Go(func() {
			_, _ = s.try(ctx, http.MethodPost, ordersPath(item), `{"quantity": 1}`, http.Header{"Content-Type": {"application/json"}})
		})
		testserver.Await(t, "the sale to wait for the connection", func() bool { return s.Deps.Store.Pool().Stats().WaitCount == 1 })
		leave()
		testserver.Await(t, "the sale to end", func() bool { return s.inFlight.Load() == 0 })
		buying.Wait()
		if err := only.Close(); err != nil {
			t.Error(err)
		}
		if now, err := s.Deps.Store.Read(t.Context(), item.ID); err != nil || now.Stock != 1 {
			t.Errorf("%s: %d units left, %v, want 1", name, now.Stock, err)
		}
	}
}

// TestAnOvertakenSaleSaysWhenToTryAgain has the fence of a clock that was ahead.
func TestAnOvertakenSaleSaysWhenToTryAgain(t *testing.T) {
	s := open(t, func(c *Config) { c.Strategy = byName(t, "fenced") })
	item := s.item(1)
	if err := s.store.RaiseFence(t.Context(), item.ID, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if got := s.buy(item); got.problem() != "fenced-off" || got.header.Get("Retry-After") != "1" {
		t.Errorf("%d %s, Retry-After %q", got.status, got.body, got.header.Get("Retry-After"))
	}
}

func TestACrowdBeyondTheLimitIsTurnedAway(t *testing.T) {
	s := open(t, func(c *Config) { c.MaxInFlight, c.Strategy = 3, byName(t, "conditional") })
	item := s.item(10)
	var crowd sync.WaitGroup
	atRead, finish := gate(t)
	for range 3 {
		crowd.Go(func() { s.buy(item, sleepHeader, atRead) })
	}
	testserver.Await(t, "three sales to be under way", func() bool { return s.inFlight.Load() == 3 })
	if got := s.buy(item); got.problem() != "busy" || got.header.Get("Retry-After") == "" {
		t.Errorf("the fourth sale: %d %s, want busy", got.status, got.body)
	}
	began := time.Now()
	answers := make(chan answer, 8)
	for range cap(answers) {
		go func() { answers <- s.buy(item) }()
	}
	closed := 0
	for range cap(answers) {
		got := <-answers
		if got.problem() != "busy" {
			t.Errorf("beyond the slots: %d %s, want busy", got.status, got.body)
		}
		if got.last {
			closed++
		}
	}
	if took := time.Since(began); closed == 0 || took < leastRejection {
		t.Errorf("of 8 requests beyond the slots, %d were the last on their connections, the last was answered after %s", closed, took)
	}
	if got := s.get("/readyz"); got.status != 200 {
		t.Errorf("/readyz in the crowd: %d %s", got.status, got.body)
	}
	finish()
	crowd.Wait()
	if got := s.buy(item); got.status != 201 || s.left(item) != 6 {
		t.Errorf("a sale after the crowd: %d %s, %d units left, want 6", got.status, got.body, s.left(item))
	}
}

// TestASlotThatBecomesFreeIsTaken has more requests than slots, and all are served in the end: those beyond the
// slots wait. It runs in virtual time, since a request waits for less than half a second.
func TestASlotThatBecomesFreeIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Shop{Config: Config{MaxInFlight: 3}, sales: newSlots(3)}
		var crowd sync.WaitGroup
		for range 6 {
			crowd.Go(func() {
				c := &gin.Context{Request: httptest.NewRequest(http.MethodPost, "/", nil)}
				if err := s.enter(c, s.sales); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(leastRejection - 1)
				s.leave(s.sales)
			})
		}
		crowd.Wait()
		if s.inFlight.Load() != 0 || s.sales.waiting.Load() != 0 {
			t.Errorf("after the crowd %d slots are taken, and %d requests wait", s.inFlight.Load(), s.sales.waiting.Load())
		}
	})
}

func TestSlowSendersDoNotTakeThePlacesOfOthers(t *testing.T) {
	s := open(t, func(c *Config) { c.MaxInFlight = 2 })
	item := s.item(1)
	for range 5 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{", ordersPath(item))
	}
	testserver.Await(t, "the slow senders to be there", func() bool { return strings.Count(goroutines(), "readSale") >= 5 })
	if got := s.buy(item); got.status != 201 {
		t.Errorf("a quick sender among slow ones: %d %s", got.status, got.body)
	}
}

// TestASlotIsLeftBeforeTheAnswerIsWritten looks at the slots when an answer's first byte is
// written: a client that reads slowly must hold none.
func TestASlotIsLeftBeforeTheAnswerIsWritten(t *testing.T) {
	s := open(t, nil)
	item := s.item(1)
	for _, request := range []*http.Request{
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/items", nil),
		httptest.NewRequestWithContext(t.Context(), http.MethodPost, ordersPath(item), strings.NewReader(`{"quantity":1}`)),
	} {
		request.Header.Set("Content-Type", "application/json")
		w := &watchedWriter{ResponseRecorder: httptest.NewRecorder(), taken: -1, slots: &s.inFlight}
		s.engine().ServeHTTP(w, request)
		if w.Code >= 300 || w.taken != 0 {
			t.Errorf("%s %s: %d, and %d slots were taken while it was written", request.Method, request.URL, w.Code, w.taken)
		}
	}
}

// watchedWriter notes how many slots are taken at the first write.
type watchedWriter struct {
	*httptest.ResponseRecorder
	slots *atomic.Int64
	taken int64
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	if w.taken < 0 {
		w.taken = w.slots.Load()
	}
	return w.ResponseRecorder.Write(p)
}

// goroutines is what all goroutines are doing.
func goroutines() string {
	stacks := make([]byte, 4<<20)
	return string(stacks[:runtime.Stack(stacks, true)])
}
