package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// print prints a table. If it has no room, columns with a largest width become narrower, and then
// columns are left out in the order of less. A line names those.
func (t Terminal) print(w table.Writer, header table.Row, columns []table.ColumnConfig, less ...int) {
	w.AppendHeader(header)
	w.SetColumnConfigs(columns)
	whole := rendered(w)
	shown := whole
	for !t.fits(shown) && narrow(columns) {
		w.SetColumnConfigs(columns)
		shown = rendered(w)
	}
	var left []string
	for _, n := range less {
		if t.fits(shown) {
			break
		}
		columns = append(columns, table.ColumnConfig{Number: n, Hidden: true})
		w.SetColumnConfigs(columns)
		shown = rendered(w)
		left = append(left, inOneLine(header[n-1].(string)))
	}
	fmt.Fprintln(t.Out, shown)
	if len(left) > 0 {
		t.wrapped(t.say("report.left-out", "names", strings.Join(left, ", "), "width", text.LongestLineLen(whole)))
	}
}

// narrowest is the width below which no text is broken.
const narrowest = 24

// narrow makes columns with a largest width narrower, and reports whether there was one.
func narrow(columns []table.ColumnConfig) (narrowed bool) {
	for i := range columns {
		if columns[i].WidthMax > narrowest {
			columns[i].WidthMax = max(columns[i].WidthMax-4, narrowest)
			narrowed = true
		}
	}
	return narrowed
}

func (t Terminal) fits(s string) bool { return text.LongestLineLen(s) <= t.width() }

// rendered is the table with a rule that is no longer than the rows: a longer one would wrap.
func rendered(w table.Writer) string {
	const rule = "─"
	lines := strings.Split(w.Render(), "\n")
	isRule := func(line string) bool { return strings.HasPrefix(line, rule) }
	i := slices.IndexFunc(lines, isRule)
	if i >= 0 {
		lines[i] = ""
		lines[i] = strings.Repeat(rule, text.LongestLineLen(strings.Join(lines, "\n")))
	}
	return strings.Join(lines, "\n")
}
