// Package overlaytest builds shops, and the load test, from changed source, for tests: with a strategy that the
// checkout does not have, or with a defect. It does not change the working tree.
package overlaytest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/rig"
)

// Shop builds cmd/shop with the tag lab. Files of the checkout, named from its root, are replaced
// or added. It returns the path of the program, which ends with the test.
func Shop(t testing.TB, root string, files map[string]string) (program string) {
	t.Helper()
	return built(t, root, "shop", files)
}

// LoadTest is [Shop] for cmd/loadtest.
func LoadTest(t testing.TB, root string, files map[string]string) (program string) {
	t.Helper()
	return built(t, root, "loadtest", files)
}

func built(t testing.TB, root, name string, files map[string]string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	build := rig.GoCommand(t.Context(), root, "build", "-overlay", Overlay(t, root, files), "-o", program, "./cmd/"+name)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// Overlay is [rig.Overlay] in a folder that ends with the test.
func Overlay(t testing.TB, root string, files map[string]string) (overlay string) {
	t.Helper()
	overlay, err := rig.Overlay(t.TempDir(), root, files)
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}

// Changed is a file of the checkout with one piece of it replaced. It fails the test where the file
// does not have that piece once.
func Changed(t testing.TB, root, file, old, new string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(content), old); n != 1 {
		t.Fatalf("%s has %d times what is to be changed, want once: %s", file, n, old)
	}
	return strings.Replace(string(content), old, new, 1)
}
