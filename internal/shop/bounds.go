package shop

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
)

// requestMargin is the default of the time until the write begins, besides the wait for the lock. It is for the
// wait for a connection, and for the read.
const requestMargin = 5 * time.Second

// errOverdue ends a request that took too long before it wrote anything.
var errOverdue = refusal{Unavailable, "the request took too long before anything was written: nothing was done"}

// inSlot runs fn in one of the shop's slots for requests. The slot is free as soon as fn has
// returned, so a client that reads its answer slowly holds none.
func inSlot[T any](s *Shop, c *gin.Context, fn func(ctx context.Context) (T, error)) (result T, err error) {
	if err := s.enter(c); err != nil {
		return result, err
	}
	defer s.leave()
	return inTime(s, c, fn)
}

// inTime runs fn with the request's deadline. A write that has begun does not end with it, and fn
// returns after the write.
func inTime[T any](s *Shop, c *gin.Context, fn func(ctx context.Context) (T, error)) (result T, err error) {
	ctx, cancel := context.WithTimeoutCause(c.Request.Context(), s.Deps.Wait+s.RequestMargin+s.ExtraTime, errOverdue)
	defer cancel()
	result, err = fn(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errOverdue) && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, stock.ErrUnknown) {
		err = errOverdue
	}
	return result, err
}

// enter takes a slot. In a crowd it waits for one for a short time. It sheds load before that costs
// memory, because a request that waits for a lock or a connection keeps its buffers. A request with
// a body enters after the body was read, so slow senders take no slots.
func (s *Shop) enter(c *gin.Context) error {
	if !s.slots.TryAcquire(1) {
		if err := s.waitForSlot(c); err != nil {
			return err
		}
	}
	s.inFlight.Add(1)
	return nil
}

// How long a request waits for a slot before it is rejected. The times differ, so that a crowd
// does not return at once.
const (
	leastRejection = 400 * time.Millisecond
	mostRejection  = 500 * time.Millisecond
)

// waitForSlot waits in a queue, which is as long as there are slots. The first request gets the
// next slot. If the queue is full, the connection of a request is closed without an answer.
//
// Clients in a loop ignore Retry-After. After an immediate rejection they would return immediately,
// and the rejections would use the processor time that sales need.
func (s *Shop) waitForSlot(c *gin.Context) error {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > s.MaxInFlight {
		c.Set(outcomeKey, outcomeClosed)
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithTimeoutCause(c.Request.Context(), leastRejection+rand.N(mostRejection-leastRejection), errCrowded)
	defer cancel()
	if err := s.slots.Acquire(ctx, 1); err != nil {
		if errors.Is(context.Cause(ctx), errCrowded) {
			return errCrowded
		}
		return err // the client has gone, or the shop ends
	}
	return nil
}

func (s *Shop) leave() {
	s.inFlight.Add(-1)
	s.slots.Release(1)
}

// boundAnswer is a middleware that bounds the time to write an answer, from its first byte.
func (s *Shop) boundAnswer(c *gin.Context) {
	w := &boundedWriter{ResponseWriter: c.Writer, timeout: s.AnswerTimeout}
	c.Writer = w
	c.Next()
	w.begin() // an answer without a body is written after the handlers
}

// boundedWriter sets the connection's write deadline when the answer begins.
type boundedWriter struct {
	gin.ResponseWriter
	timeout time.Duration
	begun   bool
}

func (w *boundedWriter) begin() {
	if !w.begun {
		w.begun = true
		w.setDeadline(time.Now().Add(w.timeout))
	}
}

// setDeadline ignores the one error there is: a writer without deadlines, as tests have.
func (w *boundedWriter) setDeadline(t time.Time) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

func (w *boundedWriter) WriteString(s string) (int, error) {
	w.begin()
	return w.ResponseWriter.WriteString(s)
}

func (w *boundedWriter) WriteHeaderNow() {
	w.begin()
	w.ResponseWriter.WriteHeaderNow()
}

// Unwrap is for [http.ResponseController].
func (w *boundedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// boundedListener bounds the connections. It immediately closes a connection above the bound. The
// client learns it sooner than in the backlog, and a balancer tries another shop.
//
// The server counts: [boundedListener.count] is its ConnState. A wrapper around each connection
// would hide the TCP connection, of which the server can close one half.
type boundedListener struct {
	net.Listener
	most int64
	open atomic.Int64
}

// Accept returns the next connection within the bound.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.open.Load() < l.most {
			return conn, err
		}
		_ = conn.Close()
	}
}

func (l *boundedListener) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew: // by the goroutine that accepts, before it accepts the next one
		l.open.Add(1)
	case http.StateClosed:
		l.open.Add(-1)
	}
}
