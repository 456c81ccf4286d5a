//go:build lab

package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	row  = regexp.MustCompile(`(?m)^\|.*\|$`)
	link = regexp.MustCompile(`\]\(([^)#]+)`)
)

// TestEachPackageHasARow: the tables of CONTRIBUTING name each package, or a folder above it that is not a whole half.
func TestEachPackageHasARow(t *testing.T) {
	var named []string
	for _, line := range row.FindAllString(read(t, "CONTRIBUTING.md"), -1) {
		for _, to := range link.FindAllStringSubmatch(line, -1) {
			name := to[1]
			if strings.HasSuffix(name, ".go") {
				name = filepath.Dir(name)
			}
			named = append(named, name)
		}
	}
	halves := []string{".", "internal", "internal/lab", "cmd", "docs"}
	packages := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && skipped(path, d.Name()) {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			folder, _ := filepath.Rel(root, filepath.Dir(path))
			packages[folder] = true
		}
		return err
	})
	if err != nil || len(packages) < 50 {
		t.Fatalf("found %d packages: %v", len(packages), err)
	}
	for folder := range packages {
		above := folder
		for !slices.Contains(named, above) && !slices.Contains(halves, above) {
			above = filepath.Dir(above)
		}
		if slices.Contains(halves, above) && folder != "." {
			t.Errorf("no row of CONTRIBUTING.md names %s, or a folder above it", folder)
		}
	}
}
