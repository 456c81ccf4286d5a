// Package catalogtest has the shop of this checkout for tests, built once for each test binary.
package catalogtest

import (
	"context"
	"sync"
	"testing"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/testserver"
)

// shop is never closed: when the binary ends, its rig removes the program.
var shop = sync.OnceValues(func() (*catalog.Catalog, error) { return catalog.Open(context.Background(), "") })

// Shop returns the catalog of the shop of this checkout, which no test may close. It skips a short
// test.
func Shop(t testing.TB) *catalog.Catalog {
	t.Helper()
	testserver.NeedsServers(t)
	c, err := shop()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
