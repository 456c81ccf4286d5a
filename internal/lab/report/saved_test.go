package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// damaged is the saved result with one value changed: the keys and indexes lead there.
func damaged(t testing.TB, value any, to ...any) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "saved.json"))
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal(content, &whole); err != nil {
		t.Fatal(err)
	}
	place := whole
	for i, step := range to {
		last := i == len(to)-1
		switch step := step.(type) {
		case string:
			if last {
				place.(map[string]any)[step] = value
			}
			place = place.(map[string]any)[step]
		case int:
			if last {
				place.([]any)[step] = value
			}
			place = place.([]any)[step]
		}
	}
	content, err = json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestDamageIsSaidInOneLine(t *testing.T) {
	second := saved(t).Cells[0]
	for _, tt := range []struct {
		content []byte
		says    string
	}{
		{nil, "unexpected end"},
		{[]byte(`{"environment":`), "unexpected end"},
		{[]byte(`[1]`), "the whole is of the kind array, want object"},
		{append(damaged(t, 1, "environment", "cores"), "{}"...), "after top-level value"},
		{[]byte(`{}`), "environment.time is missing"},
		{damaged(t, "two", "environment", "cores"), "environment.cores is of the kind string, want int"},
		{damaged(t, nil, "cells"), "cells are missing"},
		{bytes.Replace(damaged(t, []any{}, "cells"), []byte(`"interrupted":true`), []byte(`"interrupted":false`), 1), "cells are missing"},
		{damaged(t, []any{nil}, "cells"), "cells[0]: want strategy"},
		{damaged(t, "", "cells", 1, "verdict"), "cells[1]: want strategy, scenario, verdict"},
		{damaged(t, second, "cells", 7), "cells[7]: none:contention is there for a second time"},
		{damaged(t, -1, "cells", 0, "explanation", "steps", 0, "lane"), "explanation.steps[0]: from lane -1 "},
		{damaged(t, 99, "cells", 0, "explanation", "steps", 0, "lane"), "explanation.steps[0]: from lane 99 "},
		{damaged(t, 99, "cells", 0, "explanation", "steps", 0, "to"), "to 99 of 4, counted from 0"},
		{damaged(t, make([]struct{}, 101), "cells", 0, "explanation", "lanes"), "101 columns, want at most 100"},
		{damaged(t, make([]struct{}, 10_001), "cells", 0, "explanation", "lanes", 0, "spans"), "lanes[0]: 10001 spans"},
		{damaged(t, []int{1}, "cells", 0, "timeline", "outcomes", "sold"), "outcomes.sold has 1 values: want 32"},
		{damaged(t, make([]int, 33), "cells", 0, "timeline", "outcomes", "sold"), "outcomes.sold has 33 values"},
		{damaged(t, []int{1}, "cells", 0, "timeline", "p50_ms"), "p50_ms has 1 values, p99_ms 32"},
		{damaged(t, nil, "cells", 0, "timeline", "p99_ms"), "p50_ms has 32 values, p99_ms 0"},
		{damaged(t, 0, "cells", 0, "timeline", "bin_ms"), "in bins of 0 ms"},
		{damaged(t, -1, "cells", 0, "timeline", "outcomes", "sold", 3), "want 32, none below 0"},
		{damaged(t, nil, "cells", 0, "distribution", 0, "up_to_ms"), "distribution[0]: 1 up to 0 ms"},
		{damaged(t, 1, "cells", 0, "distribution", 1, "up_to_ms"), "up to 1 ms after 25.12 ms"},
		{damaged(t, -1, "cells", 0, "distribution", 1, "count"), "distribution[1]: -1 up to"},
	} {
		_, err := read(bytes.NewReader(tt.content))
		if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s…: %v, want one line with %q", tt.content, err, tt.says)
		}
	}
}

func TestWhatNeedNotBeKnownIsRead(t *testing.T) {
	for _, content := range [][]byte{
		append([]byte("\ufeff"), damaged(t, 1, "environment", "cores")...),
		damaged(t, "lock-of-tomorrow", "cells", 0, "strategy"),
		damaged(t, "storm", "cells", 0, "scenario"),
		damaged(t, "exploded", "cells", 0, "verdict"),
		damaged(t, 1, "more"),
		damaged(t, nil, "cells", 0, "explanation"),
	} {
		r, err := read(bytes.NewReader(content))
		if err != nil {
			t.Error(err)
		}
		writeAll(t, r)
	}
}

// endless never ends, as /dev/zero does.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestReadingEnds(t *testing.T) {
	if _, err := read(endless{}); err == nil || !strings.Contains(err.Error(), "more than 256 MiB") {
		t.Errorf("without an end: %v", err)
	}
	if _, err := Read(""); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("without a name: %v", err)
	}
}

// writeAll writes a report in all forms. All but JSON must be free of control characters.
func writeAll(t *testing.T, r Report) {
	t.Helper()
	var out bytes.Buffer
	terminal := Terminal{Out: &out}
	terminal.Report(r)
	terminal.Compare(r, r)
	for _, c := range r.Cells {
		terminal.Explain(c)
	}
	for _, form := range []Form{Report.Markdown, Report.CSV} {
		if err := form(r, &out); err != nil {
			t.Error(err)
		}
	}
	if control := strings.IndexFunc(out.String(), func(c rune) bool {
		return c != '\n' && unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)
	}); control >= 0 {
		t.Errorf("what is written has a control character: %q", out.String()[max(control-20, 0):][:21])
	}
	out.Reset()
	if err := r.JSON(&out); err != nil {
		t.Error(err)
	}
	if _, err := read(&out); err != nil {
		t.Error("what was read and written cannot be read again:", err)
	}
}

func TestEscapesAreNotPassedOn(t *testing.T) {
	const hostile = "\x1b[31m\u009b2J\r\n\u202e|<x>`"
	for _, to := range [][]any{
		{"environment", "mysql"}, {"environment", "redis"}, {"environment", "go"}, {"environment", "os"}, {"environment", "command"},
		{"environment", "libraries", hostile},
		{"cells", 4, "strategy"}, {"cells", 4, "scenario"}, {"cells", 4, "verdict"}, {"cells", 4, "expected"}, {"cells", 4, "because", "property"},
		{"cells", 4, "reason"}, {"cells", 4, "replay"}, {"cells", 4, "spoiled"},
		{"cells", 0, "explanation", "cause"}, {"cells", 0, "explanation", "why", 0}, {"cells", 0, "explanation", "moment", "what"},
		{"cells", 0, "explanation", "lanes", 0, "name"}, {"cells", 0, "explanation", "steps", 0, "text"}, {"cells", 0, "explanation", "rows", 0, "shop"},
	} {
		t.Run(fmt.Sprint(to...), func(t *testing.T) {
			var value any = hostile
			if slices.Contains(to, any("spoiled")) {
				value = []string{hostile}
			}
			r, err := read(bytes.NewReader(damaged(t, value, to...)))
			if err != nil || strings.Contains(fmt.Sprintf("%+v", r), "\n") {
				t.Fatalf("%+v, %v", r, err)
			}
			writeAll(t, r)
		})
	}
}

// FuzzRead checks that all forms can be written of everything that is accepted. It changes two
// values of a cell's result: bytes that are changed anywhere are seldom JSON.
func FuzzRead(f *testing.F) {
	r, err := Read(filepath.Join("testdata", "saved.json"))
	if err != nil {
		f.Fatal(err)
	}
	cells := r.Cells
	for i, value := range []string{"null", "-1", "99", "1e-300", "1e12", `""`, "[]", "{}", "[{},{}]"} {
		f.Add(uint8(i), uint16(100*i), value, uint16(i), "1")
	}
	f.Fuzz(func(t *testing.T, cell uint8, at uint16, value string, alsoAt uint16, alsoValue string) {
		r.Cells = cells[int(cell)%len(cells):][:1]
		var whole bytes.Buffer
		if err := r.JSON(&whole); err != nil {
			t.Fatal(err)
		}
		changed := replaced(t, replaced(t, whole.Bytes(), at, value), alsoAt, alsoValue)
		if r, err := read(bytes.NewReader(changed)); err == nil {
			writeAll(t, r)
		}
	})
}

// replaced is JSON with another n-th value; n wraps around. The new value is a string unless it is
// JSON.
func replaced(t *testing.T, content []byte, n uint16, by string) []byte {
	var whole, value any
	if err := json.Unmarshal(content, &whole); err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal([]byte(by), &value) != nil {
		value = by
	}
	var setters []func()
	var walk func(v any, set func())
	walk = func(v any, set func()) {
		setters = append(setters, set)
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key], func() { v[key] = value })
			}
		case []any:
			for i := range v {
				walk(v[i], func() { v[i] = value })
			}
		}
	}
	walk(whole, func() { whole = value })
	setters[int(n)%len(setters)]()
	content, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
