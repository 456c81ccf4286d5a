//go:build mutations

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/report"
)

// TestMutations makes one change of the shop at a time and wants exactly those cells to surprise
// that depend on it. A verdict that no change of the code can alter proves nothing. The working
// tree stays as it is: the changed file is overlaid while the shop is built.
func TestMutations(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range mutations {
		t.Run(tt.what, func(t *testing.T) {
			lay(t, filepath.Join(root, tt.file), tt.old, tt.new)
			results := filepath.Join(t.TempDir(), "results.json")
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"run", "--scenarios", "all", "--strategies", tt.strategy, "--json", results}, &out, &errs)
			if code != exitSurprised {
				t.Errorf("exit code %d, want %d\n%s%s", code, exitSurprised, out.String(), errs.String())
			}
			content, err := os.ReadFile(results)
			if err != nil {
				t.Fatal(err)
			}
			var r report.Report
			if err := json.Unmarshal(content, &r); err != nil {
				t.Fatal(err)
			}
			var surprised []string
			for _, c := range r.Surprises() {
				surprised = append(surprised, c.Strategy+":"+c.Scenario)
			}
			if slices.Sort(surprised); !slices.Equal(surprised, tt.surprises) {
				t.Errorf("surprised by %v, want %v\n%s", surprised, tt.surprises, out.String())
			}
		})
	}
}

// lay makes every go build of this process see the file with one piece of it replaced.
func lay(t *testing.T, file, old, new string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(changed, []byte(strings.Replace(string(content), old, new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	listed := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(listed, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LOADTEST_SHOP_BINARY", "") // build one
	t.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+listed))
}
