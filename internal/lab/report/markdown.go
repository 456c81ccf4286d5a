package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Markdown writes what one pastes into an issue: what the terminal shows, as code, with the drawings of what broke. Of a
// matrix, only surprises are drawn.
func (r Report) Markdown(w io.Writer) error {
	var shown strings.Builder
	t := Terminal{Out: &shown}
	t.Report(r)
	drawn := r.Surprises()
	if !r.isMatrix() {
		drawn = r.telling()
	}
	for _, c := range drawn {
		fmt.Fprintln(t.Out)
		t.Explain(c)
	}
	fmt.Fprintln(t.Out)
	t.wrapped(r.Environment.Go + ": " + r.Environment.Command)
	_, err := fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(strings.TrimRight(shown.String(), "\n"), "\n", "\n    ")) // indented, it is code
	return err
}

// CSV writes the numbers, one line a cell. A number that a cell does not have is empty.
func (r Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	header := []string{"strategy", "scenario", "seed", "runs", "agreed", "verdict", "expected", "cause", "initial_stock"}
	for _, m := range metrics {
		header = append(header, m.csvName())
	}
	out.Write(header)
	for _, c := range r.InOrder() {
		cause := ""
		if c.Explanation != nil {
			cause = string(c.Explanation.Cause)
		}
		line := []string{c.Strategy, c.Scenario, fmt.Sprint(c.Seed), fmt.Sprint(c.Runs), fmt.Sprint(c.Agreed),
			string(c.Verdict), string(c.Expected), cause, fmt.Sprint(c.InitialStock)}
		for _, m := range metrics {
			value := ""
			if v, ok := m.value(c); ok {
				value = strconv.FormatFloat(v, 'f', -1, 64)
			}
			line = append(line, value)
		}
		out.Write(line)
	}
	out.Flush()
	return out.Error()
}
