// Package load sends orders to shops and reports their outcomes.
//
// It is the lab's only client of the shop's API (order.go, answer.go, outcome.go), and the only
// user of vegeta (driver.go, shape.go, records.go).
package load

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// Load sends orders in a shape over time.
type Load struct {
	Shape   Shape         // the zero value sends as fast as orders are answered
	Workers int           // orders under way at most; beyond them the shape is not kept
	Timeout time.Duration // of one order
	// Over is asked before each order, after sent of them, and ends the load. One goroutine at a
	// time calls it. Nil never ends it.
	Over func(sent int) bool
}

// Run sends what next returns, until that is false, l.Over says so or ctx ends. Then it waits for
// the last answers. It passes each answer to answered. next is called from many goroutines,
// answered from the caller's. An error means that a request could not be made at all.
func (l Load) Run(ctx context.Context, next func() (Order, bool), answered func(Answer)) error {
	tracked := &tracker{transport: &http.Transport{MaxIdleConnsPerHost: l.Workers}, made: map[string]Order{}, sent: map[uint64]Answer{}}
	client := &http.Client{Timeout: l.Timeout, Transport: tracked}
	defer client.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.MaxBody(maxAnswer), vegeta.MaxWorkers(uint64(l.Workers)))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	var err error
	for result := range attacker.Attack(tracked.target(next), pacer{ctx, l}, 0, "") {
		answer, ok := tracked.take(result.Seq)
		switch {
		case ok:
			answer.Status, answer.Header, answer.Body = int(result.Code), result.Headers, result.Body
			answer.Latency = result.Timestamp.Add(result.Latency).Sub(answer.Sent) // vegeta's has the wait for next, too
			if answer.Err == nil && result.Code == 0 {
				answer.Err = errors.New(result.Error) // the body could not be read
			}
			answered(answer.conclude(answer.Err))
		case result.Error != vegeta.ErrNoTargets.Error() && ctx.Err() == nil:
			err = errors.New("a request could not be made: " + result.Error)
		}
	}
	return err
}

// pacer keeps to the shape of a load, and ends it.
type pacer struct {
	ctx  context.Context
	load Load
}

func (p pacer) Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool) {
	switch {
	case p.ctx.Err() != nil || p.load.Over != nil && p.load.Over(int(hits)):
		return 0, true
	case p.load.Shape.IsZero():
		return 0, false
	}
	return max(p.load.Shape.Due(int(hits))-elapsed, 0), false
}

// Rate is part of vegeta's interface. Only its reports call it.
func (p pacer) Rate(time.Duration) float64 { return 0 }

// tracker is a transport that tells which order vegeta sent under which sequence number. It also
// keeps the error itself, of which vegeta keeps only the text.
type tracker struct {
	transport *http.Transport

	mu   sync.Mutex        // guards the rest
	last int               // the id of the order made last
	made map[string]Order  // by id, until they are sent
	sent map[uint64]Answer // by vegeta's number, until they are answered
}

const (
	idHeader  = "X-Load-Order" // the id, removed before the request is sent
	seqHeader = "X-Vegeta-Seq" // vegeta's number
)

func (t *tracker) target(next func() (Order, bool)) vegeta.Targeter {
	return func(target *vegeta.Target) error {
		order, ok := next()
		if !ok {
			return vegeta.ErrNoTargets
		}
		t.mu.Lock()
		t.last++
		id := strconv.Itoa(t.last)
		t.made[id] = order
		t.mu.Unlock()
		target.Method, target.URL, target.Body, target.Header = http.MethodPost, order.url(), []byte(order.body()), order.header()
		target.Header.Set(idHeader, id)
		return nil
	}
}

func (t *tracker) RoundTrip(r *http.Request) (*http.Response, error) {
	id := r.Header.Get(idHeader)
	seq, _ := strconv.ParseUint(r.Header.Get(seqHeader), 10, 64)
	t.mu.Lock()
	answer := Answer{Order: t.made[id], Sent: time.Now()}
	delete(t.made, id)
	t.mu.Unlock()
	r = r.Clone(r.Context())
	r.Header.Del(idHeader)
	sentOnce(r)
	response, err := t.transport.RoundTrip(r)
	answer.Err = err
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent[seq] = answer
	return response, err
}

func (t *tracker) CloseIdleConnections() { t.transport.CloseIdleConnections() }

// take returns what was sent under vegeta's number.
func (t *tracker) take(seq uint64) (Answer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	answer, ok := t.sent[seq]
	delete(t.sent, seq)
	return answer, ok
}
