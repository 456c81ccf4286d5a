package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/overlaytest"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/testserver"
)

// TestAStrategyThatOnlyTheShopHas builds a shop with the strategy of docs/adding-a-strategy.md. The
// lab has never heard of it, and runs, explores, judges and shows it all the same.
func TestAStrategyThatOnlyTheShopHas(t *testing.T) {
	testserver.NeedsServers(t)
	shop := shopWith(t, "incr-expire", "incrExpire", codeIn(t, "../../docs/adding-a-strategy.md"))
	results := filepath.Join(t.TempDir(), "results.json")
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"list strategies", []string{"incr-expire                INCR, and the process"}},
		{"run --strategies incr-expire --scenarios contention,crash-acquiring --expect-only", []string{"incr-expire  held", "stuck"}},
		{"run --strategies incr-expire --scenarios contention,crash-acquiring --json " + results, []string{"1 stuck, 1 held, all as predicted"}},
		{"report " + results, []string{"crash-acquiring", "lacks atomic-lease"}},
		{"explore incr-expire --events kill", []string{"loadtest step incr-expire A.incr kill:A"}},
		{"step incr-expire A.incr kill:A", []string{"stuck: 0 orders for 1 unit"}},
		{"step incr-expire A.incr --one-shop", []string{" --one-shop\n"}},
	} {
		t.Setenv("LOADTEST_SHOP_BINARY", shop)
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(tt.args), &out, &errs)
		if code != exitExpected {
			t.Errorf("loadtest %s: exit code %d\n%s%s", tt.args, code, out.String(), errs.String())
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("loadtest %s does not say %q:\n%s", tt.args, want, out.String())
			}
		}
	}
	r, err := report.Read(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Cells {
		if stuck := c.Scenario == "crash-acquiring"; stuck != (c.Verdict == verdict.Stuck) || !strings.Contains(c.Replay, "--shop-binary "+shop) {
			t.Errorf("%s: %s, again with %s", c.Scenario, c.Verdict, c.Replay)
		}
	}
}

// codeIn is the first Go file in a page.
func codeIn(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(content), "```go\npackage ladder\n")
	code, _, closed := strings.Cut(after, "```")
	if !ok || !closed {
		t.Fatalf("%s has no file of package ladder", page)
	}
	return "package ladder\n" + code
}

// shopWith builds a shop that has one more strategy.
func shopWith(t *testing.T, name, variable, code string) (program string) {
	t.Helper()
	const root, folder = "../..", "internal/strategy/ladder/"
	return overlaytest.Shop(t, root, map[string]string{
		folder + "ladder.go": overlaytest.Changed(t, root, folder+"ladder.go", "\tsetnxExpire,\n", "\tsetnxExpire,\n\t"+variable+",\n"),
		folder + strings.ReplaceAll(name, "-", "_") + ".go": code,
	})
}
