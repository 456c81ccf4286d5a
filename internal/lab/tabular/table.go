// Package tabular makes tables for the terminal, without borders and without blanks at the ends of
// lines.
package tabular

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Terminals draw what has no width of its own in one column, such as · and ✓, also where LANG is Chinese.
func init() { text.OverrideRuneWidthEastAsianWidth(false) }

// Cut returns a line as far as it leaves the last column of a terminal free, behind which some wrap.
func Cut(line string, width int) string { return text.Trim(line, width-1) }

// New returns an empty table.
func New() table.Writer {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header, style.Format.Footer = text.FormatDefault, text.FormatDefault
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	return w
}

// Right aligns columns to the right, counted from 1.
func Right(first, last int) []table.ColumnConfig {
	var configs []table.ColumnConfig
	for n := first; n <= last; n++ {
		configs = append(configs, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight})
	}
	return configs
}
