package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// Version is the format of a saved result. A result without a version is version 1. Version 2 keeps the
// causes and facts of an explanation, of which sentences are made when it is shown. In version 3, orders
// and answers are compared in both directions. In version 4, a cell has the group of its scenario.
const Version = 4

// meanings say what a version means otherwise than the one before it, where a verdict or a number of
// the same name is another.
var meanings = map[int]string{
	3: "answers are compared with orders by purchase and in both directions, and customers under faults buy several units, " +
		"repeat purchases and meet a restock: a cell that was held or invalid before may be twice, denied or left, by the same strategy",
}

// The limits of a saved result.
const (
	maxSize    = 256 << 20 // bytes; a whole matrix is some megabytes
	largest    = 1e20      // of a number that can be drawn; a seed is below it
	maxColumns = 100       // each step has a cell in every column
	maxSpans   = 10_000    // in a column: each is compared with the others
)

// Read reads a file that [Report.JSON] wrote, in this version or an older one, or for - standard input. Every form can
// be made of what it returns.
func Read(path string) (Report, error) {
	if path == "" {
		return Report{}, errors.New("the name of a file is empty: want a file that --out wrote")
	}
	file := os.Stdin
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return Report{}, err
		}
		defer file.Close()
	}
	r, err := read(file)
	if err != nil {
		return Report{}, fmt.Errorf("%s is no result that this loadtest can read: %w", path, err)
	}
	return r, nil
}

func read(from io.Reader) (Report, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxSize+1))
	if err == nil && len(content) > maxSize {
		err = fmt.Errorf("it has more than %d MiB", maxSize>>20)
	}
	if err != nil {
		return Report{}, err
	}
	return Decode(content)
}

// Decode reads what [Report.JSON] wrote, in this version or an older one.
func Decode(content []byte) (Report, error) {
	content = neutral(bytes.TrimPrefix(content, []byte("\ufeff"))) // editors put a byte order mark first
	r := Report{Version: 1}
	err := json.Unmarshal(content, &r)
	var wrong *json.UnmarshalTypeError
	switch {
	case r.Version < 1 || r.Version > Version: // whatever else a later version has changed
		return r, fmt.Errorf("version is %d, want 1 to %d: a newer loadtest shows a later version", r.Version, Version)
	case errors.As(err, &wrong):
		kind := strings.Replace(wrong.Type.Kind().String(), "struct", "object", 1)
		return r, fmt.Errorf("%s is of the kind %s, want %s", cmp.Or(wrong.Field, "the whole"), wrong.Value, kind)
	case err != nil:
		return r, err
	case r.Environment.Time == "":
		return r, errors.New("environment.time is missing: want a file that --out wrote")
	case r.Version == 1:
		err = r.fromVersion1(content)
	}
	if r.Version < 3 {
		r.fromVersion2()
	}
	if r.Version < 4 && err == nil {
		err = r.fromVersion3(content)
	}
	r.savedAs, r.Version = r.Version, Version
	return r, cmp.Or(err, checkNumbers(content), r.check())
}

// fromVersion3 reads the groups of cells: before, each kind of cell had a field of its own.
func (r *Report) fromVersion3(content []byte) error {
	var before struct {
		Cells []struct {
			Baskets  bool
			Topology string
		}
	}
	err := json.Unmarshal(content, &before)
	for i, c := range before.Cells {
		switch {
		case i >= len(r.Cells):
		case c.Baskets:
			r.Cells[i].Group = trial.Baskets
		default:
			r.Cells[i].Group = c.Topology
		}
	}
	return err
}

var escape = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// neutral replaces the control characters in JSON, as they are and as escapes. Line ends stay between
// values: within a name or a sentence, the text after one could pass for a line of the table.
func neutral(content []byte) []byte {
	return escape.ReplaceAllFunc(bytes.Map(printable, content), func(e []byte) []byte {
		said, err := strconv.Unquote(`"` + string(e) + `"`)
		r, _ := utf8.DecodeRuneInString(said)
		switch {
		case r == '\n':
			return []byte(" ")
		case err != nil || printable(r) == r:
			return e
		}
		return []byte(string(printable(r)))
	})
}

func printable(r rune) rune {
	switch {
	case r == '\n':
		return r
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
		return unicode.ReplacementChar
	}
	return r
}

// checkNumbers finds a number that cannot be drawn.
func checkNumbers(content []byte) error {
	tokens := json.NewDecoder(bytes.NewReader(content))
	tokens.UseNumber()
	for token, err := tokens.Token(); err == nil; token, err = tokens.Token() {
		number, _ := token.(json.Number)
		if n, _ := number.Float64(); math.Abs(n) > largest { // infinite where float64 has no such number
			line := 1 + bytes.Count(content[:tokens.InputOffset()], []byte("\n"))
			return fmt.Errorf("line %d has the number %g, want at most %g", line, n, largest)
		}
	}
	return nil
}

// check finds values by which a form would index or divide out of range. It accepts unknown names
// of strategies and scenarios: the result of a newer program can still be read.
func (r Report) check() error {
	if len(r.Cells) == 0 && (r.Cells == nil || !r.Interrupted) {
		return errors.New("cells are missing: only an interrupted run has none")
	}
	seen := map[place]bool{}
	for i, c := range r.Cells {
		err := checkCell(c)
		if err == nil && seen[placeOf(c)] {
			err = fmt.Errorf("%s is there for a second time", c.Name())
		}
		if err != nil {
			return fmt.Errorf("cells[%d]: %w", i, err)
		}
		seen[placeOf(c)] = true
	}
	return nil
}

func checkCell(c trial.Result) error {
	if c.Strategy == "" || c.Scenario == "" || c.Verdict == "" || c.Expected == "" {
		return errors.New("want strategy, scenario, verdict and expected")
	}
	bins, width := len(c.Timeline.P50), c.Timeline.BinMS
	if len(c.Timeline.P99) != bins || bins > 0 && width <= 0 {
		return fmt.Errorf("timeline: p50_ms has %d values, p99_ms %d, in bins of %g ms", bins, len(c.Timeline.P99), width)
	}
	for outcome, counts := range c.Timeline.Outcomes {
		if len(counts) != bins || bins > 0 && slices.Min(counts) < 0 {
			return fmt.Errorf("timeline: outcomes.%s has %d values: want %d, none below 0", outcome, len(counts), bins)
		}
	}
	last := 0.0
	for i, b := range c.Distribution {
		if b.UpToMS <= 0 || b.UpToMS < last || b.Count < 0 {
			return fmt.Errorf("distribution[%d]: %d up to %g ms after %g ms: want growing limits, no count below 0",
				i, b.Count, b.UpToMS, last)
		}
		last = b.UpToMS
	}
	x := c.Explanation
	if x == nil {
		return nil
	}
	if len(x.Columns) > maxColumns {
		return fmt.Errorf("explanation: %d columns, want at most %d", len(x.Columns), maxColumns)
	}
	for i, column := range x.Columns {
		if len(column.Spans) > maxSpans {
			return fmt.Errorf("explanation.lanes[%d]: %d spans, want at most %d", i, len(column.Spans), maxSpans)
		}
	}
	for i, s := range x.Steps {
		if min(s.Column, s.To) < 0 || max(s.Column, s.To) >= len(x.Columns) {
			return fmt.Errorf("explanation.steps[%d]: from lane %d to %d of %d, counted from 0", i, s.Column, s.To, len(x.Columns))
		}
	}
	return nil
}

// fromVersion1 brings a report that was read from version 1 to what it would be in this one.
// Sentences stay the words that were saved.
func (r *Report) fromVersion1(content []byte) error {
	var old struct {
		Environment struct {
			Sites int `json:"sites"` // what testbeds were called
		} `json:"environment"`
		Cells []struct {
			Strikes     int64 `json:"strikes"` // what faults_met was called
			Explanation struct {
				Sentence string `json:"sentence"`
			} `json:"explanation"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(content, &old); err != nil {
		return err
	}
	r.Environment.Testbeds = cmp.Or(r.Environment.Testbeds, old.Environment.Sites)
	for i, c := range r.Cells {
		r.Cells[i].FaultsMet = max(c.FaultsMet, old.Cells[i].Strikes)
		x := c.Explanation
		if x == nil {
			continue
		}
		if sentence := old.Cells[i].Explanation.Sentence; len(x.Why) == 0 && sentence != "" {
			x.Why = []words.Text{{Words: sentence}}
		}
		for n, s := range x.Steps {
			if s.Text.Words == "asks" {
				x.Steps[n].Text = words.Text{Key: explain.Asks}
			}
		}
	}
	return nil
}

// fromVersion2 brings a report that was read from version 2, or brought to it, to version 3. Left were
// the units in the end; no cell counted those that were left meanwhile.
func (r *Report) fromVersion2() {
	for i, c := range r.Cells {
		if c.Verdict == verdict.Left {
			r.Cells[i].Left = c.Remaining
		}
	}
}

// Form is one way to write a report.
type Form func(Report, io.Writer) error

// JSON writes the report with one strategy and one cell a line.
func (r Report) JSON(w io.Writer) error {
	strategies, err := lines(r.Strategies)
	cells, wrong := lines(r.Cells)
	r.Version, r.Strategies, r.Cells = Version, nil, nil
	head, failed := json.MarshalIndent(r, "", "  ")
	if err := errors.Join(err, wrong, failed); err != nil {
		return err
	}
	const none = "\"cells\": null\n}"
	_, err = fmt.Fprintf(w, "%s\"strategies\": %s,\n  \"cells\": %s}\n", head[:len(head)-len(none)], strategies, cells)
	return err
}

func lines[T any](values []T) (string, error) {
	all := make([]string, len(values))
	for i, v := range values {
		line, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		all[i] = string(line)
	}
	return "[\n" + strings.Join(all, ",\n") + "\n]", nil
}
