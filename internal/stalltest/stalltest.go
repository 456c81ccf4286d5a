// Package stalltest tells a test that failed from one that could not measure, because the machine stood
// still meanwhile. It is for tests that measure real time, where a stall can change what is seen.
package stalltest

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// File is the environment variable with the path of the file to which each test that could not
// measure adds a line. Without it, the test is only skipped. See scripts/test.sh.
const File = "STALLED_TESTS"

// Watch measures for how long the machine let nothing happen. It is safe for concurrent use.
type Watch struct {
	t   testing.TB
	gap atomic.Int64 // the longest, in nanoseconds
}

// Start watches until the test ends.
func Start(t testing.TB) *Watch {
	t.Helper()
	w := &Watch{t: t}
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		w.watch(ended)
	}()
	t.Cleanup(func() {
		close(ended)
		<-stopped
	})
	return w
}

func (w *Watch) watch(ended <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ended:
			return
		case <-tick.C:
			last = w.awake(last, time.Now())
		}
	}
}

const every = 5 * time.Millisecond

// awake notes that this goroutine ran at last, and runs now.
func (w *Watch) awake(last, now time.Time) time.Time {
	w.gap.Store(max(w.gap.Load(), int64(now.Sub(last)-every)))
	return now
}

// Gap returns the longest gap so far.
func (w *Watch) Gap() time.Duration { return time.Duration(w.gap.Load()) }

// Fatalf ends the test: as failed, or as one that could not measure if there was a gap that is longer
// than the test allows for.
func (w *Watch) Fatalf(allowed time.Duration, format string, args ...any) {
	w.t.Helper()
	why := fmt.Sprintf(format, args...)
	if gap := w.Gap(); gap > allowed {
		why = fmt.Sprintf("%s: the machine stood still for %s: %s", w.t.Name(), gap.Round(time.Millisecond), why)
		err := note(why)
		if err == nil {
			w.t.Skip(why)
			return
		}
		why += ": " + err.Error()
	}
	w.t.Fatal(why)
}

// note adds a line to the file. Several processes may do so at once.
func note(line string) error {
	path := os.Getenv(File)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(file, line); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
