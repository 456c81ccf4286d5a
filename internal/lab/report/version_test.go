package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSavedResultsOfEveryVersionAreShown reads a result that loadtest wrote when that version was
// the newest, and compares what the terminal shows of some cells.
func TestSavedResultsOfEveryVersionAreShown(t *testing.T) {
	for version := 1; version <= Version; version++ {
		name := fmt.Sprintf("version%d", version)
		r, err := Read(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Errorf("version %d: %v", version, err)
			continue
		}
		var shown, others bytes.Buffer
		Terminal{Out: &shown}.Report(r)
		for _, c := range r.Cells {
			out := &others // made of the same fields
			if c.Strategy == "setnx" || c.Strategy == "owner-checked" || c.Strategy == "redlock" {
				out = &shown
			}
			fmt.Fprintln(out)
			Terminal{Out: out}.Explain(c)
		}
		if strings.Contains(shown.String()+others.String(), "step-") {
			t.Errorf("version %d: a phrase is shown by its name", version)
		}
		golden(t, name+".txt", shown.Bytes())
		writeAll(t, r)
	}
}

func TestVersionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		version any
		says    string
	}{
		{1, ""}, {nil, ""}, {2, ""},
		{3, "version is 3, want 1 to 2: a newer loadtest shows a later version"},
		{0, "version is 0, want 1 to 2: a newer loadtest shows a later version"},
		{"two", "version is of the kind string, want int"},
	} {
		_, err := read(bytes.NewReader(damaged(t, tt.version, "version")))
		if got := fmt.Sprint(err); err == nil != (tt.says == "") || err != nil && got != tt.says {
			t.Errorf("version %v: %v, want %q", tt.version, err, tt.says)
		}
	}
}

// A later version may have given a value another form: its number is said first.
func TestANewerResultIsNamedAsSuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "newer.json")
	if err := os.WriteFile(path, []byte(`{"cells":{},"version":3}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "can read: version is 3, want 1 to 2: a newer loadtest") {
		t.Errorf("a newer result: %v", err)
	}
}

// A sentence of version 2 is made when it is shown: it is not in the file.
func TestSentencesAreNotSaved(t *testing.T) {
	r, err := Read(filepath.Join("testdata", "version2.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"version": 2`) {
		t.Error("the version is not saved")
	}
	for _, c := range r.Cells {
		if c.Explanation == nil {
			t.Fatalf("%s under %s has no explanation", c.Strategy, c.Scenario)
		}
		for _, text := range c.Explanation.Why {
			if words := said(text); strings.Contains(out.String(), words) {
				t.Errorf("%s under %s: %q is saved", c.Strategy, c.Scenario, words)
			}
		}
	}
}
