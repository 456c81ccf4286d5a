package stalltest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// double is a test that keeps what became of it.
type double struct {
	testing.TB
	failed, skipped string
}

func (*double) Helper()      {}
func (*double) Name() string { return "TestThing" }

func (d *double) Fatal(args ...any) { d.failed = fmt.Sprint(args...) }
func (d *double) Skip(args ...any)  { d.skipped = fmt.Sprint(args...) }

func TestOnlyAGapExcusesATest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stalled")
	t.Setenv(File, file)
	for _, test := range []struct {
		gap     time.Duration
		excused bool
	}{{0, false}, {time.Second, false}, {time.Second + 1, true}} {
		d := &double{}
		w := &Watch{t: d}
		w.gap.Store(int64(test.gap))
		w.Fatalf(time.Second, "took %s", 3*time.Second)
		if excused := d.skipped != ""; excused != test.excused || excused == (d.failed != "") {
			t.Errorf("after a gap of %s: failed %q, skipped %q", test.gap, d.failed, d.skipped)
		}
	}
	noted, err := os.ReadFile(file)
	if err != nil || string(noted) != "TestThing: the machine stood still for 1s: took 3s\n" {
		t.Errorf("noted %q, %v, want the one test that was excused", noted, err)
	}
	t.Setenv(File, t.TempDir()) // no file
	d := &double{}
	w := &Watch{t: d}
	w.gap.Store(int64(time.Minute))
	if w.Fatalf(time.Second, "took"); d.skipped != "" && d.failed == "" || !strings.Contains(d.failed, "is a directory") {
		t.Errorf("where it cannot be noted: failed %q, skipped %q, want both reasons", d.failed, d.skipped)
	}
}

func TestTheLongestGapIsMeasured(t *testing.T) {
	w, now := &Watch{}, time.Time{}
	for _, test := range []struct{ after, gap time.Duration }{{every, 0}, {every / 2, 0}, {every + 2, 2}, {every + 1, 2}} {
		if now = w.awake(now, now.Add(test.after)); w.Gap() != test.gap {
			t.Errorf("awake after %s: the longest gap is %s, want %s", test.after, w.Gap(), test.gap)
		}
	}
}

func TestNothingStandsStillInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Start(t)
		time.Sleep(time.Minute)
		if w.Gap() != 0 {
			t.Errorf("a gap of %s without a stall", w.Gap())
		}
	})
}
