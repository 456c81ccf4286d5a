package rig

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Front leads connections to one of several servers, as a name in DNS or a virtual address does: it can lead new
// connections elsewhere while the old ones stay where they are. [Proxy.Lead] closes those. It is safe for
// concurrent use.
type Front struct {
	*Connections // their Addr is to be used instead of a server's

	mu sync.Mutex // guards the rest
	to string
}

// Front starts a front that leads to the server at addr.
func (r *Rig) Front(addr string) (*Front, error) {
	f := &Front{to: addr}
	var err error
	if f.Connections, err = Accept(f.serve); err != nil {
		return nil, fmt.Errorf("rig: front for %s: %w", addr, err)
	}
	if err := r.OnClose(f.Close); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// FrontMySQL starts a front that leads to the server of a DSN, and returns the DSN that leads through it.
func (r *Rig) FrontMySQL(dsn string) (*Front, string, error) {
	return throughMySQL(dsn, r.Front, func(f *Front) string { return f.Addr })
}

func (f *Front) serve(client net.Conn) {
	server, err := net.Dial("tcp", f.LeadsTo())
	if err != nil {
		return
	}
	var copying sync.WaitGroup
	for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
		copying.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either side may end at any time
			client.Close()
			server.Close()
		})
	}
	copying.Wait() // then both are closed: a Close under a Read is not the end
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

// LeadsTo returns the server that new connections find.
func (f *Front) LeadsTo() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to
}
