package main

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

// status tells how far a run is: on a terminal in one line that keeps changing,
// elsewhere in a plain line for each cell.
type status struct {
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

func newStatus(out io.Writer) *status {
	s := &status{out: out, live: isTerminal(out), begun: time.Now(), running: map[string]time.Time{}, stop: make(chan struct{}), stopped: make(chan struct{})}
	go s.redraw()
	return s
}

func (s *status) redraw() {
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

func (s *status) line() string {
	if s.total == 0 {
		return fmt.Sprintf("%s … %ds", s.what, int(time.Since(s.begun).Seconds()))
	}
	names := slices.Sorted(maps.Keys(s.running))
	return fmt.Sprintf("%d/%d  %ds  %s", s.done, s.total, int(time.Since(s.begun).Seconds()), strings.Join(names, ", "))
}

// say tells what is done before the first cell.
func (s *status) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = what
	if !s.live {
		fmt.Fprintln(s.out, what)
	}
}

func (s *status) begin(total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total = total
}

func label(c trial.Cell) string { return c.Strategy.Name + " " + c.Scenario.Name }

func (s *status) started(c trial.Cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[label(c)] = time.Now()
}

func (s *status) finished(c trial.Cell, r trial.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, label(c))
	s.done++
	if !s.live && err == nil {
		fmt.Fprintf(s.out, "%d/%d  %s: %s, sold %d of %d, %.1fs\n", s.done, s.total, label(c), r.Verdict, r.Sold, r.InitialStock, r.Seconds)
	}
}

// close ends the moving line. It may be called more than once.
func (s *status) close() {
	s.mu.Lock()
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.mu.Unlock()
	<-s.stopped
}
