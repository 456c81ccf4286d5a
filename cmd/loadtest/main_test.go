package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"stocklock/internal/lab/catalog"
)

// TestMain builds the shop once for all tests. Short tests build none.
func TestMain(m *testing.M) {
	if flag.Parse(); testing.Short() {
		os.Exit(m.Run())
	}
	shop, err := catalog.Open(context.Background(), "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("LOADTEST_SHOP_BINARY", shop.Program)
	code := m.Run()
	if err := shop.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// needsShop skips a short test that asks a shop for its strategies.
func needsShop(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a shop, which short tests do not build")
	}
}
