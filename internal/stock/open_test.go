package stock

import (
	"database/sql"
	"reflect"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/testserver"
)

// TestAllConnectionsHaveALifetime: also a probe must find a new primary, where the old one does not say
// that it is one no more. Those that are idle are closed before the server ends them. database/sql does not tell the bounds.
func TestAllConnectionsHaveALifetime(t *testing.T) {
	store, err := Open("shop@tcp(127.0.0.1:1)/shop")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for name, pool := range map[string]*sql.DB{"sales": store.pool, "probes": store.apart} {
		for field, want := range map[string]time.Duration{"maxLifetime": connLifetime, "maxIdleTime": idleConn} {
			if is := time.Duration(reflect.ValueOf(pool).Elem().FieldByName(field).Int()); is != want {
				t.Errorf("%s of a connection for %s is %s, want %s", field, name, is, want)
			}
		}
	}
}

// TestASessionIsNotIdleForHours, but those of migrations.
func TestASessionIsNotIdleForHours(t *testing.T) {
	dsn := testserver.Database(t)
	for name, test := range map[string]struct {
		params  string
		options []Option
		want    int
	}{
		"a shop's":         {"", nil, 60},
		"one in the lab":   {"", []Option{WithExtraTime(time.Minute)}, 120},
		"as the DSN wants": {"?wait_timeout=7", nil, 7},
	} {
		store, err := Open(dsn+test.params, test.options...)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		migrating, _, err := store.migrations()
		if err != nil {
			t.Fatal(err)
		}
		defer migrating.Close()
		idle := func(db *sql.DB) (session, server int) {
			if err := db.QueryRowContext(t.Context(), "SELECT @@wait_timeout, @@global.wait_timeout").Scan(&session, &server); err != nil {
				t.Fatal(err)
			}
			return session, server
		}
		for _, pool := range []*sql.DB{store.pool, store.apart} {
			if is, _ := idle(pool); is != test.want {
				t.Errorf("%s: a session may be idle for %d s, want %d", name, is, test.want)
			}
		}
		if is, server := idle(migrating); is != server {
			t.Errorf("%s: one that migrates may be idle for %d s, want %d", name, is, server)
		}
	}
}

// TestRightsThatAreMissingCloseFewConnections: a customer can repeat what needs one.
func TestRightsThatAreMissingCloseFewConnections(t *testing.T) {
	store, err := Open(testserver.Database(t), WithPoolSize(1))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	refused := &mysqldriver.MySQLError{Number: 1142}
	from := time.Now().Unix()
	for range 20 {
		if err := store.pool.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		store.leave(refused)
	}
	if closed, most := store.pool.Stats().MaxIdleClosed, time.Now().Unix()-from+1; closed == 0 || closed > most {
		t.Errorf("%d connections were closed, want one in each of %d seconds at most", closed, most)
	}
}

// TestTheCharacterSetIsUTF8: in another one the driver's escaping is not safe.
func TestTheCharacterSetIsUTF8(t *testing.T) {
	for params, fits := range map[string]bool{
		"": true, "?charset=utf8mb4": true, "?charset=utf8mb4,utf8&loc=UTC": true, "?charset=gbk": false, "?loc=UTC&charset=utf8mb4,gbk": false,
		"?charset=UTF8": true, "?charset=utf8mb4&charset=gbk": false, "?charset=gbk,x%zz": false,
		"?character_set_client=gbk": false, "?character_set_client=%27utf8mb4%27": true, "?collation=latin1_swedish_ci": false,
	} {
		store, err := Open("shop:pass?charset=big5/@tcp(127.0.0.1:1)/shop" + params)
		if err == nil {
			store.Close()
		}
		if (err == nil) != fits {
			t.Errorf("%s: %v", params, err)
		}
	}
}
