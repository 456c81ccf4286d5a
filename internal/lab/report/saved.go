package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"stocklock/internal/lab/trial"
)

// Version is the format of a saved result, and oldest the one of the oldest that is read. In version 4, a cell has the group
// of its scenario.
const (
	Version = 4
	oldest  = 3
)

// The limits of a saved result.
const (
	maxSize    = 256 << 20 // bytes; a whole matrix is some megabytes
	maxColumns = 100       // each step has a cell in every column
	maxSpans   = 10_000    // in a column: each is compared with the others
)

// Read reads a file that [Report.JSON] wrote, in this version or an older one, or for - standard input. Every form can
// be made of what it returns.
func Read(path string) (Report, error) {
	if path == "" {
		return Report{}, errors.New("the name of a file is empty: want a file that --out wrote")
	}
	return opened(path, "no result that this loadtest can read", read)
}

func read(from io.Reader) (Report, error) {
	content, err := bounded(from)
	if err != nil {
		return Report{}, err
	}
	return Decode(content)
}

// opened reads a file, or for - standard input. Of one that cannot be read it says that it is no such file.
func opened[T any](path, not string, read func(io.Reader) (T, error)) (none T, err error) {
	file := os.Stdin
	if path != "-" {
		if file, err = os.Open(path); err != nil {
			return none, err
		}
		defer file.Close()
	}
	content, err := read(file)
	if err != nil {
		return none, fmt.Errorf("%s is %s: %w", path, not, err)
	}
	return content, nil
}

func bounded(from io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxSize+1))
	if err == nil && len(content) > maxSize {
		err = fmt.Errorf("it has more than %d MiB", maxSize>>20)
	}
	return content, err
}

// Decode reads what [Report.JSON] wrote, in this version or an older one.
func Decode(content []byte) (Report, error) {
	content = neutral(bytes.TrimPrefix(content, []byte("\ufeff"))) // editors put a byte order mark first
	var r Report
	err := json.Unmarshal(content, &r)
	var wrong *json.UnmarshalTypeError
	switch {
	case r.Version > Version: // whatever else a later version has changed
		return r, fmt.Errorf("version is %d, want %d to %d: a newer loadtest shows a later version", r.Version, oldest, Version)
	case errors.As(err, &wrong):
		kind := strings.Replace(wrong.Type.Kind().String(), "struct", "object", 1)
		return r, fmt.Errorf("%s is of the kind %s, want %s", cmp.Or(wrong.Field, "the whole"), wrong.Value, kind)
	case err != nil:
		return r, err
	case r.Environment.Time == "":
		return r, errors.New("environment.time is missing: want a file that --out wrote")
	case r.Version < oldest:
		return r, fmt.Errorf("version is %d, want %d to %d: measure it anew", r.Version, oldest, Version)
	case r.Version == 3:
		err = r.fromVersion3(content)
	}
	r.Version = Version
	return r, cmp.Or(err, r.check())
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

// check finds values by which a form would index or divide out of range. It accepts unknown names
// of strategies and scenarios: the result of a newer program can still be read.
func (r Report) check() error {
	if len(r.Cells) == 0 && (r.Cells == nil || !r.Interrupted) {
		return errors.New("cells are missing: only an interrupted run has none")
	}
	seen := map[string]bool{}
	for i, c := range r.Cells {
		err := checkCell(c)
		if err == nil && seen[c.Name()] {
			err = fmt.Errorf("%s is there for a second time", c.Name())
		}
		if err != nil {
			return fmt.Errorf("cells[%d]: %w", i, err)
		}
		seen[c.Name()] = true
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
