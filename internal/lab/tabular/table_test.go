package tabular

import (
	"os"
	"os/exec"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// TestColumnsOfAChineseTerminal: marks have one column there, too, and characters two. The locale counts from the start
// of the program.
func TestColumnsOfAChineseTerminal(t *testing.T) {
	if os.Getenv("LC_ALL") != "zh_CN.UTF-8" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestColumnsOfAChineseTerminal$")
		again.Env = append(os.Environ(), "LC_ALL=zh_CN.UTF-8")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	w := New()
	w.AppendRows([]table.Row{{"·", "a"}, {"✓", "b"}, {"锁", "c"}})
	if got, want := w.Render(), " ·   a\n ✓   b\n 锁  c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := text.StringWidth(Cut("跑 1/2 …", 8)); got != 7 {
		t.Errorf("a line that is cut for 8 columns has %d, want 7", got)
	}
}
