package measure

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stocklock/bench/worker"
)

// Shape says which processes and goroutines compete for the lock, and how.
type Shape struct {
	Name       string
	Processes  int
	Goroutines int           // per process
	Delay      time.Duration // added to each round trip to Redis
	Pause      time.Duration // of each goroutine, between a release and the next acquisition
	Hold       int           // number of different locks held at once; 0 for one contended lock
	Pairs      bool          // one goroutine alternates between the lock, [Raw] and bsm-redislock
	Form       worker.Form   // of the holds of Pairs
}

var shapeForm = regexp.MustCompile(`^(?:(\d+)x(\d+)(?:\+([^/\s]+))?(?:/([^/\s]+))?|hold-(\d+))$`)

// Limits of a shape, so that one machine can run it.
const (
	maxProcesses  = 128
	maxGoroutines = 4096 // of all processes
	maxHold       = 100_000
	maxDelay      = 100 * time.Millisecond
	maxPause      = time.Second
)

// Raw is the cheapest lock on Redis without contention: one SET NX PX, and a script that compares
// and deletes.
const Raw = "setnx-1ms"

// ParseShape parses PROCESSESxGOROUTINES[+DELAY][/PAUSE], hold-LOCKS, pairs, pairs-cancellable, or pairs-wait.
func ParseShape(name string) (Shape, error) {
	for _, form := range []worker.Form{worker.Plain, worker.Cancellable, worker.Wait} {
		if name == strings.TrimSuffix("pairs-"+string(form), "-") {
			return Shape{Name: name, Processes: 1, Goroutines: 1, Pairs: true, Form: form}, nil
		}
	}
	m := shapeForm.FindStringSubmatch(name)
	if m == nil {
		return Shape{}, fmt.Errorf("shape %q: want PROCESSESxGOROUTINES such as 4x8, with added latency such as 4x8+500us or a pause between two holds such as 8x1/1ms; hold-LOCKS such as hold-1000; pairs, pairs-cancellable or pairs-wait", name)
	}
	s := Shape{Name: name}
	var err error
	if m[3] != "" {
		if s.Delay, err = time.ParseDuration(m[3]); err != nil || s.Delay <= 0 || s.Delay > maxDelay {
			return Shape{}, fmt.Errorf("shape %q: want added latency of at most %s", name, maxDelay)
		}
	}
	if m[4] != "" {
		if s.Pause, err = time.ParseDuration(m[4]); err != nil || s.Pause <= 0 || s.Pause > maxPause {
			return Shape{}, fmt.Errorf("shape %q: want a pause of at most %s", name, maxPause)
		}
	}
	if m[5] != "" {
		s.Processes, s.Goroutines = 1, 1
		if s.Hold, err = strconv.Atoi(m[5]); err != nil || s.Hold < 1 || s.Hold > maxHold {
			return Shape{}, fmt.Errorf("shape %q: want 1 to %d locks", name, maxHold)
		}
		return s, nil
	}
	s.Processes, _ = strconv.Atoi(m[1])
	s.Goroutines, _ = strconv.Atoi(m[2])
	if s.Processes < 1 || s.Processes > maxProcesses || s.Goroutines < 1 || s.Goroutines > maxGoroutines || s.Processes*s.Goroutines > maxGoroutines {
		return Shape{}, fmt.Errorf("shape %q: want 1 to %d processes, and at most %d goroutines in all", name, maxProcesses, maxGoroutines)
	}
	return s, nil
}

// local returns the shape with all goroutines in one process, for locks that work only inside one.
func (s Shape) local() Shape {
	s.Goroutines, s.Processes = s.Processes*s.Goroutines, 1
	return s
}
