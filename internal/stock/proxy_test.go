package stock_test

import (
	"io"
	"net"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
)

// meddler sees what a client sends before the server does, and reports whether the server is not to
// have it.
type meddler func(packet []byte, client, server net.Conn) bool

// openBehind returns two stores on a database: one as [stocktest.Open] does, and one behind a proxy.
func openBehind(t *testing.T, accepted func() meddler) (direct, store *stock.Store) {
	t.Helper()
	return openDatabaseBehind(t, stocktest.Database(t), accepted)
}

func openDatabaseBehind(t *testing.T, database string, accepted func() meddler) (direct, store *stock.Store) {
	t.Helper()
	dsn, err := mysqldriver.ParseDSN(database)
	if err != nil {
		t.Fatal(err)
	}
	direct = stocktest.OpenAt(t, dsn.FormatDSN())
	dsn.Addr = proxy(t, dsn.Addr, accepted)
	return direct, stocktest.OpenAt(t, dsn.FormatDSN())
}

// proxy starts a proxy with a meddler for each connection.
func proxy(t *testing.T, server string, accepted func() meddler) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(client, server, accepted())
		}
	}()
	return l.Addr().String()
}

func relay(client net.Conn, addr string, meddle meddler) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	go io.Copy(client, server)
	packet := make([]byte, 1<<16)
	for {
		n, err := client.Read(packet)
		if err != nil {
			return
		}
		if meddle(packet[:n], client, server) {
			continue
		}
		if _, err := server.Write(packet[:n]); err != nil {
			return
		}
	}
}
