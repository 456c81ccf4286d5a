package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stocklock/bench/worker"
)

func TestMain(m *testing.M) {
	if os.Getenv(worker.Env) != "" {
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
		{[]string{"--locks", "redlock"}, exitUsage, `unknown lock "redlock": want one of mutex, stocklock`},
		{[]string{"--sections", "disk"}, exitUsage, `unknown section "disk"`},
		{[]string{"--shapes", "4by8"}, exitUsage, `shape "4by8": want PROCESSESxGOROUTINES`},
		{[]string{"--repeat", "0"}, exitUsage, "--repeat 0: want 1 to 100"},
		{[]string{"--seconds", "-1"}, exitUsage, "--seconds -1: want 0.1 to 60"},
		{[]string{"--loadtest", "/nowhere"}, exitUsage, "/nowhere"},
		{[]string{"--json", "."}, exitUsage, "it is a folder, want a file's name"},
		{[]string{"--seconds", "NaN"}, exitUsage, "--seconds NaN: want 0.1 to 60"},
		{[]string{"--loadtest", "main_test.go"}, exitUsage, "permission denied"},
		{[]string{"everything"}, exitUsage, "bench: unexpected argument everything; see bench --help\n"},
		{[]string{"--fast"}, exitUsage, "unknown flag --fast"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), test.args, &out, &out); code != test.code || !strings.Contains(out.String(), test.says) {
			t.Errorf("bench %v: exit code %d, want %d; it says %q, want %q", test.args, code, test.code, out.String(), test.says)
		}
	}
}

// TestMeasures is a short run with real processes and servers. Without a lock it must count lost
// updates, and none with this repository's lock.
func TestMeasures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.json")
	var out, log bytes.Buffer
	code := run(t.Context(), []string{"--locks", "none,stocklock,mutex", "--shapes", "3x4", "--repeat", "1", "--seconds", "0.5", "--json", file}, &out, &log)
	if code != exitMeasured {
		t.Fatalf("exit code %d\n%s\n%s", code, &out, &log)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Cells []struct {
			Section float64 `json:"section_us"`
			Locks   []struct {
				Lock        string
				Over        struct{ Median float64 } `json:"us_over_mutex"`
				Trips       struct{ Median float64 } `json:"round_trips_over_mutex"`
				LostUpdates float64                  `json:"lost_updates"`
				Errors      float64
				Share       struct{ Median float64 } `json:"share_of_mutex"`
				Metrics     map[string]struct{ Median float64 }
			}
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	section := result.Cells[0].Section
	if section <= 0 || !strings.Contains(out.String(), "the section takes ") {
		t.Errorf("a section of %g µs, in\n%s", section, &out)
	}
	var seen []string
	for _, l := range result.Cells[0].Locks {
		seen = append(seen, l.Lock)
		m := func(name string) float64 { return l.Metrics[name].Median }
		if l.Errors != 0 || m("holds_per_second") < 50 || l.Share.Median <= 0 || m("wait_max_ms") < m("wait_p50_ms") {
			t.Errorf("measured of %s: %+v", l.Lock, l)
		}
		if slower := l.Share.Median < 1; slower != (l.Over.Median > 0) || slower != (l.Trips.Median > 0) {
			t.Errorf("%s has %g of the mutex, and takes %g µs and %g round trips more", l.Lock, l.Share.Median, l.Over.Median, l.Trips.Median)
		}
		if lost := l.LostUpdates; (lost > 0) != (l.Lock == "none") {
			t.Errorf("%s lost %g updates", l.Lock, lost)
		}
		if sent := m("redis_requests"); (sent > 0) != (l.Lock == ours) || sent > 2.5 {
			t.Errorf("%s sent %g requests a hold", l.Lock, sent)
		}
		if !strings.Contains(out.String(), l.Lock) {
			t.Errorf("the table has no %s:\n%s", l.Lock, &out)
		}
	}
	if want := []string{"mutex", "stocklock", "none"}; !slices.Equal(seen, want) {
		t.Errorf("measured %v, want %v", seen, want)
	}
}

// TestInterruptedLeavesNothing interrupts a run while its workers work.
func TestInterruptedLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	var out, log bytes.Buffer
	time.AfterFunc(2*time.Second, interrupt)
	begun := time.Now()
	if code := run(ctx, []string{"--locks", "stocklock", "--shapes", "3x4", "--seconds", "60"}, &out, &log); code != exitInterrupted {
		t.Errorf("exit code %d, want %d; it says %s", code, exitInterrupted, &log)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s to end", took)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestInterruptedShowsWhatThereIs interrupts a run in its second repetition.
func TestInterruptedShowsWhatThereIs(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	progress := writer(func(line []byte) {
		if bytes.HasPrefix(line, []byte("2/")) {
			interrupt()
		}
	})
	var out bytes.Buffer
	code := run(ctx, []string{"--locks", "mutex,stocklock", "--shapes", "1x2", "--repeat", "2", "--seconds", "0.1"}, &out, progress)
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
	file := filepath.Join(t.TempDir(), "bench.json")
	var out, log bytes.Buffer
	code := run(t.Context(), []string{"--locks", "mutex,stocklock,setnx-50ms", "--shapes", "pairs", "--sections", "empty", "--repeat", "1", "--seconds", "1", "--json", file}, &out, &log)
	if code != exitMeasured {
		t.Fatalf("exit code %d\n%s\n%s", code, &out, &log)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Cells []struct {
			Locks []struct {
				Lock    string
				Metrics map[string]struct{ Median float64 }
			}
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	ratios := map[string]float64{}
	for _, l := range result.Cells[0].Locks {
		ratios[l.Lock] = l.Metrics["of_raw"].Median
		if l.Metrics["pair_us"].Median <= 0 {
			t.Errorf("%s took %g µs", l.Lock, l.Metrics["pair_us"].Median)
		}
	}
	if len(ratios) != 2 || ratios["setnx-50ms"] < 0.5 || ratios["setnx-50ms"] > 2 || ratios["stocklock"] < 0.5 || ratios["stocklock"] > 4 {
		t.Errorf("ratios %v, want setnx-50ms near 1, and stocklock not far above", ratios)
	}
}

// TestLocksOnSeveralServers measures the locks that need other servers than one Redis. The requests are
// those to all servers of the lock.
func TestLocksOnSeveralServers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.json")
	var out, log bytes.Buffer
	code := run(t.Context(), []string{"--locks", "mutex,redsync-five,rueidislock-two-of-three,etcd", "--shapes", "2x2", "--repeat", "1", "--json", file}, &out, &log)
	if code != exitMeasured {
		t.Fatalf("exit code %d\n%s\n%s", code, &out, &log)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Environment struct{ Etcd string }
		Cells       []struct {
			Locks []struct {
				Lock        string
				LostUpdates float64 `json:"lost_updates"`
				Errors      float64
				Metrics     map[string]struct{ Median float64 }
			}
		}
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	least := map[string]float64{
		"redsync-five":             10, // SET and a script on each of five
		"rueidislock-two-of-three": 6,  // two scripts on each of three
		"etcd":                     4,  // grant, transaction, delete, revoke
	}
	for _, l := range result.Cells[0].Locks {
		want := least[l.Lock]
		delete(least, l.Lock)
		if sent := l.Metrics["redis_requests"].Median; l.LostUpdates != 0 || l.Errors != 0 || l.Metrics["holds_per_second"].Median <= 0 || sent < want || sent > 100 {
			t.Errorf("%s, of at least %g requests: %+v", l.Lock, want, l)
		}
	}
	if len(least) > 0 || result.Environment.Etcd == "" {
		t.Errorf("not measured: %v, on etcd %q", least, result.Environment.Etcd)
	}
}
