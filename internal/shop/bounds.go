package shop

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/semaphore"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// requestMargin is the default of the time until the write begins, besides the wait for the lock. It is for the
// wait for a connection, and for the read.
const requestMargin = 5 * time.Second

// errOverdue ends a request that took too long before it wrote anything.
var errOverdue = refusal{Unavailable, "the request took too long before anything was written: nothing was done"}

// slots are for requests under way. Sales, reads, changes by staff and payments have slots apart, so none takes
// the places of others.
type slots struct {
	*semaphore.Weighted
	waiting atomic.Int64 // requests in the queue for a slot
}

func newSlots(most int64) *slots { return &slots{Weighted: semaphore.NewWeighted(most)} }

// maxReads is how many reads may be under way. Of a pool of four or more, a quarter is left to sales.
func (s *Shop) maxReads() int64 {
	return max(1, min(s.MaxInFlight, int64(s.store.Pool().Stats().MaxOpenConnections)/4))
}

// inSlot runs fn in a slot. The slot is free as soon as fn has returned, so a client that reads its
// answer slowly holds none.
func inSlot[T any](s *Shop, c *gin.Context, of *slots, fn func(ctx context.Context) (T, error)) (result T, err error) {
	if err := s.enter(c, of); err != nil {
		return result, err
	}
	defer s.leave(of)
	return inTime(s, c, fn)
}

// inTime runs fn with the request's deadline. A write that has begun does not end with it, and fn
// returns after the write.
//
// A client that has closed its side of the connection may still read the answer. Only a sale that
// has to wait ends with its client, so that a crowd that has left costs no work.
func inTime[T any](s *Shop, c *gin.Context, fn func(ctx context.Context) (T, error)) (result T, err error) {
	client := c.Request.Context()
	ctx, end := context.WithTimeoutCause(requestContext{s.serving, client}, s.Deps.Wait+s.RequestMargin+s.ExtraTime, errOverdue)
	defer end()
	stop := func() bool { return true }
	defer func() { stop() }()
	ctx = sale.WithHook(ctx, func(_ context.Context, p sale.Point, _ []slog.Attr) {
		if p == sale.Waiting {
			stop = context.AfterFunc(client, end)
		}
	})
	result, err = fn(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errOverdue) && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, stock.ErrUnknown) {
		err = errOverdue
	}
	return result, err
}

// requestContext ends when the sales under way are to end, and has the values of a request.
type requestContext struct {
	context.Context
	request context.Context
}

// Value looks into the request last, because the package context finds the parent of a context by one.
func (c requestContext) Value(key any) any {
	if value := c.Context.Value(key); value != nil {
		return value
	}
	return c.request.Value(key)
}

// enter takes a slot. In a crowd it waits for one for a short time. It sheds load before that costs
// memory, because a request that waits for a lock or a connection keeps its buffers. A request with
// a body enters after the body was read, so slow senders take no slots.
func (s *Shop) enter(c *gin.Context, of *slots) error {
	if p, ok := c.Request.Context().Value(placeKey{}).(*place); ok && !p.received() {
		panic(http.ErrAbortHandler) // the connection made room for another one: nobody would get the answer
	}
	if !of.TryAcquire(1) {
		if err := s.waitForSlot(c, of); err != nil {
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

// waitForSlot waits in a queue, which is as long as there are slots for sales. The first request gets the
// next slot. If the queue is full, a request is rejected at once, and is the last on its connection.
//
// Clients in a loop ignore Retry-After. After an immediate rejection they would return immediately,
// and the rejections would use the processor time that sales need. A new connection takes them longer.
func (s *Shop) waitForSlot(c *gin.Context, of *slots) error {
	defer of.waiting.Add(-1)
	if of.waiting.Add(1) > s.MaxInFlight {
		c.Header("Connection", "close")
		return errCrowded
	}
	ctx, cancel := context.WithTimeoutCause(c.Request.Context(), leastRejection+rand.N(mostRejection-leastRejection), errCrowded)
	defer cancel()
	if err := of.Acquire(ctx, 1); err != nil {
		if errors.Is(context.Cause(ctx), errCrowded) {
			return errCrowded
		}
		return err // the client has gone, or the shop ends
	}
	return nil
}

func (s *Shop) leave(of *slots) {
	s.inFlight.Add(-1)
	of.Release(1)
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
		// The one error there is: a writer without deadlines, as tests have.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.timeout))
	}
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

// keptForProbes is how many connections may be open above the bound. On them, only probes are
// answered.
const keptForProbes = 8

// boundedListener bounds the connections. At the bound, a new connection replaces the one without a
// request for longest, or else the one that is sending its request for longest. If the request of each has
// come, a new one gets a place that is kept for probes. If there is none, it is closed immediately: the
// client learns it sooner than in the backlog, and a balancer tries another shop.
//
// The server counts: [boundedListener.count] is its ConnState. A wrapper around each connection
// would hide the TCP connection, of which the server can close one half.
type boundedListener struct {
	net.Listener
	most int64

	mu      sync.Mutex
	open    map[net.Conn]*place // guarded by mu
	kept    int64               // guarded by mu: those of open that are for probes
	idle    list.List           // guarded by mu: connections without a request, the longest first
	sending list.List           // guarded by mu: connections whose request has begun to come, the longest first
}

// place is an open connection.
type place struct {
	of        *boundedListener
	forProbes bool
	in        *list.List    // idle or sending; nil for one whose request has come
	at        *list.Element // in it
	replaced  bool
}

// move puts the connection at the end of a list, or into none.
func (p *place) move(conn net.Conn, to *list.List) {
	if p.in != nil {
		p.in.Remove(p.at)
	}
	if p.in = to; to != nil {
		p.at = to.PushBack(conn)
	}
}

// received notes that the request has come. It reports false if the connection was replaced before that.
func (p *place) received() bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.in == &p.of.sending {
		p.move(nil, nil)
	}
	return !p.replaced
}

// Accept returns the next connection within the bound.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.admit(conn) {
			return conn, err
		}
		_ = conn.Close()
	}
}

func (l *boundedListener) admit(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := func() bool { return int64(len(l.open))-l.kept >= l.most }
	for _, may := range []*list.List{&l.idle, &l.sending} {
		if longest := may.Front(); full() && longest != nil {
			old := longest.Value.(net.Conn)
			l.open[old].replaced = true
			l.remove(old)
			_ = old.Close()
		}
	}
	if full() && l.kept >= keptForProbes {
		return false
	}
	p := &place{of: l, forProbes: full()}
	p.move(conn, &l.idle)
	l.open[conn] = p
	if p.forProbes {
		l.kept++
	}
	return true
}

// remove forgets a connection.
func (l *boundedListener) remove(conn net.Conn) {
	if p := l.open[conn]; p != nil {
		delete(l.open, conn)
		if p.forProbes {
			l.kept--
		}
		p.move(nil, nil)
	}
}

func (l *boundedListener) count(conn net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.open[conn]
	switch {
	case state == http.StateClosed:
		l.remove(conn)
	case p == nil: // it was replaced
	case state == http.StateActive:
		p.move(conn, &l.sending)
	case state == http.StateIdle:
		p.move(conn, &l.idle)
	}
}

// placeKey is the key of a connection's place.
type placeKey struct{}

// context is the server's ConnContext.
func (l *boundedListener) context(ctx context.Context, conn net.Conn) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.open[conn]; p != nil {
		return context.WithValue(ctx, placeKey{}, p)
	}
	return ctx
}

// keepForProbes is a middleware that answers only probes on the places that are kept for them.
func (s *Shop) keepForProbes(c *gin.Context) {
	if p, ok := c.Request.Context().Value(placeKey{}).(*place); !ok || !p.forProbes {
		return
	}
	c.Header("Connection", "close")
	if path := c.FullPath(); path != "/livez" && path != "/readyz" {
		s.fail(c, errFull)
	}
}
