package live

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"
)

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
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		refuse(w, http.StatusServiceUnavailable, "busy", fmt.Sprintf("%d pages watch already: close one", maxStreams))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := stream{w: w, control: http.NewResponseController(w)}
	number, known := s.feed.number(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))
	heartbeat := time.NewTicker(s.heartbeat)
	defer heartbeat.Stop()
	for {
		events, more, ok := s.feed.since(number)
		if !known || !ok {
			state, at := s.state()
			if out.send(s.feed.id(at), "state", encoded(state)) != nil {
				return
			}
			number, known = at, true
			continue
		}
		for _, e := range events {
			number++
			out.add(s.feed.id(number), e.name, e.data)
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
	err := s.control.SetWriteDeadline(time.Now().Add(writeWithin))
	if errors.Is(err, http.ErrNotSupported) {
		err = nil // a recorder of a test
	}
	if err != nil {
		return err
	}
	if _, err := s.buffer.WriteTo(s.w); err != nil {
		return err
	}
	return s.control.Flush()
}
