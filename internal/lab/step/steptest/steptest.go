// Package steptest opens shops for tests.
package steptest

import (
	"testing"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/testserver"
)

// Open opens shops of a program. An empty program is the shop of this checkout. The test is skipped where no servers are installed.
func Open(t *testing.T, program string, o step.Options) *step.Shops {
	t.Helper()
	var shop *catalog.Catalog
	if program == "" {
		shop = catalogtest.Shop(t)
	} else {
		testserver.NeedsServers(t)
		var err error
		if shop, err = catalog.Open(t.Context(), program); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { shop.Close() })
	}
	s, err := step.OpenShops(t.Context(), shop, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// Parse reads a schedule.
func Parse(t *testing.T, text string) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
