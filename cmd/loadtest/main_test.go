package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"stocklock/internal/lab/catalog"
)

// TestMain builds the shop once for all tests.
func TestMain(m *testing.M) {
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
