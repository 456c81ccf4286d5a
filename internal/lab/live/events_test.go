package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stocklock/internal/testserver"
)

// received is one server-sent event as a page gets it.
type received struct{ id, name, data string }

// listen reads events from a server until enough says so, resuming after an id.
func listen(t *testing.T, url, after string, enough func(received) bool) (all []received) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var e received
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, feedBytes)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			all = append(all, e)
			if enough(e) {
				return all
			}
			e = received{}
		}
	}
	t.Fatalf("the stream ended after %d events: %v", len(all), lines.Err())
	return nil
}

func names(all []received) string {
	var b strings.Builder
	for _, e := range all {
		if e.name != "heartbeat" {
			fmt.Fprintf(&b, "%s ", e.name)
		}
	}
	return strings.TrimSpace(b.String())
}

// TestAPageThatWasCutOff hears what happened meanwhile, each event once and in order.
func TestAPageThatWasCutOff(t *testing.T) {
	s := unserved(t)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	defer close(s.ended)
	first := listen(t, server.URL, "", func(e received) bool { return e.name == "state" })
	last := first[0].id
	for n := range 50 {
		s.say(fmt.Sprint("meanwhile ", n))
	}
	then := listen(t, server.URL, last, func(e received) bool { return strings.Contains(e.data, "meanwhile 49") })
	if len(then) != 50 || strings.Contains(names(then), "state") {
		t.Fatalf("%d events after the cut, %s: want the 50 that were missed", len(then), names(then))
	}
	for n, e := range then {
		if want := fmt.Sprintf(`"meanwhile %d"`, n); e.data != want {
			t.Errorf("event %d after the cut is %s, want %s", n, e.data, want)
		}
	}
}

// TestAPageThatComesLate gets the state as a whole where its id is older than what is kept, or of
// another process, or from the future.
func TestAPageThatComesLate(t *testing.T) {
	s := unserved(t)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	defer close(s.ended)
	old := s.feed.id(s.feed.last())
	if err := s.predict(prediction{cellName{"none", "pause"}, "oversold"}); err != nil {
		t.Fatal(err)
	}
	for range feedEvents {
		s.say("more")
	}
	for _, id := range []string{old, "other-3", s.feed.id(s.feed.last() + 5), "nonsense"} {
		got := listen(t, server.URL, id, func(e received) bool { return e.name == "state" })
		var now state
		if err := json.Unmarshal([]byte(got[0].data), &now); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1 || len(now.Predictions) != 1 || now.Predictions[0].Word != "oversold" {
			t.Errorf("after id %s: %s with %+v, want the state first, with the prediction", id, names(got), now.Predictions)
		}
	}
}

func TestTheFeedIsBounded(t *testing.T) {
	f := newFeed()
	for range 40 {
		f.publish("large", strings.Repeat("x", feedBytes/20))
	}
	if f.bytes > feedBytes || len(f.kept) > 20 {
		t.Errorf("%d events of %d bytes are kept, want at most %d bytes", len(f.kept), f.bytes, feedBytes)
	}
	if _, _, ok := f.since(1); ok {
		t.Error("an event that is not kept can be resumed after")
	}
}

// TestASilentServerIsAlive: a page knows by heartbeats that the connection stands.
func TestASilentServerIsAlive(t *testing.T) {
	s := unserved(t)
	s.heartbeat = 20 * time.Millisecond
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	defer close(s.ended)
	beats := 0
	listen(t, server.URL, "", func(e received) bool {
		if e.name == "heartbeat" {
			beats++
		}
		return beats == 3
	})
}

// TestAClosedPageCostsNothing: its place is free again.
func TestAClosedPageCostsNothing(t *testing.T) {
	s := unserved(t)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	defer close(s.ended)
	for range 3 {
		listen(t, server.URL, "", func(received) bool { return true })
	}
	testserver.Await(t, "pages that are closed to be left alone", func() bool { return len(s.streams) == 0 })
}
