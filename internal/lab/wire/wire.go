// Package wire has proxies that understand the protocols of Redis and MySQL, and hold requests.
//
// A [Proxy] stands between a service, which need not know of it, and one server. It reads each request,
// asks its [Tap] when that may go to the server, and asks again before the service sees the answer. Set-up of
// connections, PREPARE and PING pass unasked. Passwords and handshakes are passed on and never kept. Proxies
// listen on 127.0.0.1.
//
// A proxy cannot read TLS, nor compressed packets: it offers neither. [Proxy.Unseen] says what it could not
// read.
//
// # Decisions
//
// What a connection holds is what its server says. The status of MySQL's answers says whether a
// transaction is open, and not that it is another one: a second BEGIN, a chain and XA are told by
// their texts. An error has no status, so the proxy asks with a PING. A cause is found by the same
// evidence in a search and in its replay, so each run looks at the stock.
package wire

import (
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/rig"
)

// The servers that a proxy can stand before, in the words of schedules.
const (
	Redis = "redis"
	MySQL = "mysql"
)

// Exchange is one request with its answer. A tap may read it from the call of Sent on. The answer is there
// from the call of Answered on.
type Exchange struct {
	Process int    // of the proxy: which process of the service uses it
	Conn    *Conn  // the connection
	Server  string // Redis or MySQL
	Name    string // the command in one word, such as set or select
	Text    string // the command as it was sent, with the values of a prepared statement in their places
	// Tx says that a statement is one of a transaction, Isolation is the level of that, in the words of
	// database/sql, and empty for the server's own.
	Tx        bool
	Isolation string
	Answer    string
	// Matched says that a statement found rows, or that a command of Redis answered other than nil or 0.
	Matched bool
	// Failed says that the server answered with an error.
	Failed bool
	// Ends says that the transaction that was open before a statement has ended with it, whatever its text says, and
	// Open that one is open after it. Both are there with the answer.
	Ends, Open bool
	// Database is the one that a connection of MySQL has turned to since it was opened, empty for none.
	Database string
	// Source is the text of a script, where it is known.
	Source string
}

// EndsTransaction says whether it is a COMMIT or a ROLLBACK, which say nothing of whose transaction it was.
func (x *Exchange) EndsTransaction() bool { return x.Name == "commit" || x.Name == "rollback" }

// Conn is one connection of a service.
type Conn struct {
	Process int
	Server  string
	Local   string // the address that the server sees
	// Thread is MySQL's number of the connection.
	Thread uint64
	// Subscribed says that the connection listens to channels of Redis, or for keys that change.
	Subscribed atomic.Bool

	// Behind says that something waits behind a command of Redis that is held.
	Behind atomic.Bool

	resp3 atomic.Bool // what it listens to comes beside the answers to its commands
	waits atomic.Bool // the answer to a command is to be held

	client, server net.Conn
}

// Cut closes a connection at both ends.
func (c *Conn) Cut() {
	c.client.Close()
	c.server.Close()
}

// Tap is asked about what passes. Its methods are called from many goroutines. Each may block for as long as
// the request, or the answer, is to be held.
type Tap interface {
	// Sent returns when a request may go to the server. If it returns false, the connection is cut before.
	Sent(*Exchange) bool
	// Answered returns when the service may see the answer. If it returns false, the connection is cut
	// instead.
	Answered(*Exchange) bool
	// Pushed is called before a message of a subscription, or the news that a key has changed, is passed on.
	Pushed(*Conn, string)
	// Closed is called when a connection has ended on both sides. InTx says that a transaction was open on
	// it.
	Closed(c *Conn, inTx bool)
}

// Answers is a tap that is told of each answer, and holds nothing.
type Answers func(*Exchange)

func (Answers) Sent(*Exchange) bool         { return true }
func (f Answers) Answered(x *Exchange) bool { f(x); return true }
func (Answers) Pushed(*Conn, string)        {}
func (Answers) Closed(*Conn, bool)          {}

// Proxy stands before one server. It is safe for concurrent use.
type Proxy struct {
	*rig.Connections // their Addr is to be used instead of the server's

	process  int
	server   string
	tap      Tap
	accepted atomic.Int64
	database atomic.Int64 // the last that a client of Redis has selected
	// A client of MySQL has left at the greeting, and one was let in.
	left, entered atomic.Bool

	mu       sync.Mutex // guards the rest
	upstream string
	conns    map[*Conn]bool
	unseen   []string
	closed   bool
}

// Listen starts a proxy for one process of a service, before the server at upstream.
func Listen(server, upstream string, process int, tap Tap) (*Proxy, error) {
	p := &Proxy{process: process, server: server, tap: tap, upstream: upstream, conns: map[*Conn]bool{}}
	var err error
	p.Connections, err = rig.Accept(p.serve)
	return p, err
}

// Close ends the proxy and all its connections. The tap must let go what it holds.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Sever()
	if err := p.Connections.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Sever closes all connections at both ends, and waits for none of them: a request may be held. New ones are accepted.
func (p *Proxy) Sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Cut()
	}
}

// Lead closes all connections, and leads new ones to another server.
func (p *Proxy) Lead(upstream string) {
	p.mu.Lock()
	p.upstream = upstream
	p.mu.Unlock()
	p.Sever()
}

// Accepted is how many connections there have been.
func (p *Proxy) Accepted() int { return int(p.accepted.Load()) }

// Unseen says what the proxy could not read, each once.
func (p *Proxy) Unseen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Clone(p.unseen)
	if p.left.Load() && !p.entered.Load() { // where others were let in, it was a look at the port
		all = append(all, "a client of MySQL that left at the greeting: switch TLS off in its settings if it wants that, and point nothing else there")
	}
	return all
}

// Database is the number of the database that a client of Redis has selected last.
func (p *Proxy) Database() int { return int(p.database.Load()) }

// Listening says whether a connection of the proxy listens to channels of Redis.
func (p *Proxy) Listening() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.Subscribed.Load() {
			return true
		}
	}
	return false
}

func (p *Proxy) cannot(see string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.unseen, see) {
		p.unseen = append(p.unseen, see)
	}
}

const dialTimeout = 5 * time.Second

func (p *Proxy) serve(client net.Conn) {
	p.accepted.Add(1)
	p.mu.Lock()
	upstream := p.upstream
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", upstream, dialTimeout)
	if err != nil {
		return
	}
	defer server.Close()
	c := &Conn{Process: p.process, Server: p.server, Local: server.LocalAddr().String(), client: client, server: server}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.conns[c] = true
	p.mu.Unlock()
	inTx := false
	if p.server == Redis {
		p.serveRedis(c)
	} else {
		inTx = p.serveMySQL(c)
	}
	c.Cut()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	p.tap.Closed(c, inTx)
}
