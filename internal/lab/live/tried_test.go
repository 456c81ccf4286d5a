package live

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/verdict"
)

var tried = report.Tried{
	Version: report.TriedVersion, Service: "python-shop", Time: "2026-01-02T03:04:05Z",
	Parts: []report.TriedPart{{Part: "contention", Verdict: verdict.Oversold, Reason: "21 units in orders for a stock of 20"}},
}

// TestKeptResultsOfATry are answered to everyone who can open it. What is not kept is not there.
func TestKeptResultsOfATry(t *testing.T) {
	s := unserved(t)
	s.o.Tried = []report.Tried{tried}
	for path, want := range map[string]int{"/api/tried/1": http.StatusOK, "/api/tried/2": http.StatusNotFound, "/api/tried/0": http.StatusNotFound, "/api/tried/x": http.StatusNotFound} {
		got := httptest.NewRecorder()
		s.Handler().ServeHTTP(got, request("GET", path, ""))
		if got.Code != want || want == http.StatusOK && (!strings.Contains(got.Body.String(), "21 units in orders")) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
}

// TestKeptResultsInTheBrowser: the page leads to a kept result.
func TestKeptResultsInTheBrowser(t *testing.T) {
	s := serve(t, Options{Tried: []report.Tried{tried}})
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(s.home()), chromedp.WaitVisible("a.tried", chromedp.ByQuery))
	if said := browsertest.Says[string](b, `document.querySelector('a.tried').textContent`); said != "Tried: python-shop, oversold" {
		t.Errorf("the link says %q", said)
	}
	b.Run(chromedp.Click("a.tried", chromedp.ByQuery), chromedp.WaitVisible("h1 .v.oversold", chromedp.ByQuery))
}
