package redislock

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// testServer is a redis-server of the test's own.
type testServer struct {
	addr string
	dir  string
	env  []string
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// keeper is a shell that ends the server when the other end of its pipe is closed, and so also when
// the test is killed. For each line it kills the server and starts it anew, on the line "empty"
// without its data.
const keeper = `while :; do
	"$@" >>log 2>&1 &
	server=$!
	read -r line; more=$?
	kill -s KILL $server; wait $server 2>/dev/null
	if [ $more != 0 ]; then rm -rf "$PWD"; exit; fi
	if [ "$line" = empty ]; then rm -rf appendonlydir dump.rdb; fi
done`

// needsServer skips a test that starts servers where only the quick ones are asked for.
func needsServer(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers: not run with -short")
	}
}

// serverProgram is a redis-server, or Valkey's.
func serverProgram() (string, error) {
	if program, err := exec.LookPath("redis-server"); err == nil {
		return program, nil
	}
	return exec.LookPath("valkey-server")
}

// startServer starts a redis-server without persistence, with these variables in its environment; args come
// last, and so count.
func startServer(env []string, args ...string) (*testServer, error) {
	s, port, err := newServerDir()
	if err != nil {
		return nil, err
	}
	s.env = env
	all := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}
	program, err := serverProgram()
	if err != nil {
		return nil, err
	}
	if version, err := exec.Command(program, "--version").Output(); err == nil && !bytes.Contains(version, []byte("v=6.")) {
		all = append(all, "--enable-debug-command", "yes") // before version 7 it always was
	}
	return s, s.run(append(all, args...)...)
}

// ownServer starts one for a test, and connects to it.
func ownServer(t testing.TB, args ...string) (*testServer, *redis.Client) {
	t.Helper()
	needsServer(t)
	s, err := startServer(nil, args...)
	must(t, err)
	t.Cleanup(s.stop)
	client, _ := newClient(t, s.addr)
	return s, client
}

// Each server of these tests has a port of its own. The port of a Cluster's bus lies 10,000 above it.
const firstPort, ports = 10_000, 2_500

var nextPort atomic.Int32

// newServerDir chooses a port that is not lent to connections, so that it is still free after a
// restart.
func newServerDir() (s *testServer, port string, err error) {
	for nextPort.CompareAndSwap(0, rand.Int32N(ports)); ; {
		n := firstPort + int(nextPort.Add(1)%ports)
		if !isFree(n) || !isFree(n+10000) {
			continue
		}
		port = strconv.Itoa(n)
		dir, err := os.MkdirTemp("", "redislock-test-*")
		return &testServer{addr: net.JoinHostPort("127.0.0.1", port), dir: dir}, port, err
	}
}

// marks keep ports from other processes of these tests while a server is down.
var marks sync.Map

func isFree(port int) bool {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	mark, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	marks.Store(port, mark)
	listener, err := net.Listen("tcp", address)
	if err == nil {
		listener.Close()
	}
	return err == nil
}

func (s *testServer) run(args ...string) error {
	program, err := serverProgram()
	if err != nil {
		return err
	}
	s.cmd = exec.Command("/bin/sh", append([]string{"-c", keeper, "keeper", program}, args...)...)
	s.cmd.Dir = s.dir
	s.cmd.Env = append(os.Environ(), s.env...)
	if s.pipe, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return s.awaken("")
}

// awaken waits until the server answers, and is another one than that with this run id.
func (s *testServer) awaken(before string) error {
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer client.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if now := runID(client); now != "" && now != before {
			return nil
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("redis-server does not answer: %s", log)
		}
	}
}

// restart kills the server and starts it again. With appendonly it keeps its data, unless
// that is to be lost.
func (s *testServer) restart(t testing.TB, keepData bool) {
	t.Helper()
	client, _ := newClient(t, s.addr)
	before := runID(client)
	_, err := fmt.Fprintln(s.pipe, map[bool]string{true: "keep", false: "empty"}[keepData])
	must(t, err)
	must(t, s.awaken(before))
}

// runID is another one for each start of a server, and empty while it does not answer.
func runID(client *redis.Client) string {
	if client.Ping(context.Background()).Err() != nil { // also while it loads
		return ""
	}
	return client.InfoMap(context.Background(), "server").Item("Server", "run_id")
}

func (s *testServer) stop() {
	s.pipe.Close()
	s.cmd.Wait()
}
