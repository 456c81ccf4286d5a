package testserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Ports are taken from below what Linux and macOS lend to outgoing connections, so that a server
// that is down for a moment finds its own port free when it comes back. The tests of the lock, which
// are copied without this package, take theirs from below these.
const firstPort, lastPort = 22_500, 32_000

// marks are sockets of UDP with the numbers of the ports that this process was given. They last until it
// ends, and keep the ports from other processes that use this package while a server is down, or not yet
// up. Two servers that start at once must not look at one port before either listens: the second one
// would take the first one's answers for its own.
var marks sync.Map

// FreePort finds a loopback port that nobody listens on, each port once. Between this look and the
// server's own listen another program can take it: see [WithPort].
func FreePort() (int, error) {
	const tries = 100
	for try := 1; ; try++ {
		port, err := reserve(firstPort + rand.IntN(lastPort-firstPort))
		if err == nil {
			return port, nil
		}
		if try == tries {
			return 0, fmt.Errorf("testserver: find a free port: %w", err)
		}
	}
}

// reserve makes a port this process's. It fails if it is one's already, or somebody listens there.
func reserve(port int) (int, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	mark, err := net.ListenPacket("udp", address)
	if err != nil {
		return 0, err
	}
	marks.Store(port, mark)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return 0, err
	}
	return port, l.Close()
}

// WithPort starts a server on a free port, and tries others when it does not come up.
func WithPort(start func(port int) error) error {
	const tries = 3
	for try := 1; ; try++ {
		port, err := FreePort()
		if err != nil {
			return err
		}
		err = start(port)
		var failed *startError
		if err == nil || try == tries || !errors.As(err, &failed) {
			return err
		}
	}
}

// ErrMissing: a program that a server needs is not installed.
var ErrMissing = errors.New("not installed")

// elsewhere is where servers are installed outside of the PATH.
var elsewhere = []string{"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/opt/homebrew/bin", "/usr/local/bin"}

// find looks for the first of several programs on the PATH and elsewhere.
func find(what, install string, programs ...string) (string, error) {
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
		for _, dir := range elsewhere {
			path := filepath.Join(dir, program)
			if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is %w: no %s found; %s", what, ErrMissing, strings.Join(programs, " or "), install)
}
