package live

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/ladder"
)

// savedReport is a result that was kept, with cells of every kind.
func savedReport(t *testing.T) report.Report {
	t.Helper()
	r, err := report.Read(filepath.Join("..", "report", "testdata", "version4.json"))
	if err != nil {
		t.Fatal(err)
	}
	r.Strategies = ladder.Describe(ladder.All())
	r.Cells[0].Expected = verdict.Held // a surprise
	return r
}

// savedAs writes a report as a page, and returns its address.
func savedAs(t *testing.T, r report.Report) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := wholefile.Write(path, func(w io.Writer) error { return Save(r, w) }); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

const savedShown = `document.querySelector('.cell-button') && document.documentElement.dataset.fetching === '0'`

// forgets is a browser that keeps nothing for a page.
const forgets = `for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, {get() { throw new DOMException('no', 'SecurityError'); }})`

// TestASavedPageWithoutCells says what there is to say: of a run that was interrupted before its first cell, or of cells
// that this program does not know.
func TestASavedPageWithoutCells(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t, time.Minute)
	for cells, want := range map[*trial.Result]string{nil: "0 cells", {Strategy: "none", Scenario: "later", Group: "of a later version", Verdict: verdict.Held, Expected: verdict.Held}: "1 cell: 1 held"} {
		r := savedReport(t)
		r.Cells, r.Interrupted = nil, true
		if cells != nil {
			r.Cells = []trial.Result{*cells}
		}
		b.Run(chromedp.Navigate(savedAs(t, r)))
		b.Until(`document.querySelector('.interrupted') && document.querySelector('.facts')`)
		if h1 := browsertest.Says[string](b, `document.querySelector('h1').textContent`); h1 != want {
			t.Errorf("the title is %q, want %q", h1, want)
		}
		if as := browsertest.Says[bool](b, `document.querySelector('.lead').textContent.includes('as expected')`); as != (cells != nil) {
			t.Errorf("%s: all as expected is said is %t", want, as)
		}
	}
}

// TestASavedPage goes from the matrix to an oversell and back, by mouse and by keyboard, in both themes and languages, from
// disk, in a browser that keeps nothing.
func TestASavedPage(t *testing.T) {
	t.Parallel()
	r := savedReport(t)
	r.Cells[0].WouldHold = []string{"owner-checked", "fenced"} // one of which was run
	r.Cells = append(r.Cells, trial.Result{Strategy: "fenced", Scenario: r.Cells[0].Scenario, Verdict: verdict.Held, Expected: verdict.Held})
	b := browsertest.Open(t, 2*time.Minute)
	b.Run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := cdpage.AddScriptToEvaluateOnNewDocument(forgets).Do(ctx)
		return err
	}), theme("light"), chromedp.Navigate(savedAs(t, r)))
	b.Until(savedShown)
	if loud := browsertest.Says[string](b, `document.querySelector('.matrix .surprise').textContent`); !strings.HasPrefix(loud, "!!") {
		t.Errorf("the surprise reads %q in the matrix", loud)
	}
	const opened = `document.querySelector('.walk .timeline')`
	b.Run(click(`[data-cell="set-ex-nx/late-release"]`))
	b.Until(opened)
	if alarms := browsertest.Says[int](b, `document.querySelectorAll('.walk .moment.alarm, .walk b.alarm').length`); alarms < 2 {
		t.Errorf("%d marks of the oversell, want its line and its text", alarms)
	}
	if to := browsertest.Says[string](b, `[...document.querySelectorAll('.holding a')].map(a => a.hash).join(' ')`); to != "#/cell/fenced/late-release #/pair/late-release/set-ex-nx/fenced" {
		t.Errorf("what would have held links to %q", to)
	}
	if steps := browsertest.Says[string](b, `document.querySelector('.steps-of').textContent`); !strings.Contains(steps, "has the lock") {
		t.Errorf("the steps are %q", steps)
	}
	b.Run(chromedp.Focus(".walk", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	b.Until(`document.querySelectorAll('.walk .step.on').length === 1 && document.getElementById('tip').textContent.includes(' ms · ')`)
	b.Run(chromedp.KeyEvent(kb.Escape))
	b.Until(`document.activeElement.dataset.cell === 'set-ex-nx/late-release'`) // the cell one came from has the focus
	b.Run(chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.Until(opened)
	paper := `getComputedStyle(document.body).backgroundColor`
	light := browsertest.Says[string](b, paper)
	b.Run(theme("dark"))
	dark := browsertest.Says[string](b, paper)
	b.Run(chromedp.Evaluate(`document.querySelector('.tools button + button').click()`, nil))
	if button := browsertest.Says[string](b, paper); light == dark || button != light {
		t.Errorf("the paper is %s, in a dark theme %s, and by the button %s", light, dark, button)
	}
	b.Run(click("#language"))
	b.Until(`document.documentElement.lang === 'zh-CN' && document.querySelector('.cause') && document.querySelector('.cause').textContent.includes('租约')`)
	if left := browsertest.Says[string](b, `document.querySelector('main').innerText.match(/\b(the|was|would|because|orders?)\b/g)?.join() || ''`); left != "" {
		t.Errorf("English is left on the Chinese page: %s", left)
	}
	open(b, "#/load")
	b.Until(`document.querySelectorAll('.load .charts svg').length > 1`)
	b.Clean("")
}

// TestASavedPageOfBaskets begins with the table that it has.
func TestASavedPageOfBaskets(t *testing.T) {
	t.Parallel()
	cell := trial.Result{Strategy: "saga", Scenario: "crossed", Group: trial.Baskets, Verdict: verdict.Held, Expected: verdict.Held, Story: []words.Text{words.AsItStands("A: sold")}}
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(savedAs(t, report.Report{Interrupted: true, Environment: report.Environment{Time: "2026-01-02T03:04:05Z"}, Cells: []trial.Result{cell}})))
	b.Until(savedShown + ` && document.querySelector('.interrupted')`)
	b.Run(click(".cell-button"))
	b.Until(`document.querySelector('.story')`)
	b.Clean("")
}

// TestWhatIsSavedIsText: nothing that was read becomes an element, and what nobody knows is shown by its name.
func TestWhatIsSavedIsText(t *testing.T) {
	t.Parallel()
	r := savedReport(t)
	const element = `<img src=x onerror="window.ran = true">`
	r.Cells[0].Strategy, r.Cells[0].Problem = "lock-of-tomorrow", element
	r.Cells[0].Explanation.Columns[0].Name, r.Cells[0].Explanation.Why = words.Text{Words: element}, []words.Text{{Words: element}}
	r.Cells[1].Scenario, r.Environment.Command = "storm", element
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(savedAs(t, r)))
	b.Until(savedShown)
	open(b, "#/cell/"+r.Cells[0].Strategy+"/"+r.Cells[0].Scenario)
	b.Until(`document.querySelector('.cause').textContent.includes('<img') && document.querySelector('.names').textContent.includes('<img')`)
	if ran := browsertest.Says[bool](b, `document.querySelector('img') !== null || window.ran === true`); ran {
		t.Error("what was read is an element")
	}
	open(b, "#/")
	b.Until(`document.querySelector('[data-cell$="/storm"]')`)
}

// TestASavedPageNeedsNothingElse looks for what a browser would load.
func TestASavedPageNeedsNothingElse(t *testing.T) {
	var page bytes.Buffer
	if err := Save(savedReport(t), &page); err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?i)(src|href|url)\s*[=(]\s*["']?(https?:|//)[^"')\s]*|@import|<link [^>]*stylesheet|<script [^>]*src`).FindString(page.String()); found != "" {
		t.Errorf("the page loads %s", found)
	}
	for text, parts := range map[string]int{"<script type=\"module\">": 1, "<style>": 1, "Content-Security-Policy": 1, "</script>": 1 + strings.Count(page.String(), "application/gzip\" ")} {
		if n := strings.Count(page.String(), text); n != parts {
			t.Errorf("%d times %s, want %d", n, text, parts)
		}
	}
}

// TestAWholeMatrixFits: no column is cut off on a common screen, a number without a plus has its word, and the page shows
// itself soon.
func TestAWholeMatrixFits(t *testing.T) {
	t.Parallel()
	r := savedReport(t)
	cell := r.Cells[0]
	r.Cells, cell.Oversold, cell.Expected = nil, 1234, verdict.Oversold
	for _, s := range ladder.All() {
		for _, sc := range scenario.Of(trial.OneServer) {
			cell.Strategy, cell.Scenario = s.Name, sc.Name
			r.Cells = append(r.Cells, cell)
		}
	}
	last := &r.Cells[len(r.Cells)-1]
	last.Oversold, last.Verdict, last.Expected, last.Duplicates = 0, verdict.Twice, verdict.Twice, 1
	b := browsertest.Open(t, 2*time.Minute)
	b.Run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(savedAs(t, r)))
	b.Until(savedShown)
	if over := browsertest.Says[int](b, `(m => m.scrollWidth - m.clientWidth)(document.querySelector('.matrix').parentElement)`); over > 0 {
		t.Errorf("%d pixels of the matrix are cut off", over)
	}
	shown := browsertest.Says[[]string](b, `[...document.querySelectorAll('.cell-button')].map(c => c.textContent)`)
	if len(shown) != len(r.Cells) || shown[0] != "+1234" || !slices.Contains(shown, "twice 1") {
		t.Errorf("%d cells read %q", len(shown), slices.Compact(shown))
	}
}

// TestTheSavedTry has all of a try, with no mark-up of the service.
func TestTheSavedTry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tried.html")
	of := tried
	of.Service, of.Unseen = "a <shop>", []string{"TLS to Redis"}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := SaveTried(of, file); err != nil || file.Close() != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate("file://" + path))
	b.Until(`document.querySelector('h1 .v.oversold')`)
	text := browsertest.Says[string](b, `document.querySelector('main').innerText`)
	for _, want := range []string{"a <shop>", "21 units in orders", "Not seen: TLS to Redis"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
	}
	b.Clean("")
}

// TestScreenshot writes the picture of the README, where SCREENSHOT says: see scripts/screenshot.sh.
func TestScreenshot(t *testing.T) {
	results, path := os.Getenv("SCREENSHOT_OF"), os.Getenv("SCREENSHOT")
	if path == "" {
		t.Skip("SCREENSHOT does not say where to")
	}
	r, err := report.Read(results)
	if err != nil {
		t.Fatal(err)
	}
	b := browsertest.Open(t, 2*time.Minute)
	b.Run(chromedp.EmulateViewport(1200, 840), chromedp.Navigate(savedAs(t, r)))
	b.Until(savedShown)
	b.Run(click(".cell-button"))
	b.Until(`document.querySelector('.walk')`)
	var picture []byte
	b.Run(chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		t.Fatal(err)
	}
}
