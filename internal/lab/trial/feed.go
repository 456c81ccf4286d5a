package trial

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/shop/labmode"
)

// feed has the points that the sales of a cell have passed so far, in the order in which they were
// read from the shops' traces. It is safe for concurrent use.
type feed struct {
	mu      sync.Mutex // guards the rest
	events  []labmode.Event
	changed chan struct{}     // closed, and made anew, when there may be something new to see
	read    map[int]time.Time // up to when each shop's trace is: see reads

	following sync.WaitGroup // of those who read the traces for it
}

func newFeed() *feed { return &feed{changed: make(chan struct{}), read: map[int]time.Time{}} }

// reads notes that all is read that a shop had written to its trace at a time.
func (f *feed) reads(shop int, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read[shop] = at
}

// readAt returns the last of these times, the zero time before the first.
func (f *feed) readAt(shop int) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read[shop]
}

func (f *feed) add(e labmode.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, e)
	f.wake()
}

// poke makes [feed.await] look again.
func (f *feed) poke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake()
}

// wake needs the lock.
func (f *feed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) find(is func(labmode.Event) bool) (labmode.Event, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.events, is)
	if at < 0 {
		return labmode.Event{}, false
	}
	return f.events[at], true
}

func (f *feed) count(is func(labmode.Event) bool) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if is(e) {
			n++
		}
	}
	return n
}

// askEvery is how often a server is asked for what it does not announce.
const askEvery = 5 * time.Millisecond

// await waits until done reports true, or ctx ends. It looks when something has changed, and
// every askEvery, because servers may have to be asked.
func (f *feed) await(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		if done() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		case <-tick.C:
		}
	}
}

// traceEvery is how often a shop's trace is read.
const traceEvery = 2 * time.Millisecond

// follow passes on the points of the group's sales that a shop writes to its trace until ctx ends.
func (g *Group) follow(ctx context.Context, shop int, each func(labmode.Event)) {
	f := g.traces[shop]
	file, err := os.Open(f.path)
	if err != nil {
		return
	}
	defer file.Close()
	if _, err := file.Seek(f.from, io.SeekStart); err != nil {
		return
	}
	followTrace(ctx, file, func(line []byte) {
		var e labmode.Event
		if json.Unmarshal(line, &e) == nil && g.has(e.Run) {
			e.Shop = explain.ShopName(shop)
			each(e)
		}
	}, func(at time.Time) { g.feed.reads(shop, at) })
}

// has reports whether the orders of a run are those of a show.
func (g *Group) has(run string) bool {
	return slices.ContainsFunc(g.Shows, func(s *Show) bool { return s.run == run })
}

// passed notes a point of a crowd's sales.
func (a *attack) passed(e labmode.Event) {
	a.feed.add(e)
	a.play.passed(context.WithoutCancel(a.ctx), e) // what reaches its hold when the attack was interrupted goes on, too
	if a.ctx.Err() == nil {
		a.see(e)
	}
}

// followTrace passes each line of a shop's trace to each, as it grows, until ctx ends. It tells read when it has passed
// on all that was there at a time.
func followTrace(ctx context.Context, file io.Reader, each func(line []byte), read func(at time.Time)) {
	lines := bufio.NewReader(file)
	var line []byte
	for ended := false; ; {
		asked := time.Now()
		part, err := lines.ReadBytes('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			each(line)
			line = line[:0]
			continue
		case !errors.Is(err, io.EOF):
			return
		}
		if read(asked); ended {
			return
		}
		select {
		case <-ctx.Done():
			ended = true // what is there by now is read
		case <-time.After(traceEvery):
		}
	}
}
