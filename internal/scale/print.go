package scale

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Print writes a table for people.
func Print(out io.Writer, rows []Row) {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.DrawBorder = false
	style.Options.SeparateColumns = false
	w.SetStyle(style)
	w.AppendHeader(table.Row{"", "strategy", "items", "shops", "Redis\nservers", "busiest\nRedis", "units\nsold"})
	for _, r := range rows {
		share := "–"
		if r.Strategy != "conditional" {
			share = fmt.Sprintf("%.0f %%", 100*r.Busiest)
		}
		w.AppendRow(table.Row{r.Name, r.Strategy, r.Items, r.Shops, r.Masters, share, fmt.Sprintf("× %.1f", r.Ratio)})
	}
	var right []table.ColumnConfig
	for column := 3; column <= 7; column++ {
		right = append(right, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	w.SetColumnConfigs(right)
	fmt.Fprintln(out, w.Render())
}
