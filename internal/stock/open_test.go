package stock

import (
	"database/sql"
	"reflect"
	"testing"
	"time"
)

// TestAllConnectionsHaveALifetime: also a probe must find a new primary, where the old one does not say
// that it is one no more. database/sql does not tell the bound.
func TestAllConnectionsHaveALifetime(t *testing.T) {
	store, err := Open("shop@tcp(127.0.0.1:1)/shop")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for name, pool := range map[string]*sql.DB{"sales": store.pool, "probes": store.apart} {
		if is := time.Duration(reflect.ValueOf(pool).Elem().FieldByName("maxLifetime").Int()); is != connLifetime {
			t.Errorf("a connection for %s lives for %s, want %s", name, is, connLifetime)
		}
	}
}
