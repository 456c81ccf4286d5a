package testserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below what Linux and macOS lend to outgoing connections, so that a server
// that is down for a moment finds its own port free when it comes back. The tests of the lock, which
// are copied without this package, take theirs from below these.
const firstPort, lastPort = 22_500, 32_000

// FreePort finds a loopback port that nobody listens on. It is the group's until the group has ended its
// processes. Between this look and the server's own listen another program can take it: see [Group.WithPort].
func (g *Group) FreePort() (int, error) {
	const tries = 100
	for try := 1; ; try++ {
		port := firstPort + rand.IntN(lastPort-firstPort)
		mark, err := reserve(port)
		if err == nil {
			if err = g.OnClose(mark.Close); err != nil {
				mark.Close()
			}
			return port, err
		}
		if try == tries {
			return 0, fmt.Errorf("testserver: find a free port: %w", err)
		}
	}
}

// reserve marks a port as its group's with a socket of UDP of that number. It keeps the port from other groups,
// also of other processes, while a server is down, or not yet up. Two servers that start at once must not look at one
// port before either listens: the second one would take the first one's answers for its own. It fails if the
// port is a group's already, or somebody listens there.
func reserve(port int) (mark net.PacketConn, err error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if mark, err = net.ListenPacket("udp", address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		mark.Close()
	}
	return mark, err
}

// WithPort starts a server on a free port, and tries others when it does not come up.
func (g *Group) WithPort(start func(port int) error) error {
	const tries = 3
	for try := 1; ; try++ {
		port, err := g.FreePort()
		if err != nil {
			return err
		}
		err = start(port)
		if _, failed := errors.AsType[*startError](err); !failed || try == tries {
			return err
		}
	}
}
