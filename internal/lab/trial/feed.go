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
	changed chan struct{} // closed, and made anew, when there may be something new to see
}

func newFeed() *feed { return &feed{changed: make(chan struct{})} }

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

// find returns the first event for which is reports true.
func (f *feed) find(is func(labmode.Event) bool) (labmode.Event, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.events, is)
	if at < 0 {
		return labmode.Event{}, false
	}
	return f.events[at], true
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

// follow passes on the points that a shop writes to its trace until ctx ends.
func (a *attack) follow(ctx context.Context, shop int) {
	a.traces[shop].follow(ctx, func(line []byte) {
		var e labmode.Event
		if json.Unmarshal(line, &e) == nil && e.Run == a.item.ID {
			e.Shop = explain.ShopName(shop)
			a.feed.add(e)
			a.play.passed(ctx, e)
			a.see(e)
		}
	})
}

// follow passes each line that the shop writes to each, until ctx ends.
func (f traceFile) follow(ctx context.Context, each func(line []byte)) {
	file, err := os.Open(f.path)
	if err != nil {
		return
	}
	defer file.Close()
	if _, err := file.Seek(f.from, io.SeekStart); err != nil {
		return
	}
	FollowTrace(ctx, file, each)
}

// FollowTrace passes each line of a shop's trace to each, as it grows, until ctx ends.
func FollowTrace(ctx context.Context, file io.Reader, each func(line []byte)) {
	lines := bufio.NewReader(file)
	var line []byte
	for {
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
		select {
		case <-ctx.Done():
			return
		case <-time.After(traceEvery):
		}
	}
}
