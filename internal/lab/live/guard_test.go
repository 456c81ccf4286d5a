package live

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/ladder"
)

const testToken = "token-of-the-tests"

// unserved is a server that answers, and runs nothing.
func unserved(t *testing.T) *Server {
	t.Helper()
	s, err := New(Options{Shop: &catalog.Catalog{Strategies: ladder.Describe(ladder.All())}, Token: testToken, Hosts: []string{"lab.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8080"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

const oneCell = `{"cells":[{"strategy":"none","scenario":"contention","seed":1}]}`

// TestWhoStartsSomething: a request from another origin, with a forged Host, or without the token
// starts nothing.
func TestWhoStartsSomething(t *testing.T) {
	token := "Bearer " + testToken
	for _, tt := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"the page itself", []string{"Authorization", token, "Origin", "http://127.0.0.1:8080", "Sec-Fetch-Site", "same-origin"}, http.StatusAccepted},
		{"a program", []string{"Authorization", token}, http.StatusAccepted},
		{"any port of the loopback", []string{"Authorization", token, "Host", "localhost:9999"}, http.StatusAccepted},
		{"IPv6", []string{"Authorization", token, "Host", "[::1]:8080"}, http.StatusAccepted},
		{"a name that was given", []string{"Authorization", token, "Host", "LAB.example.com"}, http.StatusAccepted},
		{"no token", nil, http.StatusUnauthorized},
		{"another token", []string{"Authorization", "Bearer token-of-the-testt"}, http.StatusUnauthorized},
		{"the token otherwise", []string{"Authorization", testToken}, http.StatusUnauthorized},
		{"another origin", []string{"Authorization", token, "Origin", "http://evil.example"}, http.StatusForbidden},
		{"another port", []string{"Authorization", token, "Origin", "http://127.0.0.1:1"}, http.StatusForbidden},
		{"another site, as the browser says", []string{"Authorization", token, "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"no origin that could be named", []string{"Authorization", token, "Origin", "null"}, http.StatusForbidden},
		{"a forged Host", []string{"Authorization", token, "Host", "evil.example"}, http.StatusForbidden},
		{"a Host that begins like ours", []string{"Authorization", token, "Host", "127.0.0.1.evil.example"}, http.StatusForbidden},
		{"a Host that ends like ours", []string{"Authorization", token, "Host", "notlocalhost"}, http.StatusForbidden},
		{"a form of another site", []string{"Authorization", token, "Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := unserved(t)
			for path, body := range map[string]string{"/api/runs": oneCell, "/api/loads": `{"strategies":["none"],"seed":1}`} {
				w := httptest.NewRecorder()
				before := len(s.runs)
				s.Handler().ServeHTTP(w, request("POST", path, body, tt.headers...))
				started := len(s.runs) > before
				if w.Code != tt.want || started != (tt.want == http.StatusAccepted) {
					t.Errorf("%s: %d %s, started %v, want %d", path, w.Code, w.Body, started, tt.want)
				}
			}
		})
	}
}

// TestAForgedHostReadsNothing: otherwise a page of another site could read by DNS rebinding.
func TestAForgedHostReadsNothing(t *testing.T) {
	s := unserved(t)
	for _, path := range []string{"/", "/api/catalog", "/api/events", "/api/runs/1"} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, request("GET", path, "", "Host", "evil.example"))
		if w.Code != http.StatusForbidden {
			t.Errorf("GET %s with a forged Host: %d", path, w.Code)
		}
	}
}

// TestLimits: what is too much, or is not there, is refused and starts nothing.
func TestLimits(t *testing.T) {
	cells := strings.Repeat(`{"strategy":"none","scenario":"contention","seed":1},`, unserved(t).mostWaiting())
	for _, tt := range []struct {
		name, method, path, body string
		want                     int
	}{
		{"no cells", "POST", "/api/runs", `{"cells":[]}`, http.StatusBadRequest},
		{"too many cells", "POST", "/api/runs", `{"cells":[` + cells + oneCell[len(`{"cells":[`):], http.StatusTooManyRequests},
		{"a strategy that there is not", "POST", "/api/runs", `{"cells":[{"strategy":"magic","scenario":"pause","seed":1}]}`, http.StatusBadRequest},
		{"a scenario that there is not", "POST", "/api/runs", `{"cells":[{"strategy":"none","scenario":"magic","seed":1}]}`, http.StatusBadRequest},
		{"a field that there is not", "POST", "/api/runs", `{"cells":[],"shell":"rm"}`, http.StatusBadRequest},
		{"a large body", "POST", "/api/runs", `{"cells":[` + strings.Repeat(" ", maxBody), http.StatusBadRequest},
		{"a word that is no verdict", "POST", "/api/predictions", `{"strategy":"none","scenario":"pause","word":"fine"}`, http.StatusBadRequest},
		{"a load without an end", "POST", "/api/loads", `{"strategies":["none"],"shape":"200"}`, http.StatusBadRequest},
		{"a load that is too long", "POST", "/api/loads", `{"strategies":["none"],"shape":"100/2m"}`, http.StatusBadRequest},
		{"too large a load", "POST", "/api/loads", `{"strategies":["none"],"shape":"90000/10s"}`, http.StatusBadRequest},
		{"less demand than stock", "POST", "/api/loads", `{"strategies":["none"],"shape":"10/2s","stock":100}`, http.StatusBadRequest},
		{"a step that there is not", "POST", "/api/positions", `{"strategy":"none","customers":2,"schedule":"A select"}`, http.StatusBadRequest},
		{"too many customers", "POST", "/api/positions", `{"strategy":"none","customers":4,"schedule":""}`, http.StatusBadRequest},
		{"a strategy that cannot be stepped", "POST", "/api/positions", `{"strategy":"redlock","customers":2,"schedule":""}`, http.StatusBadRequest},
		{"a run that there is not", "GET", "/api/runs/7", "", http.StatusNotFound},
		{"a page outside", "GET", "/docs/../go.mod", "", http.StatusTemporaryRedirect},
		{"a page that there is not", "GET", "/docs/strategies/magic.md", "", http.StatusNotFound},
	} {
		s := unserved(t)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, request(tt.method, tt.path, tt.body, "Authorization", "Bearer "+testToken))
		if w.Code != tt.want || len(s.runs) > 0 {
			t.Errorf("%s: %d %s and %d runs, want %d and none", tt.name, w.Code, w.Body, len(s.runs), tt.want)
		}
	}
}

// TestTheWholeMatrixFits: what runs all of it is not refused. A comparison that is refused is none.
func TestTheWholeMatrixFits(t *testing.T) {
	s := unserved(t)
	post := func(path string, body any) int {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, request("POST", path, string(encoded(body)), "Authorization", "Bearer "+testToken))
		return w.Code
	}
	var cells []wanted
	for _, sc := range s.menu.Scenarios {
		for _, st := range s.menu.Strategies {
			cells = append(cells, wanted{cellName{st.Name, sc.Name}, 1, 0})
		}
	}
	if code := post("/api/runs", map[string]any{"cells": cells}); code != http.StatusAccepted {
		t.Fatalf("%d cells: %d", len(cells), code)
	}
	s.drop()
	if _, err := s.enqueue(slices.Repeat([]wanted{{cellName{"none", trial.Contention}, 1, 0}}, s.mostWaiting()), nil); err != nil {
		t.Fatal(err)
	}
	before := s.feed.last()
	code := post("/api/loads", comparison{Strategies: []string{"none"}, Seed: 1})
	if now, _ := s.state(); code != http.StatusTooManyRequests || len(now.Loads) > 0 || s.feed.last() != before {
		t.Errorf("a comparison that does not fit: %d, and %d comparisons, %d events", code, len(now.Loads), s.feed.last()-before)
	}
}

func TestTokensThatAreRefused(t *testing.T) {
	for token, want := range map[string]string{"short": "16 characters", "correct horse battery": "letters, digits", "一二三四五六七八九十": "letters, digits", "sixteen&characters": "letters, digits"} {
		if _, err := New(Options{Shop: &catalog.Catalog{}, Token: token}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want to hear %s", token, err, want)
		}
	}
}
