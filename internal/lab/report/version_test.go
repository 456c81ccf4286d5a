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
	"stocklock/internal/lab/words"
)

// TestSavedResultsOfEveryVersionAreShown reads a result that loadtest wrote when that version was
// the newest, and compares what the terminal shows of one cell. The forms of version 1 are in [TestForms].
func TestSavedResultsOfEveryVersionAreShown(t *testing.T) {
	for version := 2; version <= Version; version++ {
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
			if c.Strategy == "setnx" {
				out = &shown
			}
			fmt.Fprintln(out)
			Terminal{Out: out}.Explain(c)
		}
		if strings.Contains(shown.String()+others.String(), "step-") {
			t.Errorf("version %d: a phrase is shown by its name", version)
		}
		golden(t, name+".txt", shown.String())
		writeAll(t, r)
	}
}

func TestVersionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		version any
		says    string
	}{
		{1, ""}, {nil, ""}, {2, ""}, {3, ""}, {4, ""},
		{5, "version is 5, want 1 to 4: a newer loadtest shows a later version"},
		{0, "version is 0, want 1 to 4: a newer loadtest shows a later version"},
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
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "can read: version is 5, want 1 to 4: a newer loadtest") {
		t.Errorf("a newer result: %v", err)
	}
}

// TestComparingSaysWhatAVersionMeans: a verdict of the same name may be another.
func TestComparingSaysWhatAVersionMeans(t *testing.T) {
	of := map[int]Report{}
	for version := 1; version <= Version; version++ {
		var err error
		if of[version], err = Read(filepath.Join("testdata", fmt.Sprintf("version%d.json", version))); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		before, after int
		says          string
	}{
		{3, 3, ""}, {2, 2, ""}, {1, 2, ""}, {3, 4, ""},
		{2, 3, "saved as version 2 and 3. Since version 3, answers are compared"},
		{3, 1, "saved as version 3 and 1. Since version 3, answers are compared"},
	} {
		var out bytes.Buffer
		Terminal{Out: &out, Width: 400}.Compare(of[tt.before], of[tt.after])
		if strings.Contains(out.String(), "saved as version") != (tt.says != "") || !strings.Contains(out.String(), tt.says) {
			t.Errorf("%d and %d: %s", tt.before, tt.after, out.String())
		}
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
			both[i].savedAs = 0
		}
		if !reflect.DeepEqual(both[0], both[1]) {
			t.Errorf("%s and %s are read as %+v and %+v", before, now, both[0].Cells[0], both[1].Cells[0])
		}
	}
}

// TestWhatIsKeptOfAnExplanation: the phrases by their keys and the numbers, as they are, and the causes in the words of
// today.
func TestWhatIsKeptOfAnExplanation(t *testing.T) {
	for version := 2; version <= Version; version++ {
		content, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("version%d.json", version)))
		if err != nil {
			t.Fatal(err)
		}
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

// In version 2, the units that were left were those in the end.
func TestUnitsThatWereLeftInVersion2(t *testing.T) {
	for version, want := range map[int]string{2: "left 4", 3: "left 0"} {
		content := bytes.Replace(damaged(t, version, "version"), []byte(`"remaining":`), []byte(`"remaining":4,"was":`), 1)
		r, err := read(bytes.NewReader(bytes.Replace(content, []byte(`"verdict":"`), []byte(`"verdict":"left","was_verdict":"`), 1)))
		if err != nil || counted(words.English, r.Cells[0]) != want {
			t.Errorf("version %d is shown as %s, %v, want %s", version, counted(words.English, r.Cells[0]), err, want)
		}
	}
}

// A sentence of version 2 is made when it is shown: it is not in the file.
func TestSentencesAreNotSaved(t *testing.T) {
	r, err := Read(filepath.Join("testdata", "version2.json"))
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
