package shop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSlowReadersHoldNoSlots has more connections than there are slots ask for more than their
// buffers hold, and read nothing. Others are served meanwhile. Each connection is closed when its
// answer was not read in time.
func TestSlowReadersHoldNoSlots(t *testing.T) {
	const slots, readers = 2, 4
	s := open(t, func(c *Config) { c.MaxInFlight = slots })
	for range 500 { // a < has six bytes in JSON: large answers fill the buffers soon
		if _, err := s.store.CreateItem(t.Context(), strings.Repeat("<", 100), 1); err != nil {
			t.Fatal(err)
		}
	}
	item := s.item(100)
	blocked := func() int { return strings.Count(goroutines(), "boundedWriter).Write") }
	var slow []net.Conn
	for len(slow) < readers {
		conn := s.dial()
		if err := conn.(*net.TCPConn).SetReadBuffer(2 << 10); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
		// The buffers may hold one answer, and not a hundred.
		if _, err := io.WriteString(conn, strings.Repeat("GET /api/v1/items?limit=500 HTTP/1.1\r\nHost: shop\r\n\r\n", 100)); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "an answer to wait for its reader", func() bool { return blocked() == len(slow) })
	}
	began := time.Now()
	waitFor(t, "no slot to be taken while nothing but answers is written", func() bool { return s.inFlight.Load() == 0 && blocked() == readers })
	for range 10 {
		if got := s.buy(item); got.status != http.StatusCreated {
			t.Errorf("a sale among slow readers: %d %s", got.status, got.body)
		}
		if got := s.get("/api/v1/items?limit=500"); got.status != http.StatusOK {
			t.Errorf("a look among slow readers: %d %s", got.status, got.body)
		}
	}
	waitFor(t, "the shop to give up its answers", func() bool { return blocked() == 0 })
	if took := time.Since(began); took < answerTimeout/2 || took > answerTimeout+5*time.Second {
		t.Errorf("the slow readers were kept for %s, want %s", took, answerTimeout)
	}
	for _, conn := range slow {
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a slow reader's connection was not closed")
		}
	}
}

// TestAnAnswerHasItsWholeTime orders on connections whose last answer, or whose request, is older than
// an answer may take: neither takes time away from what the shop writes.
func TestAnAnswerHasItsWholeTime(t *testing.T) {
	s := open(t, func(c *Config) { c.Deps.Wait = time.Minute })
	item := s.item(4)
	const late = answerTimeout + time.Second
	var ordering sync.WaitGroup
	for name, slow := range map[string]struct{ pause, sale time.Duration }{"an idle connection": {pause: late}, "a slow sale": {sale: late}} {
		conn := s.dial()
		_ = conn.SetReadDeadline(time.Now().Add(4 * late))
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
				t.Errorf("%s: answered %d before the body was sent, want 100", name, status)
			}
			fmt.Fprint(conn, `{"quantity":1}`)
			if status := next(); status != http.StatusCreated {
				t.Errorf("%s: answered %d, want 201", name, status)
			}
		}
		ordering.Go(func() {
			order(0)
			time.Sleep(slow.pause)
			order(slow.sale)
		})
	}
	ordering.Wait()
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
	waitFor(t, "five connections", func() bool {
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
	waitFor(t, "another to be accepted", func() bool { return !closedAtOnce(s.dial()) })
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
