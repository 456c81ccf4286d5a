package labmode

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stocklock/internal/sale"
)

func TestRecorderWritesWhatReadEventsReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	recorder, err := OpenRecorder(path, "shop \"a\"")
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	ctx := sale.WithHook(context.Background(), recorder.Sale("r-1", 7, "fenced", "run-1"))
	sale.At(ctx, sale.Acquired, slog.Int64("token", 1<<62))
	sale.At(ctx, sale.Read, slog.Int64("stock", -3), slog.String("note", "line\nbreak"))
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	events := read(t, path)
	if len(events) != 2 {
		t.Fatalf("read %d events, want 2: %v", len(events), events)
	}
	for _, e := range events {
		if e.Time.Before(before.Truncate(0)) || e.Time.After(time.Now()) {
			t.Errorf("event at %v, want after %v", e.Time, before)
		}
	}
	want := Event{Time: events[0].Time, Shop: "shop \"a\"", Request: "r-1", Item: 7, Strategy: "fenced", Run: "run-1",
		Point: sale.Acquired, Facts: map[string]any{"token": json.Number("4611686018427387904")}}
	if !reflect.DeepEqual(events[0], want) {
		t.Errorf("first event %+v, want %+v", events[0], want)
	}
	if got := events[1].Facts; got["stock"] != json.Number("-3") || got["note"] != "line\nbreak" {
		t.Errorf("facts of the second event: %v", got)
	}
}

func TestRecordersShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	const shops, sales = 4, 200
	var working sync.WaitGroup
	for shop := range shops {
		recorder, err := OpenRecorder(path, fmt.Sprint(shop))
		if err != nil {
			t.Fatal(err)
		}
		defer recorder.Close()
		for n := range sales {
			working.Go(func() {
				ctx := sale.WithHook(context.Background(), recorder.Sale(fmt.Sprint(n), 1, "none", ""))
				sale.At(ctx, sale.Read)
			})
		}
	}
	working.Wait()
	seen := map[string]int{}
	for _, e := range read(t, path) {
		seen[e.Shop+"/"+e.Request]++
	}
	if len(seen) != shops*sales {
		t.Errorf("%d different events, want %d", len(seen), shops*sales)
	}
}

// TestEventsSurviveKill has a process of its own record and end itself the hard
// way right after.
func TestEventsSurviveKill(t *testing.T) {
	const pathKey = "TRACE_TEST_PATH"
	if path := os.Getenv(pathKey); path != "" {
		recorder, err := OpenRecorder(path, "victim")
		if err != nil {
			t.Fatal(err)
		}
		sale.At(sale.WithHook(context.Background(), recorder.Sale("r-1", 1, "none", "")), sale.Written)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEventsSurviveKill$")
	victim.Env = append(os.Environ(), pathKey+"="+path)
	if out, err := victim.CombinedOutput(); victim.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the victim ended with %v: %s", err, out)
	}
	if events := read(t, path); len(events) != 1 || events[0].Point != sale.Written {
		t.Errorf("events %+v, want one at written", events)
	}
}

func read(t *testing.T, path string) []Event {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	events, err := ReadEvents(file)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// ReadEvents reads a trace, in the order in which it was written.
func ReadEvents(r io.Reader) ([]Event, error) {
	var events []Event
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("trace: line %d: %w", n, err)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}

// BenchmarkSale records all points of a sale.
func BenchmarkSale(b *testing.B) {
	recorder, err := OpenRecorder(filepath.Join(b.TempDir(), "trace.jsonl"), "shop-1")
	if err != nil {
		b.Fatal(err)
	}
	defer recorder.Close()
	b.ReportAllocs()
	for b.Loop() {
		ctx := sale.WithHook(context.Background(), recorder.Sale("123-4567", 123, "fenced", "fenced-contention-1-150405.000000"))
		for _, p := range sale.Points {
			sale.At(ctx, p, slog.Int64("token", 1<<61))
		}
	}
}

// FuzzReadEvents: a trace is read or refused, line by line.
func FuzzReadEvents(f *testing.F) {
	f.Add(`{"t":1,"shop":"a","request":"r","item":7,"strategy":"none","point":"read","stock":3}` + "\n")
	f.Add(`{"t":1.5}`)
	f.Add("{}\n\n{}")
	f.Add(`{"t":1,"T":2,"shop":null,"item":-1}`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, trace string) {
		events, err := ReadEvents(strings.NewReader(trace))
		if err == nil && len(events) > strings.Count(trace, "\n")+1 {
			t.Errorf("%d events in %q", len(events), trace)
		}
		for _, e := range events {
			for _, known := range []string{"t", "shop", "request", "item", "strategy", "run", "point"} {
				if _, ok := e.Facts[known]; ok {
					t.Errorf("%q is a fact in %q", known, trace)
				}
			}
		}
	})
}
