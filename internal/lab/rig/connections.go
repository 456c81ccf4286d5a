package rig

import (
	"maps"
	"net"
	"sync"
)

// Connections serves those to a port of this machine. It is safe for concurrent use.
type Connections struct {
	Addr string // host:port

	listener net.Listener
	serve    func(net.Conn)
	serving  sync.WaitGroup

	mu     sync.Mutex                 // guards the rest
	open   map[net.Conn]chan struct{} // closed when the connection was served
	closed bool
}

// Accept listens, and has each connection served by a goroutine of its own. It is closed when serve returns.
func Accept(serve func(net.Conn)) (*Connections, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Connections{Addr: listener.Addr().String(), listener: listener, serve: serve, open: map[net.Conn]chan struct{}{}}
	c.serving.Go(c.accept)
	return c, nil
}

func (c *Connections) accept() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		c.serving.Go(func() { c.serveOne(conn) })
	}
}

func (c *Connections) serveOne(conn net.Conn) {
	defer conn.Close()
	served := make(chan struct{})
	defer close(served)
	c.mu.Lock()
	closed := c.closed
	c.open[conn] = served
	c.mu.Unlock()
	if !closed {
		c.serve(conn)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// Sever closes all connections, and returns when each was served. New ones are accepted.
func (c *Connections) Sever() {
	c.mu.Lock()
	severed := maps.Clone(c.open)
	c.mu.Unlock()
	for conn := range severed {
		conn.Close()
	}
	for _, served := range severed {
		<-served
	}
}

// Close is [Connections.Sever] for good.
func (c *Connections) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.listener.Close()
	c.Sever()
	c.serving.Wait()
	return err
}
