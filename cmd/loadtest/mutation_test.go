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

// TestMutations changes one line of the shop at a time and wants exactly those cells to surprise
// that depend on it. A verdict that no change of the code can alter proves nothing. The working
// tree stays as it is: the changed file is overlaid while the shop is built.
func TestMutations(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what, file, old, new string
		strategies           string
		surprises            []string
	}{
		{
			"set-ex-nx checks the owner before it deletes", "internal/strategy/set_ex_nx.go",
			`		return polled{Options: d.Options, try: func(ctx context.Context, key string) (lease, error) {
			ok, err := d.Redis.SetNX(ctx, key, 1, d.Lease).Result()
			if err != nil || !ok {
				return nil, err
			}
			trace.At(ctx, trace.Acquiring)
			return plainDel{d.Redis, key}, nil
		}}, readThenWrite`,
			`		return polled{Options: d.Options, try: func(ctx context.Context, key string) (lease, error) {
			owner := ownerID()
			ok, err := d.Redis.SetNX(ctx, key, owner, d.Lease).Result()
			if err != nil || !ok {
				return nil, err
			}
			trace.At(ctx, trace.Acquiring)
			return compareAndDelete{d.Redis, key, owner}, nil
		}}, readThenWrite`,
			"set-ex-nx", []string{"set-ex-nx:late-release", "set-ex-nx:split-release"},
		},
		{
			"fenced writes without looking at the fence", "internal/stock/write.go",
			`"id = ? AND fence = ?", sale.ItemID, sale.Token`, `"id = ? AND ? > 0", sale.ItemID, sale.Token`,
			"fenced", []string{"fenced:failover", "fenced:pause"},
		},
		{
			"the watchdog renews no hold", "internal/redislock/watchdog.go",
			"if n.state == held && l.opts.FixedLease {", "if n.state == held {",
			"reentrant", []string{"reentrant:overrun"},
		},
		{
			"a sale does not look whether its lock is lost", "internal/strategy/decrement.go",
			"if ctx.Err() != nil {", "if false {",
			"reentrant", []string{"reentrant:partition"},
		},
	} {
		t.Run(tt.what, func(t *testing.T) {
			lay(t, filepath.Join(root, tt.file), tt.old, tt.new)
			results := filepath.Join(t.TempDir(), "results.json")
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"run", "--scenarios", "all", "--strategies", tt.strategies, "--json", results}, &out, &errs)
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
	if n := strings.Count(string(content), old); n != 1 {
		t.Fatalf("%s has %d times what is to be changed, want once: %s", file, n, old)
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
	t.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+listed))
}
