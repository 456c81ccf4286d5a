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
	open   map[net.Conn]string // either side of each connection, and the server that it leads to
	closed bool
}

// Front starts a front that leads to the server at addr.
func (r *Rig) Front(addr string) (*Front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("rig: front for %s: %w", addr, err)
	}
	f := &Front{Addr: listener.Addr().String(), listener: listener, to: addr, open: map[net.Conn]string{}}
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
	defer f.end(client)
	to, ok := f.begin(client)
	if !ok {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer f.end(server)
	if !f.join(client, server) {
		return
	}
	f.serving.Go(func() { f.copy(server, client) })
	f.copy(client, server)
}

// copy copies what one side sends, and closes both when that ends.
func (f *Front) copy(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either side may end at any time
	to.Close()
	from.Close()
}

// begin notes where a new connection leads.
func (f *Front) begin(client net.Conn) (to string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.open[client] = f.to
	}
	return f.to, !f.closed
}

// join notes the other side of a connection, unless it was closed meanwhile.
func (f *Front) join(client, server net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	to, open := f.open[client]
	if open {
		f.open[server] = to
	}
	return open
}

func (f *Front) end(conn net.Conn) {
	conn.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, conn)
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

// Sever closes all connections.
func (f *Front) Sever() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.open {
		conn.Close()
		delete(f.open, conn)
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
