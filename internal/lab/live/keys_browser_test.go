package live

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"stocklock/internal/lab/browsertest"
)

// TestWithKeysAlone reaches a cell by Tab, and its neighbours by arrows.
func TestWithKeysAlone(t *testing.T) {
	s := serve(t, Options{})
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.EmulateViewport(1400, 1000), chromedp.Navigate(s.link()))
	b.Until(matrixShown)
	b.Run(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // the link to the content
	tabs := 0
	for ; tabs < 20 && !browsertest.Says[bool](b, `document.activeElement.matches('.cell-button')`); tabs++ {
		b.Run(chromedp.KeyEvent(kb.Tab))
	}
	if tabs == 20 {
		t.Errorf("%d tabs from the content on, the focus is at %s", tabs, browsertest.Says[string](b, `document.activeElement.outerHTML`))
	}
	b.Run(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowDown))
	at := browsertest.Says[string](b, `document.activeElement.dataset.cell`)
	b.Run(chromedp.KeyEvent(kb.Enter))
	b.Until(`location.hash.startsWith('#/cell/') && document.querySelector('.guesses')`)
	if hash := browsertest.Says[string](b, `location.hash`); hash != "#/cell/"+at {
		t.Errorf("Enter on %s opens %s", at, hash)
	}
}

// TestTheFocusStays where a choice draws the view or the head anew.
func TestTheFocusStays(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.Navigate(unservedFor(t)))
	b.Until(matrixShown)
	open(b, "#/pair/pause/none/fenced")
	b.Run(chromedp.Focus("#pair-a"), chromedp.KeyEvent(kb.ArrowDown))
	b.Until(`location.hash !== '#/pair/pause/none/fenced' && main.dataset.shows === location.hash`)
	for _, id := range []string{"pair-a", "theme", "large", "language"} {
		if id != "pair-a" {
			b.Run(chromedp.Evaluate(`old = document.getElementById('`+id+`')`, nil), chromedp.Focus("#"+id), chromedp.KeyEvent(kb.Enter))
			b.Until(`!old.isConnected`)
		}
		if at := browsertest.Says[string](b, `document.activeElement.id`); at != id {
			t.Errorf("after a choice in #%s the focus is at %q", id, at)
		}
	}
}

// TestAFingerFindsMeanings: a tap on a name says what it means.
func TestAFingerFindsMeanings(t *testing.T) {
	t.Parallel()
	s := unservedFor(t)
	b := browsertest.Open(t, time.Minute)
	b.Run(chromedp.EmulateViewport(360, 740, chromedp.EmulateTouch, chromedp.EmulateMobile), chromedp.Navigate(s))
	b.Until(matrixShown)
	at := browsertest.Says[[]float64](b, `(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('th[scope=row] [data-t]').getBoundingClientRect())`)
	b.Run(input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: at[0], Y: at[1]}}), input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}))
	b.Until(`!document.getElementById('tip').hidden`)
	if says, means := browsertest.Says[string](b, `document.getElementById('tip').textContent`), browsertest.Says[string](b, `document.querySelector('th[scope=row] [data-t]').dataset.t`); says != means || says == "" {
		t.Errorf("a tap says %q, want %q", says, means)
	}
}
