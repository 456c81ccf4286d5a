// Package tabular makes tables for the terminal, without borders and without blanks at the ends of
// lines.
package tabular

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

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
