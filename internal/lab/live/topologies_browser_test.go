package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/words"
	"stocklock/internal/testserver"
)

// TestTopologiesOnThePage chooses a topology, predicts and runs one of its cells, and opens the links of both anew, on
// wide and narrow pages.
func TestTopologiesOnThePage(t *testing.T) {
	s := serve(t, Options{})
	b := browsertest.Open(t, 4*time.Minute)
	b.Run(chromedp.EmulateViewport(1440, 900), theme("light"), chromedp.Navigate(s.link()))
	b.Until(matrixShown)
	const topology, cell = "#/topologies/replica-reads", "fenced/replica-reads-late"
	b.Run(click(`[data-topology=replica-reads]`))
	b.Until(fmt.Sprintf(`location.hash === %q && document.querySelector('[data-cell=%q]')`, topology, cell))
	text := fmt.Sprintf(`document.querySelector('[data-cell=%q]').textContent`, cell)
	if shown := browsertest.Says[string](b, text); shown != "" {
		t.Errorf("before anybody asks, the cell shows %q", shown)
	}
	b.Run(click(`#as-expected`))
	if shown := browsertest.Says[string](b, text); shown != "oversold" {
		t.Errorf("expected is %q", shown)
	}
	b.Run(click(`#as-expected`), click(fmt.Sprintf(`[data-cell=%q]`, cell)))
	b.Until(`document.querySelector('[data-word=oversold]')`)
	b.Run(click(`[data-word=oversold]`))
	b.Until(`document.querySelector('.ended')`)
	r := s.finished(t, 1)
	if r.Verdict != "oversold" || r.Prediction != "oversold" || r.Surprise {
		t.Fatalf("%s, predicted %q: %+v", r.Verdict, r.Prediction, r)
	}
	for what, holds := range map[string]string{
		"the drawing of the explanation": `[...document.querySelectorAll('.walk .names span')].map(e => e.textContent).join() === 'MySQL 1,MySQL 2' && ` + fmt.Sprintf(`document.querySelectorAll('.walk .step').length === %d`, len(r.result.Explanation.Steps)),
		"the cause":                      fmt.Sprintf(`document.querySelector('.cause').textContent === %q`, words.English.Say(r.result.Explanation.Why...)),
		"what was promised":              fmt.Sprintf(`document.getElementById('promised').textContent.includes('%d units of %d')`, r.result.Promised, r.result.InitialStock),
		"the story":                      fmt.Sprintf(`document.querySelectorAll('.story li').length === %d && document.querySelector('.story').textContent.includes('MySQL 2: has caught up')`, len(r.told)),
	} {
		if !browsertest.Says[bool](b, holds) {
			t.Errorf("the page does not show %s", what)
		}
	}
	link := "#/cell/" + cell
	for _, language := range []string{"en", "zh-CN"} {
		if language != "en" {
			b.Run(click("#language"))
			b.Until(`document.documentElement.lang === 'zh-CN'`)
		}
		for _, hash := range []string{topology, link, "#/topologies/all", "#/cell/fenced/async-failover"} {
			b.Run(chromedp.Navigate("about:blank"), chromedp.Navigate(s.home()+hash)) // as somebody opens it to whom it was sent
			open(b, hash)
			shows := `document.querySelector('.ended .cause')`
			switch hash {
			case topology, "#/topologies/all":
				shows = text + fmt.Sprintf(` === '+%d %s✓'`, r.N, r.Promised)
			case "#/cell/fenced/async-failover":
				shows = `document.querySelector('[data-word=lied]')`
			}
			b.Until(shows)
			for _, width := range []int64{360, 1440} {
				b.Run(chromedp.EmulateViewport(width, 900))
				if wide := browsertest.Says[int64](b, `document.documentElement.scrollWidth`); wide > width {
					t.Errorf("%s is %d wide on a screen of %d", hash, wide, width)
				}
			}
			if hash == "#/topologies/all" && language == "en" {
				b.Run(click(`#as-expected`))
				screenshot(t, b, "topologies")
				b.Run(click(`#as-expected`))
			}
		}
	}
	b.Clean(s.home())
}

// TestStrategiesOfACaseShareItsServers: those that wait with the same seed run together, on the same pair of servers.
func TestStrategiesOfACaseShareItsServers(t *testing.T) {
	testserver.NeedsServers(t)
	s := serve(t, Options{})
	const of = "replica-reads-late"
	if _, err := s.enqueue([]wanted{{cellName{"buckets", "async-errant"}, 1, 0}}, nil); err == nil || !strings.Contains(err.Error(), "is no cell of buckets") {
		t.Errorf("a strategy with which the case is no cell is queued: %v", err)
	}
	if _, err := s.enqueue([]wanted{{cellName{"none", of}, 1, 0}, {cellName{"none", "async-failover"}, 1, 0}, {cellName{"conditional", of}, 1, 0},
		{cellName{"fenced", of}, 2, 0}, {cellName{"conditional", of}, 1, 0}}, nil); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int]string{1: "oversold", 2: "lied", 3: "held", 4: "oversold", 5: "held"} {
		if r := s.finished(t, id); string(r.Verdict) != want || r.Promised == "" || len(r.told) == 0 {
			t.Errorf("%s under %s is %s, promised %q, told %q: want %s", r.Strategy, r.Scenario, r.Verdict, r.Promised, r.told, want)
		}
	}
	var order []string
	events, _, _ := s.feed.since(1)
	for _, e := range events {
		var r run
		if e.name == "running" || e.name == "ended" {
			if err := json.Unmarshal(e.data, &r); err != nil {
				t.Fatal(err)
			}
			order = append(order, fmt.Sprint(e.name, " ", r.ID))
		}
	}
	want := "running 1, running 3, ended 1, ended 3, running 2, ended 2, running 4, ended 4, running 5, ended 5"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("the order was %s, want %s", got, want)
	}
}

// TestATopologyThatIsMissing is shown as skipped, with its reason, to who drives and to who watches.
func TestATopologyThatIsMissing(t *testing.T) {
	t.Setenv("TESTSERVER_MYSQL", "/no/such/mysqld")
	address := unservedFor(t)
	watching := browsertest.Open(t, time.Minute)
	for link, b := range map[string]*browsertest.Page{address: watching, address + "#token=" + testToken: watching.Beside()} {
		b.Run(chromedp.Navigate(link))
		b.Until(matrixShown)
		open(b, "#/topologies/galera")
		b.Until(`document.querySelectorAll('.cell-button.skipped').length > 10 && document.querySelectorAll('.cell-button:not(.skipped)').length === 0`)
		if text := browsertest.Says[string](b, `document.querySelector('.servers').textContent`); !strings.Contains(text, "skipped: the server of TESTSERVER_MYSQL is not installed") {
			t.Errorf("the reason reads %q", text)
		}
		if runs := browsertest.Says[int](b, `document.querySelectorAll('main .run').length`); runs != 0 {
			t.Errorf("%d buttons would run what is missing", runs)
		}
		open(b, "#/cell/fenced/galera-failover")
		b.Until(`document.getElementById('skipped') && !document.querySelector('.guesses')`)
	}
}

// TestTheCatalogOfTopologies: what the catalog says is a cell can be predicted, and nothing else.
func TestTheCatalogOfTopologies(t *testing.T) {
	s := unserved(t)
	for _, of := range s.menu.Topologies {
		for _, c := range of.Scenarios {
			for _, st := range s.menu.Strategies {
				_, is := c.Expected[st.Name]
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, request("POST", "/api/predictions", fmt.Sprintf(`{"strategy":%q,"scenario":%q,"word":"held"}`, st.Name, c.Name), "Authorization", "Bearer "+testToken))
				if (w.Code == http.StatusAccepted) != is {
					t.Errorf("%s under %s: %d, and the catalog says %v", st.Name, c.Name, w.Code, is)
				}
			}
		}
	}
}
