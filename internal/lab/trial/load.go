package trial

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// Load is customers who order, at a steady rate, whether or not earlier orders were answered.
type Load struct {
	Rate    int           // orders a second; 0 for as fast as they are answered
	Workers int           // orders under way at most; beyond them the rate is not kept
	Timeout time.Duration // of one order
}

// Order is one request of a [Load].
type Order struct {
	Shop     string // base URL
	ItemID   uint64
	Quantity int
	Header   http.Header // besides the content type
	Tag      any         // the caller's own
}

// Answer is what became of an [Order].
type Answer struct {
	Order   Order
	Outcome Outcome
	Status  int // 0 for no answer
	Header  http.Header
	Body    []byte // its first 4 KiB
	Latency time.Duration
}

// Run orders what next says until that is false or ctx ends, waits for the last answers, and gives
// each to answered. next is called from many goroutines, answered from the caller's.
func (l Load) Run(ctx context.Context, next func() (Order, bool), answered func(Answer)) {
	sent := &sentOrders{next: &http.Transport{MaxIdleConnsPerHost: l.Workers}, made: map[string]Order{}, bySeq: map[uint64]sentOrder{}}
	client := &http.Client{Timeout: l.Timeout, Transport: sent}
	defer client.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.MaxBody(4<<10), vegeta.MaxWorkers(uint64(l.Workers)))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	pace := pacer{
		shape: Steady(l.Rate),
		over:  func(int) bool { return ctx.Err() != nil },
	}
	for result := range attacker.Attack(sent.target(next), pace, 0, "") {
		order, ok := sent.take(result.Seq)
		if !ok {
			continue // there was no next one
		}
		answered(Answer{
			Order: order.Order, Outcome: classify(int(result.Code), result.Body, order.err),
			Status: int(result.Code), Header: result.Headers, Body: result.Body, Latency: result.Latency,
		})
	}
}

// sentOrders is a transport that remembers which order vegeta sent under which number,
// and the error itself, of which vegeta keeps only the text.
type sentOrders struct {
	next *http.Transport

	mu    sync.Mutex           // guards the rest
	last  int                  // the id of the order made last
	made  map[string]Order     // by id, until they are sent
	bySeq map[uint64]sentOrder // by vegeta's number, until they are answered
}

type sentOrder struct {
	Order
	err error
}

const loadOrderHeader = "X-Load-Order" // the id, which is not sent

func (s *sentOrders) target(next func() (Order, bool)) vegeta.Targeter {
	return func(t *vegeta.Target) error {
		order, ok := next()
		if !ok {
			return vegeta.ErrNoTargets
		}
		s.mu.Lock()
		s.last++
		id := strconv.Itoa(s.last)
		s.made[id] = order
		s.mu.Unlock()
		t.Method = http.MethodPost
		t.URL = order.Shop + "/api/v1/items/" + strconv.FormatUint(order.ItemID, 10) + "/orders"
		t.Body = fmt.Appendf(nil, `{"quantity":%d}`, order.Quantity)
		t.Header = order.Header.Clone()
		t.Header.Set("Content-Type", "application/json")
		t.Header.Set(loadOrderHeader, id)
		return nil
	}
}

func (s *sentOrders) RoundTrip(r *http.Request) (*http.Response, error) {
	id := r.Header.Get(loadOrderHeader)
	seq, _ := strconv.ParseUint(r.Header.Get("X-Vegeta-Seq"), 10, 64)
	r = r.Clone(r.Context())
	r.Header.Del(loadOrderHeader)
	// net/http sends a request with an Idempotency-Key again by itself when its connection breaks. A
	// second one that finds nobody listening would hide that the first one may have sold.
	r.GetBody = nil
	answer, err := s.next.RoundTrip(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bySeq[seq] = sentOrder{s.made[id], err}
	delete(s.made, id)
	return answer, err
}

func (s *sentOrders) CloseIdleConnections() { s.next.CloseIdleConnections() }

// take returns what was sent under vegeta's number.
func (s *sentOrders) take(seq uint64) (sentOrder, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order, ok := s.bySeq[seq]
	delete(s.bySeq, seq)
	return order, ok
}
