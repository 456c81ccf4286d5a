package rig

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// Front leads connections to one of several servers, as a name in DNS or a virtual address does: it can lead new
// connections elsewhere while the old ones stay where they are. [Proxy.Lead] closes those. It is safe for
// concurrent use.
type Front struct {
	Addr string // host:port, to be used instead of a server's

	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex // guards the rest
	to     string
	open   map[*passage]bool
	closed bool
}

// passage is a connection and the one behind it.
type passage struct {
	client, server net.Conn // server is nil until it is there
	ended          chan struct{}
}

// Front starts a front that leads to the server at addr.
func (r *Rig) Front(addr string) (*Front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("rig: front for %s: %w", addr, err)
	}
	f := &Front{Addr: listener.Addr().String(), listener: listener, to: addr, open: map[*passage]bool{}}
	f.serving.Go(f.accept)
	if err := r.OnClose(f.close); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// FrontMySQL starts a front that leads to the server of a DSN, and returns the DSN that leads through it.
func (r *Rig) FrontMySQL(dsn string) (*Front, string, error) {
	cfg, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		return nil, "", errors.New("rig: the MySQL DSN cannot be read") // the driver's message quotes the password
	}
	front, err := r.Front(cfg.Addr)
	if err != nil {
		return nil, "", err
	}
	cfg.Addr = front.Addr
	return front, cfg.FormatDSN(), nil
}

func (f *Front) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.serving.Go(func() { f.serve(client) })
	}
}

func (f *Front) serve(client net.Conn) {
	p := &passage{client: client, ended: make(chan struct{})}
	defer close(p.ended)
	defer f.forget(p)
	to, ok := f.begin(p)
	if !ok {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil || !f.join(p, server) {
		return
	}
	var copying sync.WaitGroup
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		copying.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either side may end at any time
			p.close()
		})
	}
	copying.Wait() // then both are closed: a Close under a Read is not the end
}

func (p *passage) close() {
	p.client.Close()
	if p.server != nil {
		p.server.Close()
	}
}

// begin notes a new connection, and where it leads.
func (f *Front) begin(p *passage) (to string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return "", false
	}
	f.open[p] = true
	return f.to, true
}

// join notes the other side of a connection, and reports false where that was closed meanwhile.
func (f *Front) join(p *passage, server net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.server = server
	return f.open[p]
}

func (f *Front) forget(p *passage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.close()
	delete(f.open, p)
}

// LeadNew leads new connections to the server at addr. Those that are open stay.
func (f *Front) LeadNew(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = addr
}

// Lead closes all connections and leads new ones to the server at addr.
func (f *Front) Lead(addr string) {
	f.LeadNew(addr)
	f.Sever()
}

// Sever closes all connections, and returns when they are closed.
func (f *Front) Sever() {
	f.mu.Lock()
	var severed []*passage
	for p := range f.open {
		p.close()
		delete(f.open, p)
		severed = append(severed, p)
	}
	f.mu.Unlock()
	for _, p := range severed {
		<-p.ended
	}
}

// LeadsTo returns the server that new connections find.
func (f *Front) LeadsTo() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to
}

func (f *Front) close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	err := f.listener.Close()
	f.Sever()
	f.serving.Wait()
	return err
}
