package scale

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/tabular"
)

// Print writes a table for people.
func Print(out io.Writer, rows []Row) {
	w := tabular.New()
	w.AppendHeader(table.Row{"", "strategy", "items", "shops", "Redis\nservers", "busiest\nRedis", "units\nsold", "with a\nbinlog"})
	for _, r := range rows {
		share := "–"
		if r.Strategy == "fenced" {
			share = fmt.Sprintf("%.0f %%", 100*r.Busiest)
		}
		w.AppendRow(table.Row{r.Name, r.Strategy, r.Items, r.Shops, r.Masters, share, fmt.Sprintf("× %.1f", r.Ratio), fmt.Sprintf("× %.1f", r.Binlog)})
	}
	w.SetColumnConfigs(tabular.Right(3, 8))
	fmt.Fprintln(out, w.Render())
}
