package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stocklock/internal/lab/browsertest"
)

// TestCellsOfBasketsOnThePage runs one from their matrix, on a wide and on a narrow page.
func TestCellsOfBasketsOnThePage(t *testing.T) {
	s := serve(t, Options{})
	b := browsertest.Open(t, 2*time.Minute)
	b.Run(chromedp.EmulateViewport(1024, 800), theme("light"), chromedp.Navigate(s.link()))
	b.Until(matrixShown)
	for i, width := range []int64{1024, 360} {
		b.Run(chromedp.EmulateViewport(width, 800))
		open(b, "#/baskets")
		b.Until(`document.querySelector('[data-cell="locks-unsorted/crossed"]')`)
		screenshot(t, b, "baskets-"+[]string{"wide", "narrow"}[i])
		if wide := browsertest.Says[int64](b, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("the page is %d wide on a screen of %d", wide, width)
		}
		open(b, "#/cell/locks-unsorted/crossed")
		if i == 0 {
			b.Run(click(`[data-word=left]`))
		}
		b.Until(`document.querySelectorAll('.story li').length >= 5 && document.querySelector('.ended')`)
		screenshot(t, b, "baskets-cell-"+[]string{"wide", "narrow"}[i])
	}
	for _, width := range []int64{1024, 360} {
		b.Run(chromedp.EmulateViewport(width, 800))
		open(b, "#/step/baskets:locks-unsorted/2/A.set%20B.set/end")
		b.Until(`document.querySelector('pre.drawing') && document.querySelector('#ending [class="v left"]')`)
		if drawn := browsertest.Says[string](b, `document.querySelector('pre.drawing').textContent`); !strings.Contains(drawn, "a circle: A ──waits for──▶ item 2") {
			t.Errorf("no circle is drawn:\n%s", drawn)
		}
		if wide := browsertest.Says[int64](b, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("the steps are %d wide on a screen of %d", wide, width)
		}
		screenshot(t, b, fmt.Sprint("baskets-step-", width))
	}
	b.Run(click("#language"))
	b.Until(`document.querySelector('pre.drawing')?.textContent.includes('环路：A ──等待──▶ 商品 2')`)
	if r := s.finished(t, 1); r.Verdict != "left" || r.Prediction != "left" {
		t.Errorf("the cell is %s, predicted %q", r.Verdict, r.Prediction)
	}
}
