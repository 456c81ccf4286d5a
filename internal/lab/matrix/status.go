package matrix

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/trial"
)

// Status tells how far a run is: on a terminal in one line that keeps changing, elsewhere in a
// plain line for each cell.
type Status struct {
	out  io.Writer
	live bool

	mu      sync.Mutex // guards the rest
	begun   time.Time
	what    string // before the first cell
	total   int
	done    int
	running map[string]time.Time
	stop    chan struct{}
	stopped chan struct{}
}

const (
	redrawEvery = 200 * time.Millisecond
	lineWidth   = 78
	clearLine   = "\r\x1b[2K"
)

// NewStatus writes to out. live says that it is a terminal. [Status.Close] ends it.
func NewStatus(out io.Writer, live bool) *Status {
	s := &Status{out: out, live: live, begun: time.Now(), running: map[string]time.Time{}, stop: make(chan struct{}), stopped: make(chan struct{})}
	go s.redraw()
	return s
}

func (s *Status) redraw() {
	defer close(s.stopped)
	if !s.live {
		<-s.stop
		return
	}
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			line := []rune(s.line())
			s.mu.Unlock()
			fmt.Fprint(s.out, clearLine, string(line[:min(len(line), lineWidth)]))
		case <-s.stop:
			fmt.Fprint(s.out, clearLine)
			return
		}
	}
}

func (s *Status) line() string {
	if s.total == 0 {
		return fmt.Sprintf("%s … %ds", s.what, int(time.Since(s.begun).Seconds()))
	}
	names := slices.Sorted(maps.Keys(s.running))
	return fmt.Sprintf("%d/%d  %ds  %s", s.done, s.total, int(time.Since(s.begun).Seconds()), strings.Join(names, ", "))
}

// Say tells what is done before the first cell.
func (s *Status) Say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = what
	if !s.live {
		fmt.Fprintln(s.out, what)
	}
}

// Warn prints a line that stays.
func (s *Status) Warn(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live {
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
		s.running[cell] = time.Now()
	}
}

// finished notes that cells have ended, with results or without.
func (s *Status) finished(cells []string, results []trial.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, cell := range cells {
		delete(s.running, cell)
		s.done++
		if !s.live && i < len(results) {
			r := results[i]
			fmt.Fprintf(s.out, "%d/%d  %s: %s, sold %d of %d, %.1fs\n", s.done, s.total, cell, r.Verdict, r.Sold, r.Stock(), r.Seconds)
		}
	}
}

// Close ends the moving line. It may be called more than once.
func (s *Status) Close() {
	s.mu.Lock()
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.mu.Unlock()
	<-s.stopped
}
