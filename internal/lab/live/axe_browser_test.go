package live

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"stocklock/internal/lab/browsertest"
)

// violations runs rules of axe-core in the page, and has what they find in window.found. Three entries of each kind stay
// of a record: axe takes minutes for hundreds that are alike.
func violations(rules string) string {
	return `{ const kinds = {}; document.querySelectorAll('.entries > *').forEach(e => { kinds[e.className] = (kinds[e.className] || 0) + 1; if (kinds[e.className] > 3) e.remove(); }) }
axe.run(document, {resultTypes: ['violations'], ` + rules + `}).then(r => {
  window.found = r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ')).slice(0, 3).join(', '));
}); window.found = null; 0`
}

// The dark theme changes nothing but colours.
const (
	allRules    = `rules: {'target-size': {enabled: true}}`
	colourRules = `runOnly: ['color-contrast', 'link-in-text-block']`
)

// TestAxeFindsNothing holds every view, and the page of a phone, against axe-core, in both themes and languages,
// on a phone and on a wide screen. No view is wider than any of four screens.
func TestAxeFindsNothing(t *testing.T) {
	axe, err := os.ReadFile("../../../scripts/axe/node_modules/axe-core/axe.min.js")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("axe-core is missing: run scripts/axe/install.sh")
	}
	if err != nil {
		t.Fatal(err)
	}
	class, err := CheckClassroom("http://" + browsertest.Elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, Options{Classroom: class})
	b := browsertest.Open(t, 20*time.Minute)
	b.Run(chromedp.Navigate(s.link()))
	b.Until(matrixShown)
	if _, err := s.enqueue([]wanted{{cellName{"set-ex-nx", "pause"}, 1, 0}, {cellName{"fenced", "pause"}, 1, 0}, {cellName{"locks-unsorted", "crossed"}, 1, 0}, {cellName{"fenced", "replica-reads-late"}, 1, 0}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.compare(comparison{Strategies: []string{"none", "conditional"}, Shape: "50,100/1s", Seed: 1}); err != nil {
		t.Fatal(err)
	}
	s.finished(t, 6)
	if _, err := s.ask(subject{cellName: cellName{"reentrant", "pause"}}); err != nil {
		t.Fatal(err)
	}
	look := func(language, hash string) {
		t.Helper()
		of := language + " " + hash
		for _, at := range []struct {
			theme string
			width int64
			rules string // of axe, which takes seconds; empty for none
		}{{"light", 360, allRules}, {"light", 768, ""}, {"light", 1024, ""}, {"light", 1440, allRules}, {"dark", 1440, colourRules}} {
			b.Run(theme(at.theme), chromedp.EmulateViewport(at.width, 900))
			if over := browsertest.Says[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s is %d pixels wider than a screen of %d", of, over, at.width)
			}
			if at.rules == "" || language != "en" && at.width > 360 { // with other words, themes look alike
				continue
			}
			b.Run(chromedp.Evaluate(violations(at.rules), nil))
			b.Until(`window.found !== null`)
			for _, v := range browsertest.Says[[]string](b, `window.found`) {
				t.Errorf("%s, %d, %s: %s", of, at.width, at.theme, v)
			}
		}
	}
	for _, language := range []string{"en", "zh-CN"} {
		if browsertest.Says[string](b, `document.documentElement.lang`) != language {
			b.Run(click("#language"))
			b.Until(`document.documentElement.lang === '` + language + `'`)
		}
		b.Run(chromedp.Evaluate(string(axe)+";0", nil))
		for _, hash := range []string{"#/", "#/lessons", "#/lessons/1/run", "#/lessons/4/explain", "#/lessons/6/change", "#/baskets", "#/reservations", "#/topologies/all", "#/topologies/async", "#/cell/reentrant/pause",
			"#/cell/set-ex-nx/pause", "#/cell/locks-unsorted/crossed", "#/cell/fenced/replica-reads-late", "#/pair/pause/set-ex-nx/fenced", "#/load", "#/step/none/2/A.select%20B.select", "#/mine"} {
			open(b, hash)
			b.Until(`document.querySelector('main h1')`)
			look(language, hash)
		}
	}
	b.Run(chromedp.Navigate(savedAs(t, savedReport(t))), chromedp.Evaluate(string(axe)+";0", nil))
	b.Until(savedShown)
	for _, hash := range []string{"#/", "#/cell/redlock/pause", "#/pair/pause/redlock/fenced", "#/load"} {
		open(b, hash)
		b.Until(`document.querySelector('main h1')`)
		look("en", "saved "+hash)
	}
	for _, name := range []string{"vote", "docs/course/sheet.md", "docs/course/sheet.zh-CN.md", "docs/mistakes/leases.md"} {
		b.Run(chromedp.Navigate(s.home()+name), chromedp.Evaluate(string(axe)+";0", nil))
		b.Until(`document.querySelector('h1')`)
		look("en", name)
	}
}

// TestTheSheetIsShort: each of its three parts fits on a page of paper.
func TestTheSheetIsShort(t *testing.T) {
	address := unservedFor(t)
	b := browsertest.Open(t, 2*time.Minute)
	for _, name := range []string{"sheet.md", "sheet.zh-CN.md"} {
		b.Run(chromedp.Navigate(address + courseFolder + "/" + name))
		if n := sheets(t, b); n > 3 {
			t.Errorf("%s takes %d sheets of A4, want 3 at most", name, n)
		}
	}
}

// sheets is how many sheets of A4 the page takes on paper.
func sheets(t *testing.T, b *browsertest.Page) int {
	t.Helper()
	var paper []byte
	b.Run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		paper, _, err = page.PrintToPDF().WithPaperWidth(8.27).WithPaperHeight(11.69).Do(ctx)
		return err
	}))
	return bytes.Count(paper, []byte("/Type /Page\n"))
}
