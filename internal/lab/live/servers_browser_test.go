package live

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stocklock/internal/lab/browsertest"
)

// TestCellsOfSeveralServersOnThePage runs those of lesson 10 by its buttons, and shows the cell that broke.
func TestCellsOfSeveralServersOnThePage(t *testing.T) {
	s := serve(t, Options{})
	if _, err := s.enqueue([]wanted{{cellName{"none", "galera-isolated"}, 1, 0}}, nil); err == nil {
		t.Error("a strategy runs under a scenario that it is no cell of")
	}
	b := browsertest.Open(t, 2*time.Minute)
	b.Run(chromedp.EmulateViewport(1024, 800), theme("light"), chromedp.Navigate(s.link()))
	b.Until(matrixShown)
	open(b, "#/lessons/10/run")
	b.Until(`document.querySelectorAll('.command-card .begin').length === 2`)
	b.Run(chromedp.Evaluate(`document.querySelectorAll('.begin')[1].click()`, nil))
	b.Until(`document.querySelectorAll('.command-card')[1].querySelector('.ran .v.oversold') && document.querySelector('.ran svg')`)
	screenshot(t, b, "servers-lesson")
	if why := browsertest.Says[string](b, `document.querySelectorAll('.command-card')[1].querySelector('.cause').textContent`); !strings.Contains(why, "on MySQL 2, whose log has the SELECT") {
		t.Errorf("the lesson says %q", why)
	}
	open(b, "#/cell/fenced/replica-reads-late")
	b.Until(`document.querySelector('.ended.is-oversold a[href="docs/choose.md#which-database"]')`)
	screenshot(t, b, "servers-cell")
	if wide := browsertest.Says[int64](b, `document.documentElement.scrollWidth`); wide > 1024 {
		t.Errorf("the page is %d wide", wide)
	}
}
