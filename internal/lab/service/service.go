// Package service starts a service that a file describes, buys from it, and counts what it sold.
//
// The service need not know of the lab. [Read] reads its description, [Start] starts its processes with a
// Redis and a MySQL of the lab's own behind proxies that understand their protocols: see package wire.
// [Service.Probe] finds out whether the description fits, and a [Seller] is what a cell of package trial sells from.
package service

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/wire"
	"stocklock/internal/testserver"
)

// Service is a service that runs, with what is behind it. It is safe for concurrent use.
type Service struct {
	File      *File
	Processes []*Process
	// DB counts, on a connection without a proxy. It is nil for a service that is counted by requests.
	DB *sql.DB

	// counter is one more process, at which nobody buys and whose requests are never held. Stock is set and counted
	// there by requests. It is the first process where that is the only one.
	counter *Process
	group   *testserver.Group
	servers *rig.Testbed // Redis with a replica; nil for a service that ran already
	relay   *relay
	items   atomic.Int64
	buys    atomic.Int64
	// requests are those of the lab by their customers, under load.
	requests sync.Map

	learned sync.RWMutex // guards Background of the probe

	patience time.Duration // see [Service.Patience]
}

// Process is one process of a service.
type Process struct {
	*testserver.Process // nil for a service that ran already
	URL                 string
	Redis, MySQL        *wire.Proxy // nil for a service that ran already
	client              *http.Client
}

// callLimit bounds a request to the service.
const callLimit = 60 * time.Second

// migrateLimit bounds the migration: it may wait for an answer that nobody gives.
const migrateLimit = 5 * time.Minute

// firstItem is the number of the first item that is sold.
const firstItem = 1001

// Start starts the servers and the processes. The caller closes the service.
func Start(ctx context.Context, f *File) (_ *Service, err error) {
	s := &Service{File: f, relay: &relay{of: map[*wire.Exchange]wire.Tap{}}}
	s.items.Store(firstItem - 1)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if f.URL != "" {
		s.Processes = []*Process{{URL: strings.TrimSuffix(f.URL, "/"), client: newClient()}}
		s.counter = s.Processes[0]
		s.buys.Store(time.Now().UnixMilli() % 2e9) // it may remember the keys of an earlier try
		if f.Stock.MySQL != "" {
			s.DB, err = openDB(os.ExpandEnv(f.Stock.MySQL))
		}
		if err == nil {
			err = s.ready(ctx, s.Processes[0])
		}
		if err != nil {
			err = fmt.Errorf("%s does not answer: %w", f.URL, err)
		}
		return s, err
	}
	r, err := rig.New("")
	if err != nil {
		return nil, err
	}
	s.group = r.Group
	if s.servers, err = r.Testbed(ctx, rig.TestbedOptions{Faults: true}); err != nil {
		return nil, err
	}
	redisAddr := s.servers.Redis().Addr
	store, err := s.group.MySQL(ctx, "--innodb-flush-log-at-trx-commit=0")
	if err != nil {
		return nil, err
	}
	dsn, err := mysqldriver.ParseDSN(store.DSN())
	if err != nil {
		return nil, err
	}
	dsn.MultiStatements = true
	if s.DB, err = openDB(dsn.FormatDSN()); err != nil {
		return nil, err
	}
	if err := s.DB.PingContext(ctx); err != nil { // MySQL 8 knows the password then: without TLS, Java's and C's drivers cannot log in first
		return nil, err
	}
	if err := s.makeTables(ctx, redisAddr, dsn); err != nil {
		return nil, err
	}
	for i := range f.Start.Processes {
		p, err := s.start(ctx, i, redisAddr, dsn)
		if err != nil {
			return nil, err
		}
		s.Processes = append(s.Processes, p)
	}
	s.counter = s.Processes[0]
	if f.asks() && !f.Excludes() {
		if s.counter, err = s.start(ctx, f.Start.Processes, redisAddr, dsn); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func openDB(dsn string) (*sql.DB, error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return nil, errors.New("the DSN of MySQL cannot be read: want one such as user:${PASSWORD}@tcp(127.0.0.1:3306)/shop") // the driver's message quotes the password
	}
	db.SetMaxIdleConns(4)
	return db, nil
}

func newClient() *http.Client {
	return &http.Client{
		Timeout:       callLimit,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// makeTables runs the SQL of the description, and its migration.
func (s *Service) makeTables(ctx context.Context, redisAddr string, dsn *mysqldriver.Config) error {
	if s.File.Tables != "" {
		if _, err := s.DB.ExecContext(ctx, s.File.Tables); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			field := "tables"
			if s.File.TablesFile != "" {
				field = "tables_file"
			}
			return s.File.mistake(field, "the tables cannot be made: %v", err)
		}
	}
	if len(s.File.Migrate) == 0 {
		return nil
	}
	values := places(0, 0, redisAddr, dsn.Addr, dsn)
	args := s.filled(s.File.Migrate, values)
	ctx, cancel := context.WithTimeoutCause(ctx, migrateLimit, fmt.Errorf("it had not ended after %s", migrateLimit))
	defer cancel()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Dir = s.File.path(s.File.Start.Dir)
	command.Env = append(os.Environ(), s.env(values)...)
	if err := s.group.Run(command); err != nil {
		return fmt.Errorf("migrate: %w", cmp.Or(context.Cause(ctx), err))
	}
	return nil
}

// places are what is filled in for a process.
func places(process, port int, redisAddr, mysqlAddr string, dsn *mysqldriver.Config) map[string]string {
	redisHost, redisPort, _ := net.SplitHostPort(redisAddr)
	mysqlHost, mysqlPort, _ := net.SplitHostPort(mysqlAddr)
	through := mysqldriver.NewConfig()
	through.User, through.Passwd, through.Net, through.Addr, through.DBName = dsn.User, dsn.Passwd, "tcp", mysqlAddr, dsn.DBName
	return map[string]string{
		"port": strconv.Itoa(port), "process": strconv.Itoa(process), "redis": redisAddr, "redis.host": redisHost, "redis.port": redisPort,
		"mysql": mysqlAddr, "mysql.host": mysqlHost, "mysql.port": mysqlPort, "mysql.user": dsn.User, "mysql.password": dsn.Passwd,
		"mysql.database": dsn.DBName, "mysql.dsn": through.FormatDSN(),
	}
}

// filled is a program with its arguments. A program with a slash is relative to the description.
func (s *Service) filled(words []string, values map[string]string) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = fill(word, values)
	}
	if strings.Contains(all[0], "/") {
		all[0] = s.File.path(all[0])
	}
	return all
}

func (s *Service) env(values map[string]string) (env []string) {
	for _, name := range slices.Sorted(maps.Keys(s.File.Start.Env)) {
		env = append(env, name+"="+fill(s.File.Start.Env[name], values))
	}
	return env
}

func (s *Service) start(ctx context.Context, i int, redisAddr string, dsn *mysqldriver.Config) (*Process, error) {
	p := &Process{client: newClient()}
	for _, listen := range []struct {
		server, upstream string
		proxy            **wire.Proxy
	}{{wire.Redis, redisAddr, &p.Redis}, {wire.MySQL, dsn.Addr, &p.MySQL}} {
		proxy, err := wire.Listen(listen.server, listen.upstream, i, s.relay)
		if err != nil {
			return nil, err
		}
		*listen.proxy = proxy
		if err := s.group.OnClose(proxy.Close); err != nil {
			return nil, errors.Join(err, proxy.Close())
		}
	}
	folder, err := s.group.Folder("service")
	if err != nil {
		return nil, err
	}
	values := places(i+1, 0, p.Redis.Addr, p.MySQL.Addr, dsn)
	args := s.filled(s.File.Start.Command, values)
	if _, err := exec.LookPath(args[0]); err != nil {
		return nil, s.File.mistake("start.command", "the service cannot be started: %v", err)
	}
	err = s.group.WithPort(func(port int) error {
		values["port"] = strconv.Itoa(port)
		address := net.JoinHostPort("127.0.0.1", values["port"])
		p.URL = "http://" + address
		p.Process = &testserver.Process{Program: testserver.Program{
			Name: fmt.Sprintf("%s, process %d", s.File.Name, i+1), Args: args,
			Env: s.env(values), Dir: folder, Cwd: s.File.path(s.File.Start.Dir), Apart: true,
			Ready: func(ctx context.Context) error { return s.ready(ctx, p) },
		}}
		ctx, cancel := s.startContext(ctx)
		defer cancel()
		err := s.group.Launch(ctx, p.Process)
		if err != nil && dial(address) != nil {
			return startFailure(err) // nobody has taken its port: at another one, it would fail, too
		}
		return err
	})
	return p, cmp.Or(context.Cause(ctx), startFailure(err))
}

// startContext ends when a process has had its time to start.
func (s *Service) startContext(ctx context.Context) (context.Context, context.CancelFunc) {
	within := s.File.Start.Within
	return context.WithTimeoutCause(ctx, within, fmt.Errorf("start.within is %s; it must listen on 127.0.0.1 at {port}", within))
}

// startFailure is why a process did not start, in words about the service alone.
func startFailure(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "testserver: "))
}

func (s *Service) ready(ctx context.Context, p *Process) error {
	r := s.File.Ready
	if r.Path == "" {
		return dial(strings.TrimPrefix(strings.TrimPrefix(p.URL, "http://"), "https://"))
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	status, body, err := p.call(ctx, r, nil)
	switch {
	case err != nil:
		return err
	case r.Status != 0 && status != r.Status, r.Status == 0 && status >= http.StatusBadRequest:
		return fmt.Errorf("%s %s was answered with %d: %s", r.Method, r.Path, status, brief(body))
	}
	return nil
}

// dial returns nil where somebody listens.
func dial(address string) error {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Restart ends a process and starts it again.
func (s *Service) Restart(ctx context.Context, p *Process) error {
	ctx, cancel := s.startContext(ctx)
	defer cancel()
	p.client.CloseIdleConnections()
	return startFailure(p.Process.Restart(ctx))
}

// Close ends everything that was started.
func (s *Service) Close() error {
	var errs []error
	s.relay.set(nil)
	if s.DB != nil {
		errs = append(errs, s.DB.Close())
	}
	for _, p := range s.all() {
		p.client.CloseIdleConnections()
	}
	if s.group != nil {
		errs = append(errs, s.group.Close())
	}
	return errors.Join(errs...)
}

// all are the processes, with that which counts.
func (s *Service) all() []*Process {
	if s.counter == nil || slices.Contains(s.Processes, s.counter) {
		return s.Processes
	}
	return append(slices.Clone(s.Processes), s.counter)
}

// Watch has a tap see, and hold, what all processes send, until the function that it returns is called. Only
// one tap watches at a time.
func (s *Service) Watch(tap wire.Tap) (stop func()) {
	s.relay.set(tap)
	return func() { s.relay.set(nil) }
}

// relay passes what the proxies see to the tap that watches now.
type relay struct {
	mu  sync.Mutex                  // guards the rest
	now wire.Tap                    // nil for none
	of  map[*wire.Exchange]wire.Tap // those under way, with who watched when they came; nil for nobody who still does
}

// set has another tap watch. The tap before it hears no more of what is under way.
func (r *relay) set(tap wire.Tap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = tap
	for x := range r.of {
		r.of[x] = nil
	}
}

func (r *relay) current() wire.Tap {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// underWay are the requests that have no answer yet.
func (r *relay) underWay() (all []*wire.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.of))
}

func (r *relay) Sent(x *wire.Exchange) bool {
	r.mu.Lock()
	tap := r.now
	r.of[x] = tap
	r.mu.Unlock()
	goes := tap == nil || tap.Sent(x)
	if !goes {
		r.forget(x)
	}
	return goes
}

func (r *relay) forget(x *wire.Exchange) (tap wire.Tap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tap = r.of[x]
	delete(r.of, x)
	return tap
}

func (r *relay) Answered(x *wire.Exchange) bool {
	tap := r.forget(x)
	return tap == nil || tap.Answered(x)
}

func (r *relay) Pushed(c *wire.Conn, text string) {
	if tap := r.current(); tap != nil {
		tap.Pushed(c, text)
	}
}

func (r *relay) Closed(c *wire.Conn, inTx bool) {
	if tap := r.current(); tap != nil {
		tap.Closed(c, inTx)
	}
}
