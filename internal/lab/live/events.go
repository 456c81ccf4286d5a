package live

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
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

const (
	heartbeatEvery = 5 * time.Second
	// maxStreams bounds how many pages watch at once.
	maxStreams = 200
	// writeWithin bounds how long a page may take to read an event. A page that is slower is cut
	// off, and resumes.
	writeWithin = 20 * time.Second
)

// serveEvents sends the events to one page until it is closed.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	serveFeed(s, w, r, s.feed, s.streams, func() (string, any, uint64) {
		state, at := s.state()
		return "state", state, at
	})
}

// serveFeed sends the events of a feed until who listens leaves. Streams has a place for each who may.
// Whole returns an event for one that has not heard those before, and the number that it stands for.
func serveFeed(s *Server, w http.ResponseWriter, r *http.Request, feed *feed, streams chan struct{}, whole func() (string, any, uint64)) {
	select {
	case streams <- struct{}{}:
		defer func() { <-streams }()
	default:
		refuse(w, http.StatusServiceUnavailable, "busy", fmt.Errorf("%d pages watch already: close one", cap(streams)))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := stream{w: w, control: http.NewResponseController(w)}
	number, known := feed.number(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))
	heartbeat := time.NewTicker(s.heartbeat)
	defer heartbeat.Stop()
	for {
		events, more, ok := feed.since(number)
		if !known || !ok {
			name, data, at := whole()
			if out.send(feed.id(at), name, encoded(data)) != nil {
				return
			}
			number, known = at, true
			continue
		}
		for _, e := range events {
			number++
			out.add(feed.id(number), e.name, e.data)
		}
		if out.flush() != nil {
			return
		}
		select {
		case <-more:
		case <-heartbeat.C:
			if out.send("", "heartbeat", []byte(`{}`)) != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer
}

func (s *stream) add(id, name string, data []byte) {
	if id != "" {
		fmt.Fprintf(&s.buffer, "id: %s\n", id)
	}
	fmt.Fprintf(&s.buffer, "event: %s\ndata: %s\n\n", name, data)
}

func (s *stream) send(id, name string, data []byte) error {
	s.add(id, name, data)
	return s.flush()
}

func (s *stream) flush() error {
	// A recorder of a test supports none.
	if err := s.control.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.buffer.WriteTo(s.w); err != nil {
		return err
	}
	return s.control.Flush()
}
