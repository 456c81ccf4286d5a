package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"stocklock/internal/strategy"
)

const defaultStrategy = "fenced"

// settings are all that a shop can be told.
type settings struct {
	Addr         string   `env:"SHOP_ADDR" default:"127.0.0.1:8080" help:"Where to listen, host:port. Port 0 takes a free one."`
	InternalAddr string   `env:"SHOP_INTERNAL_ADDR" placeholder:"HOST:PORT" help:"Where operators find /metrics and /debug/pprof. Without it nowhere. Keep it inside."`
	MySQL        string   `name:"mysql" env:"SHOP_MYSQL" placeholder:"DSN" help:"Where MySQL or MariaDB is: user:password@tcp(host:3306)/database. Required."`
	Redis        string   `env:"SHOP_REDIS" placeholder:"URL" help:"Where Redis or Valkey is: redis://user:password@host:6379/0, rediss:// for TLS, ?cluster=true for a node of Redis Cluster, ?master_name=NAME for a Sentinel. Without it redis://127.0.0.1:6379/0."`
	RedisQuorum  []string `env:"SHOP_REDIS_QUORUM" placeholder:"URL" help:"Independent Redis servers for the strategy redlock, separated by commas: three or five."`
	Name         string   `env:"SHOP_NAME" help:"What this process is called in its orders. Without it host-pid."`

	Migrate bool `env:"SHOP_MIGRATE" default:"true" negatable:"" help:"Bring the schema up to date at the start. Without it the shop waits until shop migrate has: its user then needs no right to change the schema."`

	Strategy string        `env:"SHOP_STRATEGY" default:"${strategy}" help:"How sales are protected: ${strategies}."`
	Lease    time.Duration `env:"SHOP_LEASE" default:"10s" help:"How long a lock lives in Redis without renewal."`
	Wait     time.Duration `env:"SHOP_WAIT" default:"5s" help:"How long a sale waits for its lock before it is answered with busy."`
	Retry    time.Duration `env:"SHOP_RETRY" default:"10ms" help:"Pause between two tries of locks that poll."`

	MaxInFlight    int64         `env:"SHOP_MAX_IN_FLIGHT" default:"1000" help:"How many API requests may be under way. More are answered with busy at once."`
	StartupTimeout time.Duration `env:"SHOP_STARTUP_TIMEOUT" default:"30s" help:"How long to wait for MySQL and Redis at the start."`
	DrainDelay     time.Duration `env:"SHOP_DRAIN_DELAY" default:"0s" help:"How long to go on selling after SIGTERM took readiness back: longer than a load balancer needs to notice."`
	DrainTimeout   time.Duration `env:"SHOP_DRAIN_TIMEOUT" default:"10s" help:"How long sales under way may then take to finish."`
	LogLevel       string        `env:"SHOP_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, which has the access log, info, warn or error."`

	Lab            bool          `env:"SHOP_LAB" group:"lab" help:"Obey the X-Lab-* headers, with which every client can choose the strategy and can stop or kill this process."`
	LabAllowRemote bool          `env:"SHOP_LAB_ALLOW_REMOTE" group:"lab" help:"In the lab, listen on an address that others can reach all the same."`
	LabWork        time.Duration `env:"SHOP_LAB_WORK" group:"lab" default:"0s" help:"Work inside every sale, after it has read the stock."`
	LabClockSkew   time.Duration `env:"SHOP_LAB_CLOCK_SKEW" group:"lab" default:"0s" help:"How far the clock of this process is wrong."`
	LabServerClock bool          `env:"SHOP_LAB_SERVER_CLOCK" group:"lab" help:"Let the strategy getset go by the clock of Redis instead of its own."`
	Trace          string        `env:"SHOP_TRACE" group:"lab" placeholder:"FILE" help:"Append what happens in every sale to this file."`
}

var errNoMySQL = usage("SHOP_MYSQL is not set: want user:password@tcp(host:3306)/database")

// check finds settings that cannot be, and fills in what is computed.
func (s *settings) check() error {
	if s.MySQL == "" {
		return errNoMySQL
	}
	if s.Redis == "" {
		s.Redis = "redis://127.0.0.1:6379/0"
	}
	if s.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the host has no name: %w: set --name (SHOP_NAME)", err)
		}
		s.Name = fmt.Sprintf("%.50s-%d", host, os.Getpid())
	}
	for _, d := range []struct {
		name          string
		value, lo, hi time.Duration
	}{
		{"--lease (SHOP_LEASE)", s.Lease, 50 * time.Millisecond, time.Minute},
		{"--wait (SHOP_WAIT)", s.Wait, time.Millisecond, time.Minute},
		{"--retry (SHOP_RETRY)", s.Retry, time.Millisecond, 10 * time.Second},
		{"--startup-timeout (SHOP_STARTUP_TIMEOUT)", s.StartupTimeout, time.Second, time.Hour},
		{"--drain-delay (SHOP_DRAIN_DELAY)", s.DrainDelay, 0, 10 * time.Minute},
		{"--drain-timeout (SHOP_DRAIN_TIMEOUT)", s.DrainTimeout, 0, 10 * time.Minute},
		{"--lab-work (SHOP_LAB_WORK)", s.LabWork, 0, 10 * time.Second},
	} {
		if d.value < d.lo || d.value > d.hi {
			return usage("%s is %s: want %s to %s", d.name, d.value, d.lo, d.hi)
		}
	}
	if s.MaxInFlight < 1 {
		return usage("--max-in-flight (SHOP_MAX_IN_FLIGHT) is %d: want 1 or more", s.MaxInFlight)
	}
	if s.InternalAddr != "" {
		if _, _, err := splitAddr("--internal-addr (SHOP_INTERNAL_ADDR)", s.InternalAddr); err != nil {
			return err
		}
	}
	host, _, err := splitAddr("--addr (SHOP_ADDR)", s.Addr)
	if err != nil {
		return err
	}
	return s.checkLab(host)
}

// splitAddr finds out what can be known to be wrong with an address before it is used.
func splitAddr(name, addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return "", "", usage("%s is %q: want host:port with a port up to 65535, such as 127.0.0.1:8080", name, addr)
	}
	return host, port, nil
}

func (s *settings) checkLab(host string) error {
	if !s.Lab {
		if s.LabAllowRemote || s.LabWork != 0 || s.LabClockSkew != 0 || s.LabServerClock || s.Trace != "" {
			return usage("--lab-* (SHOP_LAB_*) and --trace (SHOP_TRACE) need --lab (SHOP_LAB=true)")
		}
		return nil
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() || s.LabAllowRemote {
		return nil
	}
	return usage("--lab (SHOP_LAB) lets every client kill this process, and --addr (SHOP_ADDR) %s can be reached from outside: "+
		"listen on 127.0.0.1, or add --lab-allow-remote (SHOP_LAB_ALLOW_REMOTE=true)", s.Addr)
}

func (s *settings) options() strategy.Options {
	return strategy.Options{Lease: s.Lease, Wait: s.Wait, Retry: s.Retry, ClockSkew: s.LabClockSkew, ServerClock: s.LabServerClock}
}
