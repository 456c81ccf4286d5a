package stock_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// TestAReadOnlyServerIsLeftAtOnce plays a switchover: the connections that are open stay on the old
// primary, which refuses every write, and new ones find the new primary. It is the same with connections
// that had no rights, or an expired password, when they were opened.
func TestAReadOnlyServerIsLeftAtOnce(t *testing.T) {
	database := stocktest.Database(t)
	for name, first := range map[string]func(*stock.Store, stock.Item) error{
		"a sale": func(store *stock.Store, item stock.Item) error {
			_, err := store.Decrement(t.Context(), one(item))
			return err
		},
		"a probe": func(store *stock.Store, _ stock.Item) error { return store.CanSell(t.Context(), true) },
		"a fence": func(store *stock.Store, item stock.Item) error {
			return store.RaiseFence(t.Context(), item.ID, 1)
		},
	} {
		for _, number := range []uint16{1290, 1792, 1836, 1820, 1142} {
			t.Run(fmt.Sprint(name, " finds ", number), func(t *testing.T) {
				store, item, switchOver := switchable(t, database, number)
				useConnections(t, store, 5)
				if err := store.CanSell(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				switchOver()
				if err := first(store, item); err == nil || errors.Is(err, stock.ErrUnknown) {
					t.Errorf("on the old primary: %v, want a refusal without doubt", err)
				}
				for range 5 {
					if _, err := store.Decrement(t.Context(), one(item)); err != nil {
						t.Errorf("a sale after that: %v", err)
					}
				}
				if err := store.CanSell(t.Context(), true); err != nil {
					t.Errorf("a probe after that: %v", err)
				}
			})
		}
	}
}

// switchable returns a store on a database behind a proxy. After switchOver, every write on a connection that is
// open is refused with this number.
func switchable(t *testing.T, database string, number uint16) (store *stock.Store, item stock.Item, switchOver func()) {
	t.Helper()
	var primary atomic.Int64
	direct, store := openDatabaseBehind(t, database, func() meddler {
		mine := primary.Load()
		return func(packet []byte, client, _ net.Conn) bool {
			writes := bytes.Contains(packet, []byte("\x03UPDATE")) || bytes.Contains(packet, []byte("\x03INSERT"))
			if mine == primary.Load() || !writes {
				return false
			}
			refusal := append([]byte{0xff, byte(number), byte(number >> 8)}, "#HY000read-only"...)
			client.Write(append([]byte{byte(len(refusal)), 0, 0, 1}, refusal...))
			return true
		}
	})
	return store, stocktest.Item(t, direct, 100), func() { primary.Add(1) }
}

// useConnections has the pool open so many connections, and leaves them idle.
func useConnections(t *testing.T, store *stock.Store, n int) {
	t.Helper()
	var held []*sql.Conn
	for range n {
		conn, err := store.Pool().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Close()
	}
}

// TestAProbeAndTheBinlog reads its size around probes. One of statements makes them fail, as it does what a shop writes
// under READ COMMITTED.
func TestAProbeAndTheBinlog(t *testing.T) {
	mysql, err := testserver.Start(t).MySQL(t.Context(), append(slices.Clone(testserver.WithBinlog), "--binlog-format=STATEMENT")...)
	if err != nil {
		t.Fatal(err)
	}
	store := stocktest.OpenAt(t, mysql.DSN())
	stocktest.Migrate(t, store)
	for _, holds := range []bool{false, true} {
		if err := store.CanSell(t.Context(), holds); !strings.Contains(stock.Advice(err), "binlog_format") {
			t.Errorf("with a binlog of statements, a probe finds %v, and advises %q", err, stock.Advice(err))
		}
	}
	if _, err := store.Pool().ExecContext(t.Context(), "SET GLOBAL binlog_format = 'MIXED'"); err != nil {
		t.Fatal(err)
	}
	store = stocktest.OpenAt(t, mysql.DSN()) // a session keeps the format that it began with
	size := func() string {
		rows, err := store.Pool().QueryContext(t.Context(), "SHOW BINARY LOGS")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(string)
		}
		for rows.Next() { // the last is the one that is written
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
		}
		return *values[1].(*string)
	}
	before := size()
	for range 3 {
		if err := store.CanSell(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	if after := size(); after != before {
		t.Errorf("the binlog had %s bytes before three probes, and %s after them", before, after)
	}
	stocktest.Item(t, store, 1)
	if after := size(); after == before {
		t.Error("a new item did not grow the binlog either: this test reads the wrong size")
	}
}
