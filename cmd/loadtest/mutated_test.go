//go:build mutations

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stocklock/internal/lab/overlaytest"
	"stocklock/internal/lab/report"
)

// TestMutations makes one change of the shop at a time and wants exactly those cells to surprise
// that depend on it. A verdict that no change of the code can alter proves nothing. The working
// tree stays as it is: the changed file is overlaid while the shop is built.
func TestMutations(t *testing.T) {
	const root = "../.."
	for _, tt := range mutations {
		t.Run(tt.what, func(t *testing.T) {
			shop := overlaytest.Shop(t, root, map[string]string{tt.file: overlaytest.Changed(t, root, tt.file, tt.old, tt.new)})
			results := filepath.Join(t.TempDir(), "results.json")
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"run", "--shop-binary", shop, "--scenarios", "all", "--strategies", tt.strategy, "--json", results}, &out, &errs)
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
