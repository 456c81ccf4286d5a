package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/ladder"
)

// keeping is a server that keeps its runs in a folder, and runs nothing.
func keeping(t *testing.T, folder string) *Server {
	t.Helper()
	s, err := New(Options{Shop: &catalog.Catalog{Strategies: ladder.Describe(ladder.All())}, Token: testToken, Keep: folder})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRunsAreShownAgain: a page that starts again has the runs of before with their records, and nothing that was typed. A
// file that is no run is left out.
func TestRunsAreShownAgain(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "runs[1]") // no pattern
	s, beside := keeping(t, folder), keeping(t, folder)
	five := int64(5)
	for _, c := range savedReport(t).Cells[:3] {
		r := &run{cellName: cellName{c.Strategy, c.Scenario}, Seed: c.Seed, Prediction: "oversold", record: &record{scene{Initial: 30}, []Entry{{AtMS: 1, Kind: Ordered, Read: &five, Stock: &five}}}}
		r.conclude(c)
		if err := s.keeper.keep(r); err != nil {
			t.Fatal(err)
		}
		s, beside = beside, s
	}
	for name, text := range map[string]string{"run-000004.json": "{", "run-000005.json": `{"entries": [{"kind": "order"}]}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := keeping(t, folder)
	now, _ := again.state()
	if len(now.Runs) != 3 || again.before != 3 {
		t.Fatalf("%d runs are shown, want 3", len(now.Runs))
	}
	for i, r := range again.runs {
		if d := newDetail(*r, nil); r.ID != i+1 || r.State != ended || r.Prediction != "" || d.Replay == nil || len(d.Why) == 0 {
			t.Errorf("run %d: %+v, %+v", i+1, r, d)
		}
	}
	if again.keeper.last != 5 {
		t.Errorf("the next file has the number %d, want the one behind all that are there", again.keeper.last+1)
	}
}

// TestAKeptRunWithOtherRows is drawn: a program of another version may have drawn more.
func TestAKeptRunWithOtherRows(t *testing.T) {
	for _, rows := range []int{-1, 0, mostRows + 5} {
		s := keeping(t, t.TempDir())
		of := clashOf()
		of.scene.Rows = rows
		r := &run{cellName: cellName{"none", "pause"}, record: of}
		r.conclude(trial.Result{Strategy: "none", Scenario: "pause", Verdict: verdict.Held, Expected: verdict.Held, Requests: 2})
		if err := s.keeper.keep(r); err != nil {
			t.Fatal(err)
		}
		all, err := s.keeper.open()
		if err != nil || len(all) != 1 {
			t.Fatalf("%d runs: %v", len(all), err)
		}
		if d := newDetail(*all[0], nil); d.Replay.Shapes == "" {
			t.Errorf("of %d rows nothing is drawn", rows)
		}
	}
}

// TestTheOldestRunsGo, by their number and by their size.
func TestTheOldestRunsGo(t *testing.T) {
	k := keeper{folder: t.TempDir()}
	for _, name := range []string{"run-000001.json", "run-000002.json", "run-000003.json", "run-000004.json"} {
		if err := os.WriteFile(filepath.Join(k.folder, name), make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		most  int
		bytes int64
		left  string
	}{{3, 1000, "234"}, {3, 250, "34"}, {1, 1000, "4"}} {
		if err := k.trim(tt.most, tt.bytes); err != nil {
			t.Error(err)
		}
		files, err := k.files()
		if left := strings.NewReplacer(k.folder, "", "/run-00000", "", ".json", "").Replace(strings.Join(files, "")); left != tt.left || err != nil {
			t.Errorf("of %d files with %d bytes, %s are left, want %s: %v", tt.most, tt.bytes, left, tt.left, err)
		}
	}
}

// TestAFolderThatCannotBeWritten is no reason not to start.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	s := keeping(t, "/dev/null/runs")
	r := &run{}
	r.conclude(savedReport(t).Cells[0])
	if err := s.keeper.keep(r); err != nil {
		t.Errorf("each run says it again: %v", err)
	}
}
