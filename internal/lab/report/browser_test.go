package report

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/ladder"
)

// pageFile writes the saved results as a page, and returns its address.
func pageFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := saved(t).WriteFile(path, Report.HTML); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// TestPageInTheBrowser goes from the matrix to a violation and back, by mouse and by keyboard, in
// both themes, from disk.
func TestPageInTheBrowser(t *testing.T) {
	for _, theme := range []string{"light", "dark"} {
		t.Run(theme, func(t *testing.T) {
			b := browsertest.Open(t, 2*time.Minute)
			b.Run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
				chromedp.Navigate(pageFile(t)), chromedp.WaitVisible(`#overview .matrix`, chromedp.ByQuery))
			paper := browsertest.Says[string](b, `getComputedStyle(document.body).backgroundColor`)
			if dark := paper != "rgb(255, 255, 255)"; dark != (theme == "dark") {
				t.Errorf("the paper is %s, want that of the theme %s", paper, theme)
			}
			if browsertest.Says[bool](b, `document.querySelector('.cell:target') !== null`) {
				t.Error("a cell is open at the start")
			}
			if loud := browsertest.Says[string](b, `document.querySelector('.matrix .surprise').textContent`); !strings.HasPrefix(loud, "!!") {
				t.Errorf("the surprise reads %q in the matrix", loud)
			}

			const cell = `article[id="set-ex-nx:late-release"]`
			b.Run(chromedp.Click(`.matrix a[href="#set-ex-nx:late-release"]`, chromedp.ByQuery), chromedp.WaitVisible(cell+" .columns", chromedp.ByQuery), chromedp.WaitNotVisible("#overview", chromedp.ByQuery))
			if hash := browsertest.Says[string](b, `decodeURIComponent(location.hash)`); hash != "#set-ex-nx:late-release" {
				t.Errorf("the address ends with %s: it cannot be shared", hash)
			}
			b.Until(`document.activeElement.textContent.startsWith('set-ex-nx:late-release')`) // the heading has the focus
			if alarms := browsertest.Says[int](b, `document.querySelectorAll('`+cell+` .moment.alarm').length`); alarms < 2 {
				t.Errorf("%d marks of the oversell, want its line and its text", alarms)
			}
			b.Run(chromedp.Focus(cell+" .walk", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.WaitVisible("#tip", chromedp.ByQuery))
			if tip := browsertest.Says[string](b, `document.getElementById('tip').textContent`); !strings.Contains(tip, " ms · ") {
				t.Errorf("two steps into the drawing the hint reads %q", tip)
			}

			b.Run(chromedp.Click(cell+" .back", chromedp.ByQuery), chromedp.WaitVisible("#overview .matrix", chromedp.ByQuery), chromedp.WaitNotVisible(cell, chromedp.ByQuery))
			b.Until(`document.activeElement.getAttribute('href') === '#set-ex-nx:late-release'`) // the cell one came from has it
			b.Run(chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter),
				chromedp.WaitVisible(cell, chromedp.ByQuery), chromedp.KeyEvent(kb.Escape), chromedp.WaitNotVisible(cell, chromedp.ByQuery))

			b.Run(chromedp.Click("#theme", chromedp.ByQuery))
			if now := browsertest.Says[string](b, `getComputedStyle(document.body).backgroundColor`); now == paper {
				t.Error("the button does not change the theme")
			}
			b.Clean("")
		})
	}
}

// TestPageOnAPhone checks that nothing is wider than the screen except areas that scroll.
func TestPageOnAPhone(t *testing.T) {
	b := browsertest.Open(t, 2*time.Minute)
	address := pageFile(t)
	for _, hash := range []string{"", "#redlock:pause"} {
		b.Run(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile), chromedp.Navigate("about:blank"),
			chromedp.Navigate(address+hash), chromedp.WaitReady("main", chromedp.ByQuery))
		if width := browsertest.Says[int](b, `document.documentElement.scrollWidth`); width > 390 {
			t.Errorf("%q is %d wide on a screen of 390", hash, width)
		}
	}
	b.Clean("")
}

// TestAWholeMatrixFits checks that no column is cut off on a common screen, that a number without a plus has its
// word, and that a screen reader finds the others'.
func TestAWholeMatrixFits(t *testing.T) {
	r := saved(t)
	cell := r.Cells[0]
	r.Cells, cell.Oversold = nil, 1234
	twice := cell
	twice.Oversold, twice.Verdict, twice.Duplicates = 0, verdict.Twice, 1
	for _, s := range ladder.All() {
		for _, sc := range scenario.Of(trial.OneServer) {
			cell.Strategy, cell.Scenario = s.Name, sc.Name
			r.Cells = append(r.Cells, cell)
		}
	}
	last := &r.Cells[len(r.Cells)-1]
	twice.Strategy, twice.Scenario = last.Strategy, last.Scenario
	*last = twice
	path := filepath.Join(t.TempDir(), "matrix.html")
	if err := r.WriteFile(path, Report.HTML); err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t, 2*time.Minute)
	b.Run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate("file://"+path), chromedp.WaitVisible(".matrix", chromedp.ByQuery))
	for kind, shown := range map[string]bool{"oversold": false, "twice": true} {
		if wide := browsertest.Says[float64](b, `document.querySelector('.matrix .`+kind+` .word').getBoundingClientRect().width`); (wide > 1) != shown {
			t.Errorf("the word of %s is %g wide", kind, wide)
		}
	}
	if over := browsertest.Says[int](b, `(m => m.scrollWidth - m.clientWidth)(document.querySelector('.matrix').parentElement)`); over > 0 {
		t.Errorf("%d pixels of the matrix are cut off", over)
	}
	if text := browsertest.Says[string](b, `document.querySelector('.matrix td').textContent`); text != "oversold +1234" {
		t.Errorf("a cell reads %q, want oversold +1234", text)
	}
}

// TestEverythingHasAName checks that every picture, and everything that can have the focus, has a
// name.
func TestEverythingHasAName(t *testing.T) {
	b := browsertest.Open(t, 2*time.Minute)
	b.Run(chromedp.Navigate(pageFile(t)), chromedp.WaitReady("main", chromedp.ByQuery))
	nameless := browsertest.Says[[]string](b, `[...document.querySelectorAll('a, button, svg, [role=region], table thead th, article')]
		.filter(e => !(e.textContent.trim() && e.tagName !== 'svg') && !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')).map(e => e.outerHTML.slice(0, 90))`)
	if len(nameless) > 0 {
		t.Errorf("without a name: %q", nameless)
	}
	if levels := browsertest.Says[string](b, `[...document.querySelectorAll('h1, h2, h3')].map(h => h.tagName[1]).join('')`); strings.Contains(levels, "13") || !strings.HasPrefix(levels, "12") {
		t.Errorf("headings %s leave out a level", levels)
	}
}

// TestScreenshot writes the picture of the README, where SCREENSHOT says: see scripts/screenshot.sh.
func TestScreenshot(t *testing.T) {
	results, path := os.Getenv("SCREENSHOT_OF"), os.Getenv("SCREENSHOT")
	if path == "" {
		path, results = filepath.Join(t.TempDir(), "report.png"), filepath.Join("testdata", "version1.json")
	}
	r, err := Read(results)
	if err != nil {
		t.Fatal(err)
	}
	html := filepath.Join(t.TempDir(), "report.html")
	if err := r.WriteFile(html, Report.HTML); err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t, 2*time.Minute)
	var picture []byte
	b.Run(chromedp.EmulateViewport(1200, 840), chromedp.Navigate("file://"+html+"#"+r.Cells[0].Name()), chromedp.WaitVisible(".cell:target .columns", chromedp.ByQuery),
		chromedp.ActionFunc(func(ctx context.Context) (err error) {
			picture, err = cdpage.CaptureScreenshot().WithOptimizeForSpeed(false).Do(ctx)
			return err
		}))
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		t.Fatal(err)
	}
	if len(picture) < 10_000 || len(picture) > 200_000 {
		t.Errorf("the picture has %d bytes, want 10 to 200 KB", len(picture))
	}
}
