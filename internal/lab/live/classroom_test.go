package live

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/mistakes"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/ladder"
)

const classHost = "192.168.1.20:8080"

// unservedClass is a server with a class, which runs nothing.
func unservedClass(t *testing.T) *Server {
	t.Helper()
	class, err := CheckClassroom("http://" + classHost)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Shop: &catalog.Catalog{Strategies: ladder.Describe(ladder.All())}, Token: testToken, Classroom: class})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func send(s *Server, r *http.Request) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second) // a stream ends with its request
	defer cancel()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r.WithContext(ctx))
	return w
}

// phone opens the page of the votes, and returns its cookie.
func phone(t *testing.T, s *Server) string {
	t.Helper()
	w := send(s, request("GET", votePage, "", "Host", classHost))
	cookies := w.Result().Cookies()
	if w.Code != http.StatusOK || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteLaxMode {
		t.Fatalf("the page of the votes: %d, cookies %v", w.Code, cookies)
	}
	return phoneCookie + "=" + cookies[0].Value
}

func says(s *Server, cookie string, ballot int, word string) int {
	return send(s, request("POST", "/api/votes", fmt.Sprintf(`{"ballot":%d,"word":%q}`, ballot, word), "Host", classHost, "Cookie", cookie)).Code
}

// TestPhonesVoteAndDoNothingElse: under the address of the class there is the vote alone, with a token, too.
func TestPhonesVoteAndDoNothingElse(t *testing.T) {
	s := unservedClass(t)
	for _, path := range []string{"/api/catalog", "/api/events", "/api/runs/1", "/api/course", "/docs/glossary.md"} {
		if w := send(s, request("GET", path, "", "Host", classHost)); w.Code != http.StatusForbidden {
			t.Errorf("a phone gets %s: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/api/runs", "/api/ballots", "/api/positions", "/api/token", "/api/loads"} {
		if w := send(s, request("POST", path, oneCell, "Host", classHost, "Authorization", "Bearer "+testToken)); w.Code != http.StatusForbidden {
			t.Errorf("a phone may send %s: %d", path, w.Code)
		}
	}
	if w := send(s, request("GET", "/", "", "Host", classHost)); w.Code != http.StatusFound || w.Header().Get("Location") != votePage {
		t.Errorf("the address leads a phone to %d %q", w.Code, w.Header().Get("Location"))
	}
	if w := send(s, request("POST", "/api/votes", `{}`, "Host", classHost, "Origin", "http://evil.example")); w.Code != http.StatusForbidden {
		t.Errorf("another site votes: %d", w.Code)
	}
	if w := send(s, request("POST", "/api/votes", `{"ballot":1,"word":"`+strings.Repeat("x", maxVote)+`"}`, "Host", classHost)); w.Code != http.StatusBadRequest {
		t.Errorf("a vote of more than %d bytes: %d", maxVote, w.Code)
	}
	if w := send(s, request("GET", "/api/catalog", "")); w.Code != http.StatusOK {
		t.Errorf("this machine gets %d", w.Code)
	}
	for _, path := range []string{"/vote", "/api/ballot"} {
		if w := send(unserved(t), request("GET", path, "")); w.Code != http.StatusNotFound {
			t.Errorf("without --classroom, %s answers %d", path, w.Code)
		}
	}
	if w := send(unserved(t), request("POST", "/api/votes", `{"ballot":1,"word":"held"}`)); w.Code != http.StatusUnauthorized {
		t.Errorf("without --classroom, a vote is answered with %d", w.Code)
	}
}

// TestOneVoteAPhone: the last word of each phone counts, until the run begins.
func TestOneVoteAPhone(t *testing.T) {
	s := unservedClass(t)
	a, b := phone(t, s), phone(t, s)
	if code := says(s, a, 1, "held"); code != http.StatusConflict {
		t.Errorf("a vote on nothing: %d", code)
	}
	cell := cellName{"none", "contention"}
	if _, err := s.ask(subject{cellName: cell}); err != nil {
		t.Fatal(err)
	}
	now := s.class.now.ID
	if now < int(time.Now().Add(-time.Hour).Unix()) {
		t.Errorf("a phone can know ballot %d of a lab before", now)
	}
	for _, tt := range []struct {
		name, cookie, word string
		ballot, want       int
	}{
		{"the first phone", a, "held", now, http.StatusOK},
		{"the same phone", a, "held", now, http.StatusOK},
		{"the same phone, otherwise", a, "oversold", now, http.StatusOK},
		{"the second phone", b, "held", now, http.StatusOK},
		{"no phone", "", "held", now, http.StatusForbidden},
		{"a made-up phone", phoneCookie + "=x", "held", now, http.StatusForbidden},
		{"no verdict", b, "perhaps", now, http.StatusBadRequest},
		{"another ballot", b, "held", now + 1, http.StatusConflict},
	} {
		if code := says(s, tt.cookie, tt.ballot, tt.word); code != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, code, tt.want)
		}
	}
	if got := s.class.tally().Votes; !maps.Equal(got, map[string]int{"oversold": 1, "held": 1}) {
		t.Errorf("the votes are %v", got)
	}
	s.mu.Lock()
	s.began(cellName{"mutex", "contention"}, "")
	if !s.class.now.Open {
		t.Error("the run of another cell ended the vote")
	}
	s.began(cell, "")
	s.mu.Unlock()
	if code := says(s, b, now, "oversold"); code != http.StatusConflict {
		t.Errorf("a vote after the run began: %d", code)
	}
	added, err := s.enqueue([]wanted{{cell, 1, 0}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []verdict.Kind{verdict.Invalid, verdict.Oversold} {
		s.end(added[0], how)
		if got := s.class.now.Verdict; got != how && how != verdict.Invalid || got == verdict.Invalid {
			t.Errorf("the class is told %q of what was %s", got, how)
		}
	}
	if _, err := s.ask(subject{cellName: cell}); err != nil || len(s.class.tally().Votes) != 0 {
		t.Errorf("the next vote begins with %v, %v", s.class.tally().Votes, err)
	}
	last := 0
	for i := range maxChanges + 1 {
		last = says(s, a, now+1, []string{"held", "oversold"}[i%2])
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("a vote was changed %d times, and the last time answered with %d", maxChanges+1, last)
	}
	if _, err := s.ask(subject{cellName: cellName{"none", "nothing"}}); err == nil {
		t.Error("the class is asked about a cell that does not exist")
	}
	added[0].State = running
	if _, err := s.ask(subject{cellName: cell}); err == nil {
		t.Error("the class is asked about a cell that runs")
	}
}

// TestPhonesAreBounded: there is no place for one more than the most.
func TestPhonesAreBounded(t *testing.T) {
	s := unservedClass(t)
	first := phone(t, s)
	if w := send(s, request("GET", votePage, "", "Host", classHost, "Sec-Fetch-Dest", "image")); w.Code != http.StatusForbidden || len(s.class.phones) != 1 {
		t.Errorf("an image of another site: %d, and %d phones", w.Code, len(s.class.phones))
	}
	for range maxPhones - 1 {
		phone(t, s)
	}
	if w := send(s, request("GET", votePage, "", "Host", classHost)); w.Code != http.StatusServiceUnavailable {
		t.Errorf("the phone after the last place: %d", w.Code)
	}
	if w := send(s, request("GET", votePage, "", "Host", classHost, "Cookie", first)); w.Code != http.StatusOK || len(w.Result().Cookies()) != 0 {
		t.Errorf("a phone that has its place opens the page anew: %d, %v", w.Code, w.Result().Cookies())
	}
}

func TestTheAddressOfAClass(t *testing.T) {
	for address, want := range map[string]string{
		"http://192.168.1.20:8080":  "http://192.168.1.20:8080/vote",
		"https://lab.example.com/":  "https://lab.example.com/vote",
		"192.168.1.20:8080":         "",
		"ftp://lab.example.com":     "",
		"http://":                   "",
		"http://lab.example.com/a":  "",
		"http://lab.example.com?a":  "",
		"http://a:b@lab.example/":   "",
		"http://lab.example.com/#a": "",
	} {
		got, err := CheckClassroom(address)
		if want == "" && (err == nil || strings.Contains(err.Error(), "\n")) || want != "" && (err != nil || got.String() != want) {
			t.Errorf("%q is %v, %v, want %q", address, got, err, want)
		}
	}
}

// TestTheCourseIsRead: both languages have the same lessons, steps and commands, and no link of a lesson leads
// to what this server does not have.
func TestTheCourseIsRead(t *testing.T) {
	for suffix, course := range courses {
		body := string(course().body)
		if strings.Count(body, `"number":`) != 11 {
			t.Errorf("the course has %d lessons in the pages %s", strings.Count(body, `"number":`), suffix)
		}
		if !strings.Contains(body, `\u003cdetails\u003e`) {
			t.Error("the answers are not folded")
		}
		if !strings.Contains(body, `href=\"#/lessons/3\"`) || strings.Contains(body, `href=\"../`) {
			t.Errorf("links of lessons are not views of the page, in %s", suffix)
		}
	}
}

var anchor = regexp.MustCompile(`<a href="([^"]*)"`)

// TestLinksOfPagesLeadToPages: a page of the documentation has no link that is answered with JSON.
func TestLinksOfPagesLeadToPages(t *testing.T) {
	s := unserved(t)
	for _, page := range []string{"/docs/mistakes/leases.md", "/docs/course/4-time.md", "/docs/course/README.md", "/docs/choose.md", "/docs/schedules.md"} {
		w := send(s, request("GET", page, ""))
		links := 0
		for _, m := range anchor.FindAllStringSubmatch(w.Body.String(), -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if to == "" || strings.HasPrefix(to, "http") {
				continue
			}
			links++
			if w := send(s, request("GET", to, "")); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
				t.Errorf("%s links to %s: %d %s", page, to, w.Code, w.Header().Get("Content-Type"))
			}
		}
		if w.Code != http.StatusOK || links == 0 {
			t.Errorf("%s: %d, %d links", page, w.Code, links)
		}
	}
	for _, name := range mistakes.Names() {
		for _, language := range []string{"en", "zh-CN"} {
			address, heading, _ := strings.Cut(mistakes.Section(name, language), "#")
			if w := send(s, request("GET", "/"+address, "")); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), ` id="`+heading+`"`) {
				t.Errorf("%s: %d, or no such heading", mistakes.Section(name, language), w.Code)
			}
		}
	}
	for old, now := range map[string]string{
		"/docs/strategies/setnx.md": "/docs/mistakes/leases.md#setnx", "/docs/scenarios/pause.zh-CN.md": "/docs/mistakes/leases.zh-CN.md#pause",
		"/docs/live.md": "/docs/using.md",
	} {
		if w := send(s, request("GET", old, "")); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != now {
			t.Errorf("%s: %d, leads to %q, want %q", old, w.Code, w.Header().Get("Location"), now)
		}
	}
	if w := send(s, request("GET", "/docs/nothing.md", "")); w.Code != http.StatusNotFound || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Errorf("a page that is missing is answered with %d %s", w.Code, w.Header().Get("Content-Type"))
	}
}
