package shop

import (
	"net"
	"testing"
	"time"
)

// TestConnectionsAreBounded opens more idle connections than there may be. One more is closed, the
// internal listener still answers probes, and when one has gone there is room again.
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
	waitFor(t, "room for another", func() bool { return !closedAtOnce(s.dial()) })
}
