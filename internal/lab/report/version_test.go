package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"stocklock/internal/lab/verdict"
)

// savedAs is a result of a version. The one that loadtest wrote when version 3 was the newest differed from this by its number
// alone.
func savedAs(t *testing.T, version int) []byte {
	t.Helper()
	content, err := os.ReadFile("testdata/version4.json")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Replace(content, []byte(`"version": 4`), fmt.Appendf(nil, `"version": %d`, version), 1)
}

// TestSavedResultsOfEveryVersionAreShown reads a result that loadtest wrote when that version was
// the newest, and compares what the terminal shows of one cell.
func TestSavedResultsOfEveryVersionAreShown(t *testing.T) {
	for version := oldest; version <= Version; version++ {
		r, err := read(bytes.NewReader(savedAs(t, version)))
		if err != nil {
			t.Errorf("version %d: %v", version, err)
			continue
		}
		var shown, others bytes.Buffer
		Terminal{Out: &shown}.Report(r)
		for _, c := range r.Cells {
			out := &others // made of the same fields
			if c.Strategy == "setnx" {
				out = &shown
			}
			fmt.Fprintln(out)
			Terminal{Out: out}.Explain(c)
		}
		if strings.Contains(shown.String()+others.String(), "step-") {
			t.Errorf("version %d: a phrase is shown by its name", version)
		}
		golden(t, "version4.txt", shown.String())
		writeAll(t, r)
	}
}

func TestVersionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		version any
		says    string
	}{
		{3, ""}, {4, ""},
		{5, "version is 5, want 3 to 4: a newer loadtest shows a later version"},
		{2, "version is 2, want 3 to 4: measure it anew"}, {nil, "version is 0, want 3 to 4: measure it anew"},
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
	if err := os.WriteFile(path, []byte(`{"cells":{},"version":5}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "can read: version is 5, want 3 to 4: a newer loadtest") {
		t.Errorf("a newer result: %v", err)
	}
}

// TestACellOfVersion3IsTheSameInVersion4: each kind of cell had a field of its own.
func TestACellOfVersion3IsTheSameInVersion4(t *testing.T) {
	for before, now := range map[string]string{`"baskets":true`: `"group":"baskets"`, `"topology":"async"`: `"group":"async"`, `"seed":1`: `"seed":1`} {
		var both [2]Report
		for i, field := range []string{before, now} {
			content := bytes.Replace(damaged(t, 3+i, "version"), []byte(`"scenario":`), []byte(field+`,"scenario":`), 1)
			var err error
			if both[i], err = read(bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(both[0], both[1]) {
			t.Errorf("%s and %s are read as %+v and %+v", before, now, both[0].Cells[0], both[1].Cells[0])
		}
	}
}

// TestWhatIsKeptOfAnExplanation: the phrases by their keys and the numbers, as they are, and the causes in the words of
// today.
func TestWhatIsKeptOfAnExplanation(t *testing.T) {
	for version := oldest; version <= Version; version++ {
		content := savedAs(t, version)
		var kept struct {
			Cells []struct{ Explanation map[string]any }
		}
		r, wrong := read(bytes.NewReader(content))
		numbers := json.NewDecoder(bytes.NewReader(content))
		numbers.UseNumber()
		if err := errors.Join(numbers.Decode(&kept), wrong); err != nil {
			t.Fatal(err)
		}
		for i, c := range r.Cells {
			if c.Strategy == "setnx" && c.Explanation.Cause != verdict.NoExpiry || c.Explanation.Cause.Doc() == "" {
				t.Errorf("version %d: %s is by %s", version, c.Name(), c.Explanation.Cause)
			}
			text, err := json.Marshal(c.Explanation)
			var read map[string]any
			again := json.NewDecoder(bytes.NewReader(text))
			again.UseNumber()
			if err := errors.Join(err, again.Decode(&read)); err != nil {
				t.Fatal(err)
			}
			for field, was := range kept.Cells[i].Explanation {
				if field != "cause" && fmt.Sprint(read[field]) != fmt.Sprint(was) { // an order is a number or a text
					t.Errorf("version %d, %s, %s:\n%v was kept, and is\n%v", version, c.Name(), field, was, read[field])
				}
			}
		}
	}
}

// A sentence is made when it is shown: it is not in the file.
func TestSentencesAreNotSaved(t *testing.T) {
	r, err := Read(filepath.Join("testdata", "version4.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := written(t, Report.JSON, r)
	if !strings.Contains(out, `"version": 4`) {
		t.Error("the version is not saved")
	}
	for _, c := range r.Cells {
		if c.Explanation == nil {
			t.Fatalf("%s under %s has no explanation", c.Strategy, c.Scenario)
		}
		for _, text := range c.Explanation.Why {
			if said := text.String(); strings.Contains(out, said) {
				t.Errorf("%s under %s: %q is saved", c.Strategy, c.Scenario, said)
			}
		}
	}
}
