package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
)

// The feed keeps so much for pages that resume.
const (
	feedEvents = 4000
	feedBytes  = 8 << 20
)

// feed is the server-sent events, in their order. It is safe for concurrent use.
type feed struct {
	epoch string // of this process: ids of another one mean nothing here

	mu      sync.Mutex // guards the rest
	kept    []feedEvent
	first   uint64 // the number of kept[0], from 1
	bytes   int
	changed chan struct{} // closed with the next event
}

type feedEvent struct {
	name string
	data []byte
}

func newFeed() *feed {
	return &feed{epoch: strconv.FormatUint(rand.Uint64(), 36), first: 1, changed: make(chan struct{})}
}

// publish appends an event.
func (f *feed) publish(name string, data any) {
	text := encoded(data)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, feedEvent{name, text})
	f.bytes += len(text)
	drop := 0
	for len(f.kept)-drop > feedEvents || f.bytes > feedBytes {
		f.bytes -= len(f.kept[drop].data)
		drop++
	}
	f.kept, f.first = f.kept[drop:], f.first+uint64(drop)
	close(f.changed)
	f.changed = make(chan struct{})
}

// encoded is an event's data in one line.
func encoded(data any) []byte {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false) // shapes are full of it, and no page has this inside its HTML
	if err := out.Encode(data); err != nil {
		panic(fmt.Sprintf("live: an event: %v", err)) // its type is wrong
	}
	return bytes.TrimSpace(text.Bytes())
}

// last is the number of the newest event, 0 before the first one.
func (f *feed) last() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first + uint64(len(f.kept)) - 1
}

// since returns the events after a number, and a channel that is closed when there are more. It
// reports false where some of them are not kept any more.
func (f *feed) since(number uint64) (events []feedEvent, more <-chan struct{}, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.first + uint64(len(f.kept))
	if number+1 < f.first || number >= next {
		return nil, f.changed, false
	}
	return f.kept[number+1-f.first:], f.changed, true
}

// id is the id of the event with this number.
func (f *feed) id(number uint64) string { return fmt.Sprintf("%s-%d", f.epoch, number) }

// number reads what id has written. It reports false for an id of another process.
func (f *feed) number(id string) (uint64, bool) {
	epoch, text, _ := strings.Cut(id, "-")
	number, err := strconv.ParseUint(text, 10, 64)
	return number, err == nil && epoch == f.epoch
}
