package shop

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/stalltest"
	"stocklock/internal/testserver"
)

// TestSlowReadersHoldNoSlots has more connections than there are slots ask for more than their
// buffers hold, and read nothing. Others are served meanwhile.
func TestSlowReadersHoldNoSlots(t *testing.T) {
	const slots, readers = 2, 4
	s := open(t, func(c *Config) { c.MaxInFlight, c.AnswerTimeout = slots, time.Hour })
	item := s.item(100)
	s.manyItems()
	blocked := func() int { return strings.Count(goroutines(), "boundedWriter).Write") }
	for n := range readers {
		s.readSlowly()
		testserver.Await(t, "an answer to wait for its reader", func() bool { return blocked() == n+1 })
	}
	testserver.Await(t, "no slot to be taken while nothing but answers is written", func() bool { return s.inFlight.Load() == 0 && blocked() == readers })
	for range 10 {
		if got := s.buy(item); got.status != http.StatusCreated {
			t.Errorf("a sale among slow readers: %d %s", got.status, got.body)
		}
		if got := s.get("/api/v1/items?limit=500"); got.status != http.StatusOK {
			t.Errorf("a look among slow readers: %d %s", got.status, got.body)
		}
	}
}

// TestAnAnswerThatIsNotReadInTimeIsGivenUp: the shop closes the connection, and with it ends what the
// client sends.
func TestAnAnswerThatIsNotReadInTimeIsGivenUp(t *testing.T) {
	s := open(t, func(c *Config) { c.AnswerTimeout = 100 * time.Millisecond })
	s.manyItems()
	conn := s.readSlowly()
	testserver.Await(t, "the connection to be closed", func() bool {
		_, err := io.WriteString(conn, "\r\n")
		return err != nil
	})
}

// manyItems makes the list of items longer than the buffers of a connection are: a < has six bytes
// in JSON.
func (r *running) manyItems() {
	r.t.Helper()
	rows := "(REPEAT('<', 100), 1)"
	if _, err := r.store.Pool().ExecContext(r.t.Context(), "INSERT INTO items (name, stock) VALUES "+rows+strings.Repeat(", "+rows, 499)); err != nil {
		r.t.Fatal(err)
	}
}

// readSlowly asks for the list of items on a connection of which nothing is read.
func (r *running) readSlowly() net.Conn {
	r.t.Helper()
	conn := r.dial()
	if err := conn.(*net.TCPConn).SetReadBuffer(2 << 10); err != nil {
		r.t.Fatal(err)
	}
	// The buffers may hold one answer, and not a hundred.
	if _, err := io.WriteString(conn, strings.Repeat("GET /api/v1/items?limit=500 HTTP/1.1\r\nHost: shop\r\n\r\n", 100)); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// TestAnAnswerHasItsWholeTime orders on connections whose last answer, or whose request, is older than
// an answer may take: neither takes time away from what the shop writes.
func TestAnAnswerHasItsWholeTime(t *testing.T) {
	const bound, late = time.Second, 1100 * time.Millisecond
	stalls := stalltest.Start(t)
	wrong := make(chan string, 8)
	s := open(t, func(c *Config) { c.AnswerTimeout, c.Deps.Wait = bound, time.Minute })
	item := s.item(4)
	var ordering sync.WaitGroup
	for name, slow := range map[string]struct{ pause, sale time.Duration }{"an idle connection": {pause: late}, "a slow sale": {sale: late}} {
		conn := s.dial()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		answers := bufio.NewReader(conn)
		next := func() (status int) {
			if response, err := http.ReadResponse(answers, nil); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				status = response.StatusCode
			}
			return status
		}
		order := func(sleep time.Duration) {
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n%s: read %s\r\nContent-Length: 14\r\n\r\n",
				ordersPath(item), sleepHeader, sleep)
			if status := next(); status != http.StatusContinue {
				wrong <- fmt.Sprintf("%s: answered %d before the body was sent, want 100", name, status)
			}
			fmt.Fprint(conn, `{"quantity":1}`)
			if status := next(); status != http.StatusCreated {
				wrong <- fmt.Sprintf("%s: answered %d, want 201", name, status)
			}
		}
		ordering.Go(func() {
			order(0)
			time.Sleep(slow.pause)
			order(slow.sale)
		})
	}
	ordering.Wait()
	if len(wrong) > 0 {
		stalls.Fatalf(bound/2, "%s", <-wrong)
	}
}

// TestConnectionsAreBounded opens more idle connections than there may be. One more is closed, the
// internal listener still answers probes, and when one has gone another is accepted.
func TestConnectionsAreBounded(t *testing.T) {
	s := open(t, func(c *Config) { c.MaxConnections = 5 })
	browser.CloseIdleConnections()
	closedAtOnce := func(conn net.Conn) bool {
		_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		timeout, ok := err.(net.Error)
		return !ok || !timeout.Timeout()
	}
	var inside []net.Conn
	testserver.Await(t, "five connections", func() bool {
		conn := s.dial()
		if !closedAtOnce(conn) {
			inside = append(inside, conn)
		}
		return len(inside) == 5
	})
	if !closedAtOnce(s.dial()) {
		t.Error("a sixth connection stays open")
	}
	for _, probe := range []string{"/livez", "/readyz"} {
		if got, err := send(t.Context(), "GET", s.internal+probe, "", nil); err != nil || got.status != 200 {
			t.Errorf("%s on the internal listener: %d, %v", probe, got.status, err)
		}
	}
	_ = inside[0].Close()
	testserver.Await(t, "another to be accepted", func() bool { return !closedAtOnce(s.dial()) })
}

// dial opens a connection to the public listener, which ends with the test.
func (r *running) dial() net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}
