package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"stocklock/internal/lab/catalog"
)

// ownProgramEnv is set for processes in which this test binary is the program loadtest.
const ownProgramEnv = "LOADTEST_TEST_PROGRAM"

// TestMain builds the shop once for all tests. Short tests build none.
func TestMain(m *testing.M) {
	if os.Getenv(ownProgramEnv) != "" {
		main()
	}
	if wrong := os.Getenv(badServiceEnv); wrong != "" {
		fmt.Fprintln(os.Stderr, badService(wrong))
		os.Exit(1)
	}
	if flag.Parse(); testing.Short() {
		os.Exit(m.Run())
	}
	shop, err := catalog.Open(context.Background(), "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("LOADTEST_SHOP_BINARY", shop.Program)
	os.Setenv("LOADTEST_AS", "loadtest")
	if venv, err := filepath.Abs(examples + "/python/.venv/bin"); err == nil { // the packages of the example
		os.Setenv("PATH", venv+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	code := m.Run()
	if err := shop.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// matrices is for one test at a time of those that run many cells with short leases at once.
var matrices sync.Mutex

// oneMatrix runs a test beside others, but not beside another such. One that waits keeps its place among the parallel tests.
func oneMatrix(t *testing.T) {
	t.Helper()
	t.Parallel()
	matrices.Lock()
	t.Cleanup(matrices.Unlock)
}

// needsShop skips a short test that asks a shop for its strategies.
func needsShop(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a shop, which short tests do not build")
	}
}

// FuzzArguments: rates, times and addresses are accepted or rejected in one line, which shows no
// password.
func FuzzArguments(f *testing.F) {
	needsShop(f)
	f.Add("500", "2s", "100", "none:crash", "user:", "@tcp(db:3306)/stocklock", "http://shop:8080")
	f.Add("-1", "1", "1e9", ":", "", "", "")
	f.Add("0x10", "99999999h", "9223372036854775807", "telling", "mysql://u:", "@h/d", "shop")
	f.Add("1_000", "-2s", "0", "none:", ":", "/", "http://%zz")
	f.Fuzz(func(t *testing.T, rate, lease, units, cell, beforeDSN, afterDSN, shop string) {
		const password = "g3h31m"
		dsn := beforeDSN + password + afterDSN
		args := []string{"run", "--expect-only", "--rate=" + rate, "--lease=" + lease, "--stock=" + units, cell, "--mysql=" + dsn, "--shop=" + shop}
		var out, errs bytes.Buffer
		code := run(t.Context(), args, &out, &errs)
		if code != exitExpected && code != exitUsage {
			t.Errorf("%q: exit code %d", args, code)
		}
		if said := strings.TrimRight(errs.String(), "\n"); code == exitUsage && strings.Count(said, "\n") > strings.Count(strings.Join(args, ""), "\n") {
			t.Errorf("%q: said %q, want one line", args, said)
		}
		if strings.Contains(out.String()+errs.String(), password) {
			t.Errorf("%q: the password was printed: %s%s", args, out.String(), errs.String())
		}
		for _, how := range [][]string{{"run", "--mysql", dsn}, {"run", "--redis=" + dsn}} {
			if strings.Contains(commandLine(how), password) {
				t.Errorf("the command line shows the password: %s", commandLine(how))
			}
		}
	})
}
