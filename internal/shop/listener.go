package shop

import (
	"net"
	"net/http"
	"sync/atomic"
)

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
