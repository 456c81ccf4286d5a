package testserver_test

import (
	"os"
	"testing"
)

// TestMain makes this binary the parent that TestNothingIsLeft needs.
func TestMain(m *testing.M) {
	if how := os.Getenv("TESTSERVER_TEST_PARENT"); how != "" {
		parent(how)
		return
	}
	os.Exit(m.Run())
}
