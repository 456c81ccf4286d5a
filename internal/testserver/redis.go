package testserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"stocklock/internal/redisconn"
)

// Redis is a private redis-server without persistence: what it forgets when it is
// killed is what a real one may have failed to write.
type Redis struct {
	*Process
	Addr   string           // host:port
	Client redisconn.Client // for looking and commanding, until the group is closed
	bus    string           // the port on which nodes of a Cluster talk to each other
}

// URL is the address in the form that clients take.
func (s *Redis) URL() string { return "redis://" + s.Addr }

// RedisOptions is how a Redis server starts. The zero value is a primary.
type RedisOptions struct {
	ReplicaOf *Redis   // follow this one
	Cluster   bool     // be a node of a Redis Cluster, from Redis 7 on
	Args      []string // more of redis-server's own options
}

// Redis starts a redis-server and waits until it answers, and, as a replica, until it is in sync.
func (g *Group) Redis(ctx context.Context, o RedisOptions) (*Redis, error) {
	program, err := g.RedisProgram, error(nil)
	if program == "" {
		program, err = find("Redis", "install it with: apt-get install redis-server, or: brew install redis", "redis-server", "valkey-server")
	}
	if err != nil {
		return nil, err
	}
	dir, err := g.Folder("redis")
	if err != nil {
		return nil, err
	}
	server := &Redis{}
	err = g.WithPort(func(port int) error {
		server.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if server.Client, err = redisconn.Open(server.URL()); err != nil {
			return err
		}
		if err := g.OnClose(server.Client.Close); err != nil {
			return err
		}
		args := []string{
			program, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no", "--daemonize", "no", "--repl-diskless-sync-delay", "0",
		}
		if o.Cluster {
			bus, err := g.FreePort() // the usual one, 10,000 above, can be taken
			if err != nil {
				return err
			}
			server.bus = strconv.Itoa(bus)
			args = append(args, "--cluster-enabled", "yes", "--cluster-port", server.bus)
		}
		args = append(args, o.Args...)
		server.Process = &Process{Program: Program{Name: "redis-server " + server.Addr, Args: args, Dir: dir, Ready: server.answers}}
		return g.Launch(ctx, server.Process)
	})
	if err == nil && o.ReplicaOf != nil {
		err = server.Follow(ctx, o.ReplicaOf.Addr)
	}
	return server, err
}

// answers wants an answer of this very process: after a restart somebody else may have its port.
func (s *Redis) answers(ctx context.Context) error {
	// The client tries an address again and again before it says that nobody listens there.
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return err
	}
	conn.Close()
	info, err := s.Client.Do(ctx, "INFO", "server").Info()
	if err != nil {
		return err
	}
	if info["process_id"] != strconv.Itoa(s.PID()) {
		return fmt.Errorf("another Redis answers at %s", s.Addr)
	}
	return s.Client.Do(ctx, "PING").Err // an error while it loads
}

// Follow makes the server a replica of the primary at addr and waits until it is in sync.
func (s *Redis) Follow(ctx context.Context, addr string) error {
	host, port, _ := net.SplitHostPort(addr)
	if err := s.Client.Do(ctx, "REPLICAOF", host, port).Err; err != nil {
		return fmt.Errorf("testserver: %s: follow %s: %w", s.Name, addr, err)
	}
	return s.await(ctx, "in sync with "+addr, func() (bool, error) {
		role, err := s.Client.Do(ctx, "ROLE").Slice()
		if is := len(role) > 3 && role[3] == "connected"; is || err != nil {
			return is, err
		}
		return false, fmt.Errorf("its role is %v", role)
	})
}

// Save writes what the server has to its disk: it still has that after a kill and a restart.
func (s *Redis) Save(ctx context.Context) error {
	if err := s.Client.Do(ctx, "SAVE").Err; err != nil {
		return fmt.Errorf("testserver: save %s: %w", s.Name, err)
	}
	return nil
}

// Forget takes from a server that has ended what Save wrote.
func (s *Redis) Forget() error { return os.RemoveAll(filepath.Join(s.Dir, "dump.rdb")) }

// Promote makes a replica a primary, with what it has.
func (s *Redis) Promote(ctx context.Context) error {
	if err := s.Client.Do(ctx, "REPLICAOF", "NO", "ONE").Err; err != nil {
		return fmt.Errorf("testserver: promote %s: %w", s.Name, err)
	}
	return nil
}

// Reads counts how often the server has read from its clients: once for each request
// or pipeline of requests.
func (s *Redis) Reads(ctx context.Context) (int64, error) {
	info, err := s.Client.Do(ctx, "INFO", "stats").Info()
	if err != nil {
		return 0, fmt.Errorf("testserver: ask %s for its count of requests: %w", s.Name, err)
	}
	reads, err := strconv.ParseInt(info["total_reads_processed"], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("testserver: %s counts no requests: %w", s.Name, err)
	}
	return reads, nil
}

var sharedRedis = sync.OnceValues(func() (*Redis, error) {
	g, err := shared()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return g.Redis(ctx, RedisOptions{})
})

// RedisAddr returns the address, host:port, of the binary's Redis. It is emptied first: tests that
// use it do not run in parallel. A missing server fails the test and says what to install.
func RedisAddr(t testing.TB) string {
	t.Helper()
	NeedsServers(t)
	server, err := sharedRedis()
	if err != nil {
		t.Fatalf("testserver: Redis: %v", err)
	}
	if err := server.Client.Do(t.Context(), "FLUSHALL").Err; err != nil {
		t.Fatalf("testserver: Redis: %v", err)
	}
	return server.Addr
}
