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
	"testing"
	"time"
)

// TestSlowReadersHoldNoPlaces has more connections than there are places ask for more than their
// buffers hold, and read nothing. Others are served meanwhile. Each connection is closed when its
// answer was not read in time.
func TestSlowReadersHoldNoPlaces(t *testing.T) {
	const places, readers = 3, 12
	s := open(t, func(c *Config) { c.MaxInFlight = places })
	for range 500 {
		if _, err := s.store.CreateItem(t.Context(), strings.Repeat("x", 100), 1); err != nil {
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
	if taken := s.inFlight.Load(); taken != 0 {
		t.Errorf("%d places are taken while nothing but answers is written", taken)
	}
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

// TestAnAnswerHasItsWholeTime sells on one connection for longer than an answer may take: neither
// the sale nor the answer before it takes time away from an answer.
func TestAnAnswerHasItsWholeTime(t *testing.T) {
	s := open(t, func(c *Config) { c.Deps.Wait = time.Minute })
	item := s.item(2)
	conn := s.dial()
	answers := bufio.NewReader(conn)
	for _, sleep := range []time.Duration{0, answerTimeout + time.Second} {
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n%s: read %s\r\nContent-Length: 14\r\n\r\n{\"quantity\":1}",
			ordersPath(item), sleepHeader, sleep)
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("after %s: %v", sleep, err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusCreated {
			t.Errorf("after %s: %s, %v", sleep, response.Status, err)
		}
	}
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
