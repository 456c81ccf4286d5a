package shop

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestSlowReadersKeepNothing has connections with a small receive buffer that ask for pages of 500
// items, many at a time, and read none. They hold no place, and are closed when an answer's time is
// over.
func TestSlowReadersKeepNothing(t *testing.T) {
	const readers, pages = 60, 30
	s := open(t, func(c *Config) { c.MaxInFlight = readers / 3 })
	for range 500 {
		if _, err := s.store.CreateItem(t.Context(), strings.Repeat("x", 100), 1); err != nil {
			t.Fatal(err)
		}
	}
	item := s.item(1000)
	began := time.Now()
	for range readers {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(2 << 10); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, strings.Repeat("GET /api/v1/items?limit=500 HTTP/1.1\r\nHost: shop\r\n\r\n", pages))
	}
	writing := func() int { return strings.Count(goroutines(), "boundedWriter).Write(") }
	waitFor(t, "the answers to wait for their readers", func() bool { return writing() > readers/2 })
	for range 20 {
		if got := s.buy(item); got.status != 201 {
			t.Errorf("a sale beside slow readers: %d %s", got.status, got.body)
		}
	}
	if writing() <= readers/2 {
		t.Error("the readers were gone before the sales: this test has shown nothing")
	}
	waitFor(t, "the slow readers to be disconnected", func() bool { return writing() == 0 })
	if took := time.Since(began); took > 3*answerTimeout {
		t.Errorf("slow readers were disconnected only after %s, want about %s", took, answerTimeout)
	}
}
