package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/overlaytest"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/testserver"
)

// TestAStrategyThatOnlyTheShopHas builds a shop with the strategy of CONTRIBUTING.md. The
// lab has never heard of it, and still runs, explores, judges and shows it.
func TestAStrategyThatOnlyTheShopHas(t *testing.T) {
	t.Parallel()
	testserver.NeedsServers(t)
	shop := shopWith(t, "incr-expire", "incrExpire", codeIn(t, "../../CONTRIBUTING.md"))
	results := filepath.Join(t.TempDir(), "results.json")
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"list strategies", []string{"incr-expire                INCR, and the process"}},
		{"run incr-expire:contention,crash-acquiring --expect-only", []string{"incr-expire  held", "stuck"}},
		{"run incr-expire:contention,crash-acquiring --out " + results, []string{"1 stuck, 1 held, all as predicted"}},
		{"report " + results, []string{"crash-acquiring", "lacks atomic-lease"}},
		{"explore incr-expire --events kill --lease 400ms", []string{"loadtest step incr-expire A.incr kill:A --shop-binary ", " --lease 400ms\n"}},
		{"step incr-expire A.incr kill:A", []string{"stuck: 0 orders for 1 unit"}},
		{"step incr-expire A.incr --as one-shop", []string{" --as one-shop --shop-binary "}},
		{"step incr-expire A.incr --customers 3", []string{" --customers 3 --shop-binary "}},
	} {
		args := strings.Fields(tt.args)
		if args[0] != "report" {
			args = append(args, "--shop-binary", shop)
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), args, &out, &errs)
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

// TestNothingIsCompiledForWhatNeedsNoShop works in a checkout whose compiler leaves a file, and fails.
func TestNothingIsCompiledForWhatNeedsNoShop(t *testing.T) {
	needsShop(t)
	shop := os.Getenv("LOADTEST_SHOP_BINARY")
	t.Setenv("LOADTEST_SHOP_BINARY", "")
	t.Chdir(t.TempDir())
	const compiled, said = "compiled", "said"
	compiler := "#!/bin/sh\n: >" + compiled + "\nuntil [ -e " + said + " ]; do sleep 0.1; done\nexit 1\n"
	if err := errors.Join(os.WriteFile("go.mod", []byte("module stocklock\n"), 0o600), os.Mkdir("scripts", 0o700),
		os.WriteFile("scripts/lab-go.sh", []byte(compiler), 0o700), os.Mkdir("bin", 0o700), os.Symlink(shop, "bin/shop"), os.WriteFile(said, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{
		"--help": exitExpected, "list": exitExpected, "run --expect-only": exitExpected,
		"run nonne": exitUsage, "run puase": exitUsage, "run none:puase": exitUsage, "run pear": exitUsage,
		"run sagga:baskets": exitUsage, "run --requests 10": exitUsage, "run nonne:pause --draw": exitUsage, "run sagga:crossed --draw": exitUsage,
		"step nonne": exitUsage, "explore nonne": exitUsage, "explore nonne --judge": exitUsage, "soak nonne": exitUsage, "soak nonne --sales 9": exitUsage,
		"serve nonne:pause": exitUsage, "serve --url ftp:": exitUsage, "explain none:pause": exitUsage, "run --cells none:pause": exitUsage,
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(args), &out, &errs)
		if code != want || strings.Contains(args, "nonne") && !strings.Contains(errs.String(), `: did you mean "none"?`) {
			t.Errorf("loadtest %s: exit code %d, want %d: %s", args, code, want, errs.String())
		}
		if _, err := os.Stat(compiled); err == nil {
			t.Fatalf("loadtest %s compiles", args)
		}
	}
	read, write, err := os.Pipe()
	if err := errors.Join(err, os.Remove(said)); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(read); lines.Scan(); {
			if lines.Text() == "compiling the shop" {
				_ = os.WriteFile(said, nil, 0o600)
			}
		}
	}()
	if code := run(t.Context(), []string{"run", "none"}, io.Discard, write); code != exitFailed {
		t.Errorf("with a compiler that fails: exit code %d, want %d", code, exitFailed)
	}
	write.Close()
	if _, err := os.Stat(compiled); err != nil {
		t.Errorf("a run does not bring the shop up to date: %v", err)
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
