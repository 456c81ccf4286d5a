package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/lab/mine"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// served is a server with all that it runs, for one test.
type served struct {
	*Server
	listener *cuttable
}

func (s served) home() string { return "http://" + s.listener.Addr().String() + "/" }

// link is what drives the page, with a view to open.
func (s served) link() string { return s.home() + "#token=" + testToken }

func serve(t testing.TB, o Options) served {
	t.Helper()
	o.Shop, o.Token, o.Again = catalogtest.Shop(t), testToken, trial.Result.Name
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	all := served{s, &cuttable{Listener: inner, open: map[net.Conn]bool{}}}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, all.listener) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return all
}

// cuttable is a listener whose network can be cut: connections end, and new ones are not answered.
type cuttable struct {
	net.Listener

	mu   sync.Mutex // guards the rest
	open map[net.Conn]bool
	away bool
}

func (l *cuttable) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		if l.away {
			conn.Close()
			l.mu.Unlock()
			continue
		}
		l.open[conn] = true
		l.mu.Unlock()
		return conn, nil
	}
}

func (l *cuttable) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = true
	for conn := range l.open {
		conn.Close()
	}
	clear(l.open)
}

func (l *cuttable) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = false
}

// click clicks the first element of a selector.
func click(selector string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).click()`, selector), nil)
}

// open shows a view, with all that it fetches.
func open(b *browsertest.Page, hash string) {
	b.Run(goTo(hash))
	b.Until(fmt.Sprintf(`document.getElementById('main').dataset.shows === %q && document.documentElement.dataset.fetching === '0'`, hash))
}

func goTo(hash string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`location.hash = %q`, hash), nil)
}

func theme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}

// follow has the page remember what its counters showed last.
const follow = `window.last = {};
new MutationObserver(() => {
  for (const name of ['stock', 'orders', 'oversold']) {
    const shown = document.getElementById('now-' + name);
    if (shown && shown.textContent !== '–') window.last[name] = shown.textContent;
  }
}).observe(document.body, {subtree: true, childList: true, characterData: true})`

const matrixShown = `document.querySelectorAll('.cell-button').length > 300`

// finished returns a run when it has ended.
func (s served) finished(t *testing.T, id int) run {
	t.Helper()
	for giveUp := time.Now().Add(6 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r, err := s.run(id)
		if err == nil && r.State != waiting && r.State != running {
			if r.State != ended {
				t.Fatalf("run %d has %s: %s", id, r.State, r.Error)
			}
			return r
		}
		if time.Now().After(giveUp) {
			t.Fatalf("run %d has not ended: %v", id, err)
		}
	}
}

// pictures is the folder in which to write pictures of the page, or empty: see scripts/screenshot.sh.
var pictures = os.Getenv("LIVE_PICTURES")

// screenshot writes a picture of what the page shows.
func screenshot(t *testing.T, b *browsertest.Page, name string) {
	t.Helper()
	if pictures == "" {
		return
	}
	time.Sleep(400 * time.Millisecond) // what still moves
	keepPicture(t, name, capture(b, page.CaptureScreenshot()), 200_000)
}

func keepPicture(t *testing.T, name string, image []byte, most int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(pictures, name+".webp"), image, 0o644); err != nil {
		t.Fatal(err)
	}
	if len(image) < 5_000 || len(image) > most {
		t.Errorf("the picture %s has %d bytes, want 5000 to %d", name, len(image), most)
	}
}

func capture(b *browsertest.Page, how *page.CaptureScreenshotParams) (image []byte) {
	b.Run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		image, err = how.WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(82).Do(ctx)
		return err
	}))
	return image
}

// film writes a picture of the replay at its decisive moment, and a moving one, which becomes slower and closer
// before that moment.
func film(t *testing.T, b *browsertest.Page) {
	t.Helper()
	if pictures == "" {
		return
	}
	b.Run(chromedp.EmulateViewport(1000, 1100), chromedp.Evaluate(`document.querySelector('.player').scrollIntoView({block: 'center'}); document.activeElement.blur(); document.getElementById('speed').value = 35`, nil))
	box := browsertest.Says[page.Viewport](b, `(r => ({x: r.x + scrollX - 8, y: r.y + scrollY - 8, width: r.width + 16, height: r.height + 16, scale: 1}))(document.querySelector('.player').getBoundingClientRect())`)
	player := page.CaptureScreenshot().WithClip(&box)
	keepPicture(t, "replay", capture(b, player), 200_000)

	folder, frames := t.TempDir(), []string{"-loop", "0", "-lossy", "-q", "60", "-m", "4"}
	show := func(from, until float64, n int) {
		for i := range n {
			b.Run(chromedp.Evaluate(fmt.Sprintf(`{const p = document.getElementById('position'); p.value = %g; p.dispatchEvent(new Event('input'))}`, from+(until-from)*float64(i)/float64(n)), nil))
			file := filepath.Join(folder, fmt.Sprintf("%d.png", len(frames)))
			b.Run(chromedp.ActionFunc(func(ctx context.Context) error {
				image, err := player.WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
				if err != nil {
					return err
				}
				return os.WriteFile(file, image, 0o644)
			}))
			frames = append(frames, "-d", "150", file)
		}
	}
	decisive, ends := browsertest.Says[float64](b, `Number(document.getElementById('position').value)`), browsertest.Says[float64](b, `Number(document.getElementById('position').max)`)
	b.Run(click(`[aria-label="The whole cell"]`))
	show(0, decisive-100, 20)
	b.Run(click("#decisive"))
	show(decisive-100, decisive+100, 40)
	b.Run(click(`[aria-label="The whole cell"]`))
	show(decisive+100, ends, 12)
	show(ends, ends, 1)
	frames[len(frames)-2] = "3000"
	file := filepath.Join(folder, "moving.webp")
	if out, err := exec.CommandContext(t.Context(), "img2webp", append(frames, "-o", file)...).CombinedOutput(); err != nil {
		t.Fatalf("img2webp: %v\n%s", err, out)
	}
	image, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	keepPicture(t, "replay-moving", image, 1_500_000)
	b.Run(chromedp.EmulateViewport(1400, 1000))
}

// TestThePage does in a browser what a class does, on real servers.
func TestThePage(t *testing.T) {
	records := t.TempDir()
	s := serve(t, Options{Record: records})
	b := browsertest.Open(t, 14*time.Minute)
	b.Run(chromedp.EmulateViewport(1400, 1000), theme("light"), chromedp.Navigate(s.link()))
	b.Until(matrixShown)
	b.Run(chromedp.Evaluate(follow, nil))

	t.Run("predict, run, and watch the counters end where SQL ends", func(t *testing.T) {
		if hash := browsertest.Says[string](b, `location.hash`); strings.Contains(hash, testToken) {
			t.Errorf("the address still shows the token: %s", hash)
		}
		b.Run(click(`[data-cell="set-ex-nx/pause"]`))
		b.Until(`document.querySelector('button.guess')`)
		screenshot(t, b, "predict")
		b.Run(click(`[data-word=oversold]`))
		b.Until(`document.querySelector('.live-now')`)
		b.Until(`document.querySelector('.columns-view .timeline rect.in')`)
		b.Until(`document.querySelector('.player')`)
		r := s.finished(t, 1)
		if r.Verdict != "oversold" || r.N == 0 {
			t.Fatalf("the cell is %s %d: %s", r.Verdict, r.N, r.Error)
		}
		last := browsertest.Says[map[string]string](b, `window.last`)
		want := map[string]string{"stock": fmt.Sprint(r.result.Remaining), "orders": fmt.Sprint(r.result.Sold), "oversold": fmt.Sprintf("+%d", r.result.Oversold)}
		for name, value := range want {
			if last[name] != value {
				t.Errorf("the counter %s ended at %s, and SQL at %s", name, last[name], value)
			}
		}
		if shown := browsertest.Says[string](b, `document.getElementById('fact-sold').textContent`); shown != want["orders"]+"/"+fmt.Sprint(r.result.InitialStock) {
			t.Errorf("the page says %s orders, and SQL %s", shown, want["orders"])
		}
		if score := browsertest.Says[string](b, `document.getElementById('score').textContent`); score != "Predictions: 1 of 1 right" {
			t.Errorf("the score reads %q", score)
		}
		if alarms := browsertest.Says[int](b, `document.querySelectorAll('.walk .moment.alarm, .walk b.alarm').length`); alarms < 2 {
			t.Errorf("%d marks of the oversell in the drawing", alarms)
		}
		if text := browsertest.Says[string](b, `document.querySelector('.cause').textContent`); !strings.Contains(text, "SIGSTOP") {
			t.Errorf("the sentence reads %q", text)
		}
		if holds := browsertest.Says[string](b, `document.querySelector('.holding').textContent`); !strings.Contains(holds, "for-update") {
			t.Errorf("what would have held: %q", holds)
		}
		screenshot(t, b, "verdict")
		files, err := filepath.Glob(filepath.Join(records, "*.jsonl"))
		if err != nil || len(files) != 1 {
			t.Fatalf("records %v, %v: want one file", files, err)
		}
		kept, err := os.ReadFile(files[0])
		sold := int64(0)
		for line := range strings.Lines(string(kept)) {
			var e Entry
			if json.Unmarshal([]byte(line), &e) == nil && e.Kind == Ordered {
				sold += *e.Read - *e.Stock
			}
		}
		if err != nil || sold != r.result.Sold {
			t.Errorf("the file has %d units in orders, %v, and SQL %d", sold, err, r.result.Sold)
		}
	})

	t.Run("replay backwards", func(t *testing.T) {
		const clock, at = `document.querySelector('.clock').textContent`, `Number(document.getElementById('position').value)`
		ends := browsertest.Says[float64](b, at)
		final := browsertest.Says[string](b, `document.querySelector('.player .count:nth-child(2) b').textContent`)
		if sold := fmt.Sprint(s.finished(t, 1).result.Sold); final != sold {
			t.Errorf("the replay ends with %s orders, and SQL with %s", final, sold)
		}
		b.Run(chromedp.Evaluate(`document.getElementById('speed').value = 100; document.querySelector('.player').focus()`, nil), click("#play-back"))
		b.Until(at + ` < ` + fmt.Sprint(ends/2))
		b.Until(at + ` === 0`)
		if start := browsertest.Says[[]string](b, `[...document.querySelectorAll('.player .count b')].map(e => e.textContent)`); start[0] != "30" || start[1] != "0" || start[2] != "0" {
			t.Errorf("at the beginning stock, orders and oversold are %v, want 30, 0 and 0", start)
		}
		b.Run(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
		before := browsertest.Says[float64](b, at)
		if current := browsertest.Says[int](b, `[...document.querySelectorAll('.entry')].findIndex(e => e.hasAttribute('aria-current'))`); current != 2 || before <= 0 {
			t.Errorf("three events on, the entry %d is current at %v ms, want 2", current, before)
		}
		b.Run(chromedp.KeyEvent(kb.ArrowLeft))
		if after := browsertest.Says[float64](b, at); after > before {
			t.Errorf("one event back leads from %v to %v ms", before, after)
		}
		b.Run(click("#decisive"))
		if who := browsertest.Says[string](b, `document.querySelector('.entry[aria-current]').className`); !strings.Contains(who, "order") && !strings.Contains(who, "point") {
			t.Errorf("at the decisive moment the entry is %q, at %s", who, browsertest.Says[string](b, clock))
		}
		b.Run(chromedp.Focus(".record summary", chromedp.ByQuery), chromedp.KeyEvent(" "))
		if browsertest.Says[bool](b, `document.querySelector('.record').open`) {
			t.Error("the space bar does not fold the record")
		}
		b.Run(chromedp.KeyEvent(" "))
		film(t, b)
	})

	t.Run("side by side", func(t *testing.T) {
		b.Run(goTo("#/pair/pause/owner-checked/fenced"))
		b.Until(`document.getElementById('run-both')`)
		b.Run(click("#run-both"))
		b.Until(`document.querySelectorAll('.player .columns-view').length === 2`)
		chips := browsertest.Says[[]string](b, `[...document.querySelectorAll('.pair-why h2 .v')].map(e => e.textContent.replace(/ .*/, ''))`)
		if len(chips) != 2 || chips[0] != "oversold" || chips[1] != "held" {
			t.Errorf("side by side are %v, want oversold and held", chips)
		}
		b.Run(click("#decisive"), chromedp.EmulateViewport(1400, 1600), chromedp.Evaluate(`document.querySelector('.player').scrollIntoView({block: 'center'})`, nil))
		screenshot(t, b, "pair")
		b.Run(chromedp.EmulateViewport(1400, 1000))
		scales := browsertest.Says[[]string](b, `[...document.querySelectorAll('.player .timeline')].map(e => e.getAttribute('viewBox').split(' ')[2])`)
		if scales[0] != scales[1] {
			t.Errorf("the two have scales of their own: %v", scales)
		}
	})

	t.Run("step to an oversell", func(t *testing.T) {
		b.Run(goTo("#/step/none/2"))
		for _, choice := range []string{"A.select", "B.select", "A.update", "A.insert", "A.commit", "B.update", "B.insert", "B.commit"} {
			selector := `[data-choice="` + choice + `"]`
			b.Until(`document.querySelector('` + selector + `')`)
			b.Run(click(selector))
		}
		b.Until(`document.getElementById('ending') && document.getElementById('ending').dataset.ended === 'yes'`)
		if ending := browsertest.Says[string](b, `document.getElementById('ending').textContent`); !strings.Contains(ending, "oversold 1") || !strings.Contains(ending, "nothing kept the second customer out") {
			t.Errorf("it ends with %q", ending)
		}
		if orders := browsertest.Says[int](b, `document.querySelectorAll('.orders li').length`); orders != 2 {
			t.Errorf("%d orders for one unit, want 2", orders)
		}
		screenshot(t, b, "step")
		link := browsertest.Says[string](b, `location.hash`)
		b.Run(chromedp.Navigate("about:blank"), chromedp.Navigate(s.home()+link)) // the schedule is the link
		b.Until(`document.getElementById('ending') && document.getElementById('ending').textContent.includes('oversold 1')`)
	})

	t.Run("find the shortest way to oversell", func(t *testing.T) {
		b.Run(goTo("#/step/set-ex-nx/2"))
		b.Until(`document.querySelector('.choice')`)
		b.Run(chromedp.Evaluate(`import('/store.js').then(m => { m.store.catalog.searches = ['', 'wait', 'kill']; window.fewer = true; })`, nil)) // the others take most of a minute
		b.Until(`window.fewer`)
		b.Run(click("#shortest"))
		b.Until(`document.querySelector('.said a') || location.hash.includes('wait')`) // the shortest so far
		for begun := time.Now(); !browsertest.Says[bool](b, `location.hash.includes('wait')`) && time.Since(begun) < searchPatience+time.Minute; {
			time.Sleep(200 * time.Millisecond)
		}
		b.Until(`document.getElementById('ending') && document.getElementById('ending').textContent.includes('oversold')`)
		if link := browsertest.Says[string](b, `decodeURIComponent(location.hash)`); link != "#/step/set-ex-nx/2/A.set wait B.set B.select" {
			t.Errorf("found %s", link)
		}
		if text := browsertest.Says[string](b, `document.querySelector('.said').textContent`); !strings.Contains(text, "somebody’s shop is killed") {
			t.Errorf("the page does not say what was tried: %q", text)
		}
	})

	t.Run("load", func(t *testing.T) {
		b.Run(goTo("#/load"))
		b.Until(`document.getElementById('compare')`)
		b.Run(chromedp.Evaluate(`for (const box of document.querySelectorAll('.pick input')) box.checked = ['none', 'conditional'].includes(box.value); document.getElementById('load-stock').value = 40`, nil), click("#compare"))
		b.Until(`document.querySelectorAll('.load .charts').length === 2`)
		text := browsertest.Says[string](b, `document.querySelector('.load-table tbody').innerText`)
		if !strings.Contains(text, "oversold 120") || !strings.Contains(text, "held") {
			t.Errorf("the table reads %q", text)
		}
		screenshot(t, b, "load")
		for _, file := range []string{"report.html", "result.json"} {
			if n := browsertest.Says[int](b, `document.querySelector('a[href$="`+file+`"]') ? 1 : 0`); n != 1 {
				t.Errorf("there is no %s to download", file)
			}
		}
	})

	t.Run("another language", func(t *testing.T) {
		b.Run(goTo("#/cell/set-ex-nx/pause"))
		b.Until(`document.querySelector('.player')`)
		b.Run(click("#language"))
		b.Until(`document.documentElement.lang === 'zh-CN' && document.querySelector('.player') && document.querySelector('.cause').textContent.includes('租约')`)
		if left := browsertest.Says[string](b, `document.querySelector('.ended').innerText.match(/\b(the|was|would|because)\b/g)?.join() || ''`); left != "" {
			t.Errorf("English is left on the Chinese page: %s", left)
		}
		b.Run(click("#language"))
		b.Until(`document.documentElement.lang === 'en' && document.querySelector('.player')`)
	})

	t.Run("both themes, and each width", func(t *testing.T) {
		for _, hash := range []string{"#/", "#/cell/set-ex-nx/pause", "#/cell/none/contention", "#/pair/pause/owner-checked/fenced", "#/step/none/2/A.select%20B.select", "#/load", "#/mine"} {
			open(b, hash)
			b.Until(`document.querySelector('main h1')`)
			for _, width := range []int64{360, 1920} {
				b.Run(chromedp.EmulateViewport(width, 900))
				if over := browsertest.Says[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
					widest := browsertest.Says[string](b, `[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll')).map(e => e.tagName + '.' + e.className).slice(0, 5).join(' ')`)
					t.Errorf("%s is %d pixels wider than a screen of %d: %s", hash, over, width, widest)
				}
			}
		}
		b.Run(chromedp.EmulateViewport(1400, 1000))
		papers := map[string]bool{}
		for _, name := range []string{"light", "dark"} {
			b.Run(theme(name))
			papers[browsertest.Says[string](b, `getComputedStyle(document.body).backgroundColor`)] = true
		}
		if len(papers) != 2 {
			t.Errorf("the papers of both themes are %v", papers)
		}
		b.Run(theme("light"))
	})

	t.Run("everything has a name", func(t *testing.T) {
		for _, hash := range []string{"#/", "#/cell/set-ex-nx/pause", "#/pair/pause/owner-checked/fenced", "#/step/none/2", "#/load", "#/mine"} {
			open(b, hash)
			b.Until(`document.querySelector('main h1')`)
			nameless := browsertest.Says[[]string](b, `[...document.querySelectorAll('a, button, input, select, svg, [role=region], [tabindex="0"]')]
				.filter(e => !e.closest('[aria-hidden]') && !(e.textContent.trim() && e.tagName !== 'svg' && e.tagName !== 'SELECT') && !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby') && !(e.labels && e.labels.length)).map(e => e.outerHTML.slice(0, 90))`)
			if len(nameless) > 0 {
				t.Errorf("%s: without a name: %q", hash, nameless)
			}
		}
	})

	if pictures != "" {
		b.Run(goTo("#/"), click("#telling"))
		b.Until(`document.querySelectorAll('.cell-button.waiting').length > 10`)
		s.mu.Lock()
		last := s.runs[len(s.runs)-1].ID
		s.mu.Unlock()
		s.finished(t, last)
		b.Until(`document.querySelectorAll('.cell-button.waiting, .cell-button.running').length === 0`)
		b.Run(chromedp.EmulateViewport(1400, 1040))
		screenshot(t, b, "matrix")
	}
	b.Clean(s.home())
}

// TestAPageWhoseNetworkWasCut shows everything that happened meanwhile.
func TestAPageWhoseNetworkWasCut(t *testing.T) {
	s := serve(t, Options{})
	b := browsertest.Open(t, 4*time.Minute)
	b.Run(chromedp.Navigate(s.link()))
	b.Until(matrixShown)
	b.Until(`document.getElementById('strip').dataset.connected === 'true'`)
	s.listener.cut()
	b.Until(`document.getElementById('strip').classList.contains('cut')`)
	if _, err := s.enqueue([]wanted{{cellName{"none", "contention"}, 1, 0}, {cellName{"conditional", "contention"}, 1, 0}}, nil); err != nil {
		t.Fatal(err)
	}
	s.finished(t, 1)
	s.finished(t, 2)
	if got := browsertest.Says[string](b, `document.querySelector('[data-cell="none/contention"]').textContent`); got != "" {
		t.Errorf("without a network the cell reads %q", got)
	}
	s.listener.heal()
	b.Until(`document.querySelector('[data-cell="none/contention"]').textContent.startsWith('+')`)
	b.Until(`document.querySelector('[data-cell="conditional/contention"]').textContent === 'held'`)
	b.Until(`!document.getElementById('strip').classList.contains('cut')`)
}

// TestAPageThatOnlyWatches shows all, and says how to drive.
func TestAPageThatOnlyWatches(t *testing.T) {
	t.Parallel()
	s := unservedFor(t)
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(s))
	b.Until(matrixShown)
	b.Run(click(`[data-cell="none/pause"]`))
	b.Until(`document.querySelector('.guesses')`)
	if enabled := browsertest.Says[int](b, `document.querySelectorAll('.guesses button:not(:disabled)').length`); enabled != 0 {
		t.Errorf("%d buttons would start something", enabled)
	}
	if text := browsertest.Says[string](b, `document.querySelector('main').innerText`); !strings.Contains(text, "docker compose logs lab") {
		t.Errorf("the page does not say how to drive: %q", text)
	} else if strings.Contains(text, "no lock at all") {
		t.Errorf("the page gives away what is to be predicted: %q", text)
	}
	for _, hash := range []string{"#/", "#/topologies/all", "#/cell/fenced/async-failover", "#/lessons/1/run", "#/step/none/2", "#/load", "#/pair/pause/none/fenced"} {
		open(b, hash)
		if would := browsertest.Says[[]string](b, `[...document.querySelectorAll('main button:not(:disabled):not(.cell-button)')].filter(e => !e.hidden).map(e => e.textContent)`); len(would) > 0 {
			t.Errorf("%s: these would be refused: %q", hash, would)
		}
	}
	b.Clean(s)
	b.Run(goTo("#token=" + testToken)) // in the tab that has the page
	b.Until(`document.querySelector('.role.drives') && location.hash === '#/'`)
	// A lab that was started again does not know the token of before.
	b.Run(chromedp.Navigate("about:blank"), chromedp.Navigate(s+"#token=that-of-another-lab"))
	b.Until(`document.querySelector('.role.watches') && !sessionStorage.getItem('token')`)
}

// TestStopShowsTheRunOfBefore: of the same cell with the same shops.
func TestStopShowsTheRunOfBefore(t *testing.T) {
	t.Parallel()
	s := unserved(t)
	cell := cellName{"none", "contention"}
	begin := func(shops int, verdict verdict.Kind) {
		added, err := s.enqueue([]wanted{{cell, 1, shops}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if verdict != "" {
			s.publishEnd(added[0], verdict)
		}
	}
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(addressOf(t, s)))
	const reads = `document.querySelector('[data-cell="none/contention"]')?.textContent === `
	b.Until(`document.getElementById('strip').dataset.connected === 'true'`)
	begin(0, verdict.Held)
	begin(s.o.Plan.Shops+1, verdict.Oversold)
	begin(0, "")
	b.Until(reads + `'…'`)
	s.drop()
	b.Until(reads + `'held'`)

	// One that failed is the run of before, too.
	s.mu.Lock()
	s.runs[0].State = failed
	s.feed.publish("running", s.runs[0])
	s.mu.Unlock()
	b.Until(reads + `'✕'`)
	begin(0, "")
	b.Until(reads + `'…'`)
	s.drop()
	b.Until(reads + `'✕'`)
}

// TestALessonDrawsInTheLanguageOfThePage what the server has drawn in each.
func TestALessonDrawsInTheLanguageOfThePage(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(unservedFor(t) + "#token=" + testToken))
	b.Until(matrixShown)
	b.Run(click("#language"))
	b.Until(`document.documentElement.lang === 'zh-CN'`)
	open(b, "#/lessons/9/run")
	b.Run(chromedp.Evaluate(`fetch = async (_, {body}) => {
			const asked = JSON.parse(body);
			return new Response(JSON.stringify({outcome: {verdict: 'left'}, drawing: asked.baskets && asked.to_end ? {en: 'a circle', zh: '环路'} : null, entries: [], shortest: ''}), {headers: {'Content-Type': 'application/json'}});
		};
		for (const begin of document.querySelectorAll('.begin')) begin.click()`, nil))
	b.Until(`[...document.querySelectorAll('.result pre')].some(p => p.textContent === '环路')`)
}

// TestASearchThatDecidedNothing is none that found nothing.
func TestASearchThatDecidedNothing(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(unservedFor(t) + "#token=" + testToken))
	b.Until(matrixShown)
	b.Run(chromedp.Evaluate(`fetch = async () => new Response(JSON.stringify({runs: 20, bad: 0, unknown: 'x'}), {headers: {'Content-Type': 'application/json'}})`, nil))
	open(b, "#/step/none/2")
	b.Until(`document.getElementById('shortest')`)
	b.Run(click("#shortest"))
	b.Until(`/Not tried to the end: .+/.test(document.querySelector('.said').textContent)`)
	if said := browsertest.Says[string](b, `document.querySelector('.said').textContent`); strings.Contains(said, "None of") {
		t.Errorf("the page says %q", said)
	}
}

// TestALinkThatWasCut shows the view that it names.
func TestALinkThatWasCut(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(unservedFor(t) + "#/mine/A.select%2"))
	b.Until(`document.querySelectorAll('.mine > li').length === 5`)
}

// TestALinkToNoView shows the first one, and a later link its own.
func TestALinkToNoView(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(unservedFor(t) + "#/constructor"))
	b.Until(matrixShown)
	b.Run(goTo("#/mine"))
	b.Until(`document.querySelectorAll('.mine > li').length === 5`)
}

// TestTheQuestionsLeadToACell asks them in both languages, and follows an answer.
func TestTheQuestionsLeadToACell(t *testing.T) {
	t.Parallel()
	s := unservedFor(t)
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.EmulateViewport(1400, 1400), theme("light"), chromedp.Navigate(s+"#/mine"))
	b.Until(`document.querySelectorAll('.mine > li').length === 5`)
	all := 0
	for _, q := range mine.Questions() {
		all += len(q.Answers)
	}
	if shown := browsertest.Says[int](b, `document.querySelectorAll('.mine details').length`); shown != all {
		t.Errorf("%d answers are shown, want %d", shown, all)
	}
	b.Run(click(`[data-answer=owner-get-del] summary`))
	b.Until(`document.querySelector('[data-answer=owner-get-del]').open`)
	screenshot(t, b, "mine")
	b.Run(click(`#language`))
	b.Until(`document.querySelector('.mine h2').textContent === ` + strconv.Quote(words.Chinese.Say(mine.Questions()[0].Ask())))
	if over := browsertest.Says[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("the questions are %d pixels wider than the screen", over)
	}
	b.Run(click(`[data-answer=owner-get-del] a.button`))
	b.Until(`location.hash === '#/cell/owner-get-del/split-release' && document.querySelector('.guesses')`)
	b.Clean(s)
}

// unservedFor serves a page behind which nothing runs, and returns its address.
func unservedFor(t *testing.T) string {
	t.Helper()
	return addressOf(t, unserved(t))
}

func addressOf(t *testing.T, s *Server) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s.Handler()}
	go server.Serve(listener)
	t.Cleanup(func() { close(s.ended); server.Close() })
	return "http://" + listener.Addr().String() + "/"
}
