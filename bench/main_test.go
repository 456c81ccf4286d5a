package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stocklock/bench/measure"
	"stocklock/bench/worker"
)

// beganEnv names a folder in which each worker leaves a file when it has begun.
const beganEnv = "BENCH_TEST_BEGAN"

func TestMain(m *testing.M) {
	if os.Getenv(worker.Env) != "" {
		if began := os.Getenv(beganEnv); began != "" {
			_ = os.WriteFile(filepath.Join(began, strconv.Itoa(os.Getpid())), nil, 0o600)
		}
		os.Exit(worker.Main(os.Stdin, os.Stdout)) // the test binary is also the worker program
	}
	goleak.VerifyTestMain(m)
}

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--help"}, exitMeasured, "--shapes"},
		{[]string{"--list"}, exitMeasured, "rueidislock"},
		{[]string{"--locks", "redlock"}, exitUsage, `no lock "redlock": want one of mutex, stocklock`},
		{[]string{"--sections", "disk"}, exitUsage, `no section "disk"`},
		{[]string{"--shapes", "4by8"}, exitUsage, `shape "4by8": want PROCESSESxGOROUTINES`},
		{[]string{"--repeat", "0"}, exitUsage, "--repeat is 0: want 1 to 100"},
		{[]string{"--seconds", "-1"}, exitUsage, "--seconds is -1: want 0.1 to 60"},
		{[]string{"--loadtest", "/nowhere"}, exitUsage, "/nowhere"},
		{[]string{"--save", "."}, exitUsage, "it is a folder, want a file's name"},
		{[]string{"--baseline", "main_test.go"}, exitUsage, "bench/main_test.go has no results in the Go benchmark format"},
		{[]string{"--seconds", "NaN"}, exitUsage, "--seconds is NaN: want 0.1 to 60"},
		{[]string{"--loadtest", "main_test.go"}, exitUsage, "permission denied"},
		{[]string{"everything"}, exitUsage, "bench: unexpected argument everything; see bench --help\n"},
		{[]string{"--shapes", "pairs", "--sections", "mysql"}, exitUsage, `shape "pairs" has no work under the lock`},
		{[]string{"--shapes", "hold-5", "--locks", "mutex"}, exitFailed, "nothing was measured"},
		{[]string{"--fast"}, exitUsage, "unknown flag --fast"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), test.args, &out, &out); code != test.code || !strings.Contains(out.String(), test.says) {
			t.Errorf("bench %v: exit code %d, want %d; it says %q, want %q", test.args, code, test.code, out.String(), test.says)
		}
	}
}

// measured runs the bench and returns the tables of what it saved, and what it printed.
func measured(t *testing.T, args ...string) ([]measure.Table, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bench.txt")
	var out, log bytes.Buffer
	t.Cleanup(func() {
		if t.Failed() { // why a lock failed
			t.Log(&log)
		}
	})
	if code := run(t.Context(), append(args, "--repeat", "1", "--save", file), &out, &log); code != exitMeasured {
		t.Fatalf("exit code %d\n%s\n%s", code, &out, &log)
	}
	results, err := measure.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return measure.Tables(results), out.String()
}

// total is the sum of a number over all repetitions, 0 where it was not measured.
func total(r measure.Row, unit string) (sum float64) {
	for _, v := range r.Sample(unit).Values {
		sum += v
	}
	return sum
}

// TestMeasures is a short run with real processes and servers. Without a lock it must count lost
// updates, and none with this repository's lock.
func TestMeasures(t *testing.T) {
	tables, out := measured(t, "--locks", "none,stocklock,mutex", "--shapes", "3x4", "--seconds", "0.5")
	if !strings.Contains(out, "the section takes ") || len(tables) != 1 {
		t.Fatalf("%d tables, and no duration of the section in\n%s", len(tables), out)
	}
	var seen []string
	for _, l := range tables[0].Rows {
		seen = append(seen, l.Name)
		share, over, trips := l.Median(measure.OfMutex), l.Median(measure.OverSec), l.Median(measure.OverTrips)
		if total(l, measure.ErrorsUnit) != 0 || !(l.Median(measure.Rate) > 0) || !(share > 0) || l.Median("max-sec") < l.Median("p50-sec") {
			t.Errorf("measured of %s: %s", l.Name, out)
		}
		if slower := share < 1; slower != (over > 0) || slower != (trips > 0) {
			t.Errorf("%s has %g of the mutex, and takes %g s and %g round trips more", l.Name, share, over, trips)
		}
		if lost := total(l, measure.LostUnit); (lost > 0) != (l.Name == "none") {
			t.Errorf("%s lost %g updates", l.Name, lost)
		}
		if sent := l.Median(measure.Requests); (sent > 0) != (l.Name == measure.Ours) || sent > 2.5 {
			t.Errorf("%s sent %g requests a hold", l.Name, sent)
		}
		if !strings.Contains(out, l.Name) {
			t.Errorf("the table has no %s:\n%s", l.Name, out)
		}
	}
	if want := []string{"mutex", "stocklock", "none"}; !slices.Equal(seen, want) {
		t.Errorf("measured %v, want %v", seen, want)
	}
}

// TestInterruptedShowsWhatThereIs interrupts a run in its second repetition, when a worker of it has begun. The saved file
// stays as it was, and nothing else is left.
func TestInterruptedShowsWhatThereIs(t *testing.T) {
	file, workers := filepath.Join(t.TempDir(), "bench.txt"), t.TempDir()
	t.Setenv(beganEnv, workers)
	t.Setenv("TMPDIR", t.TempDir())
	began := func() int {
		files, _ := os.ReadDir(workers)
		return len(files)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	progress := writer(func(line []byte) {
		if bytes.HasPrefix(line, []byte("2/")) {
			before := began()
			go func() {
				for ctx.Err() == nil && began() == before {
					time.Sleep(time.Millisecond)
				}
				interrupt()
			}()
		}
	})
	var out bytes.Buffer
	if err := os.WriteFile(file, []byte("of before"), 0o600); err != nil {
		t.Fatal(err)
	}
	code := run(ctx, []string{"--locks", "mutex,stocklock", "--shapes", "1x2", "--repeat", "2", "--seconds", "0.1", "--save", file}, &out, progress)
	if kept, err := os.ReadFile(file); string(kept) != "of before" {
		t.Errorf("the file of --save has %q, %v, want what it had: a part of the measurements is no baseline", kept, err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	for _, want := range []string{"1 × 2", " stocklock ", "interrupted: measurements are missing"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in what it says:\n%s", want, &out)
		}
	}
}

type writer func(line []byte)

func (w writer) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}

// TestPairs measures two locks. One of them is the same lock that both are compared with.
func TestPairs(t *testing.T) {
	tables, out := measured(t, "--locks", "mutex,stocklock,setnx-50ms", "--shapes", "pairs", "--sections", "empty", "--seconds", "1")
	if len(tables[0].Rows) != 2 {
		t.Errorf("want stocklock and setnx-50ms in\n%s", out)
	}
	most := map[string]float64{"setnx-50ms": 2, "stocklock": 4} // near 1, and not far above
	for _, l := range tables[0].Rows {
		if ratio := l.Median("of-raw"); !(ratio >= 0.5 && ratio <= most[l.Name]) || l.Median("sec/op") <= 0 {
			t.Errorf("%s has %g of %s in\n%s", l.Name, ratio, measure.Raw, out)
		}
	}
}

// TestKeeps measures locks that are held at once: one that the library renews, and one that the
// caller extends.
func TestKeeps(t *testing.T) {
	tables, out := measured(t, "--locks", "mutex,stocklock,bsm/redislock", "--shapes", "hold-5", "--sections", "empty")
	for _, name := range []string{measure.Ours, "bsm-redislock"} {
		l := tables[0].Row(name)
		if sent := l.Median(measure.Requests); !(sent >= 5) || total(l, measure.ErrorsUnit) != 0 {
			t.Errorf("%s renewed five locks with %g requests a lease:\n%s", name, sent, out)
		}
	}
}

// TestLocksOnSeveralServers measures the locks that need other servers than one Redis. The requests are
// those to all servers of the lock.
func TestLocksOnSeveralServers(t *testing.T) {
	tables, out := measured(t, "--locks", "mutex,redsync-five,rueidislock-two-of-three,etcd", "--shapes", "2x2")
	least := map[string]float64{
		"redsync-five":             10, // SET and a script on each of five
		"rueidislock-two-of-three": 6,  // two scripts on each of three
		"etcd":                     4,  // grant, transaction, delete, revoke
	}
	for _, l := range tables[0].Rows {
		want := least[l.Name]
		delete(least, l.Name)
		sent := l.Median(measure.Requests)
		if total(l, measure.LostUnit) != 0 || total(l, measure.ErrorsUnit) != 0 || !(l.Median(measure.Rate) > 0) || sent < want || sent > 100 {
			t.Errorf("%s, of at least %g requests, in\n%s", l.Name, want, out)
		}
	}
	if len(least) > 0 || !strings.Contains(out, "\nRedis ") || strings.Contains(out, "Redis Redis") || !strings.Contains(out, ", etcd 3") {
		t.Errorf("not measured: %v, in\n%s", least, out)
	}
}
