package matrix

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
)

// Status tells how far a run is: on a terminal in one line that keeps changing, elsewhere in a
// plain line for each cell.
type Status struct {
	out   io.Writer
	width int // of the terminal in columns, 0 for none

	stop    func()
	stopped chan struct{}

	mu      sync.Mutex // guards the rest
	begun   time.Time
	what    string // before the first cell
	total   int
	done    int
	running map[string]bool
}

const (
	redrawEvery = 200 * time.Millisecond
	clearLine   = "\r\x1b[2K"
)

// NewStatus writes to out. Width is that of its terminal in columns, and 0 for anything else. [Status.Close] ends it.
func NewStatus(out io.Writer, width int) *Status {
	ctx, stop := context.WithCancel(context.Background())
	s := &Status{out: out, width: width, begun: time.Now(), running: map[string]bool{}, stop: stop, stopped: make(chan struct{})}
	go s.redraw(ctx)
	return s
}

func (s *Status) redraw(ctx context.Context) {
	defer close(s.stopped)
	if s.width == 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			fmt.Fprint(s.out, clearLine, s.line())
			s.mu.Unlock()
		case <-ctx.Done():
			fmt.Fprint(s.out, clearLine)
			return
		}
	}
}

// line is cut where the terminal ends: of a line that wraps, only the last row would be cleared.
func (s *Status) line() string {
	seconds := int(time.Since(s.begun).Seconds())
	if s.total == 0 {
		return tabular.Cut(fmt.Sprintf("%s … %ds", s.what, seconds), s.width)
	}
	names := slices.Sorted(maps.Keys(s.running))
	return tabular.Cut(fmt.Sprintf("%d/%d  %ds  %s", s.done, s.total, seconds, strings.Join(names, ", ")), s.width)
}

// Say tells what is done before the first cell.
func (s *Status) Say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = what
	if s.width == 0 {
		fmt.Fprintln(s.out, what)
	}
}

// Warn prints a line that stays.
func (s *Status) Warn(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.width > 0 {
		fmt.Fprint(s.out, clearLine)
	}
	fmt.Fprintln(s.out, "warning:", line)
}

// begin adds to the cells that are to be run.
func (s *Status) begin(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += more
}

func (s *Status) started(cells ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cell := range cells {
		s.running[cell] = true
	}
}

// finished notes that cells have ended, with results or without.
func (s *Status) finished(cells []string, results []trial.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, cell := range cells {
		delete(s.running, cell)
		s.done++
		if s.width == 0 && i < len(results) {
			r := results[i]
			fmt.Fprintf(s.out, "%d/%d  %s: %s, sold %d of %d, %.1fs\n", s.done, s.total, cell, r.Verdict, r.Sold, r.Stock(), r.Seconds)
		}
	}
}

// Close ends the moving line. It may be called more than once.
func (s *Status) Close() {
	s.stop()
	<-s.stopped
}
