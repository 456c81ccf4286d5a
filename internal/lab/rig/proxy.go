package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"stocklock/internal/testserver"

	"github.com/Shopify/toxiproxy/v2"
	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Proxy is a TCP proxy in front of a server. It can cut connections, and heal them.
type Proxy struct {
	Addr string // host:port, to be used instead of the server's

	mu    sync.Mutex
	proxy *toxiproxy.Proxy
}

// toxiServer provides the metrics and the log that toxiproxy takes from a server.
var toxiServer = sync.OnceValue(func() *toxiproxy.ApiServer {
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
})

// Proxy starts a proxy in front of the server at upstream.
func (r *Rig) Proxy(upstream string) (*Proxy, error) {
	const tries = 10 // as in testserver.Group.WithPort: another process can take the port
	for try := 1; ; try++ {
		port, err := r.FreePort()
		if err != nil {
			return nil, err
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		p := &Proxy{Addr: addr, proxy: toxiproxy.NewProxy(toxiServer(), testserver.RandomHex(4), addr, upstream)}
		switch err := p.proxy.Start(); {
		case err == nil:
			if err := r.OnClose(p.close); err != nil {
				p.close()
				return nil, err
			}
			return p, nil
		case try == tries:
			return nil, fmt.Errorf("rig: proxy for %s: %w", upstream, err)
		}
	}
}

func (p *Proxy) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proxy.Stop()
	return nil
}

// Cut silences all connections: bytes vanish in both directions and nothing is closed or reset, as
// when a cable is pulled. New connections are accepted and silent too.
func (p *Proxy) Cut() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, toxic := range []string{
		`{"name":"cut-up","type":"timeout","stream":"upstream","attributes":{"timeout":0}}`,
		`{"name":"cut-down","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`,
	} {
		if _, err := p.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return fmt.Errorf("rig: proxy %s: %w", p.Addr, err)
		}
	}
	return nil
}

// Heal undoes Cut. It closes connections that were cut: what was in them is lost.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proxy.Toxics.ResetToxics(context.Background())
}

// Sever closes all connections. New connections are accepted.
func (p *Proxy) Sever() error { return p.Lead("") }

// Lead closes all connections and leads new ones to another server, or to the same one for an empty
// address.
func (p *Proxy) Lead(upstream string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proxy.Stop()
	if upstream != "" {
		p.proxy.Upstream = upstream
	}
	// A child process holds a copy of the old listener between fork and exec.
	var err error
	for range 100 {
		if err = p.proxy.Start(); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("rig: proxy %s: %w", p.Addr, err)
}

// ProxyMySQL starts a proxy in front of the server of a DSN, and returns the DSN that leads through
// it.
func (r *Rig) ProxyMySQL(dsn string) (*Proxy, string, error) {
	return throughMySQL(dsn, r.Proxy, func(p *Proxy) string { return p.Addr })
}

func throughMySQL[P any](dsn string, start func(upstream string) (P, error), addr func(P) string) (none P, through string, err error) {
	cfg, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		return none, "", errors.New("rig: the MySQL DSN cannot be read") // the driver's message quotes the password
	}
	p, err := start(cfg.Addr)
	if err != nil {
		return none, "", err
	}
	cfg.Addr = addr(p)
	return p, cfg.FormatDSN(), nil
}
