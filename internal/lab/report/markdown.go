package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"stocklock/internal/lab/trial"
)

// Markdown writes tables to paste into an issue: the comparison under contention, the
// matrix where there are several scenarios, and the surprises with the command that repeats them.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", r.title())
	if r.Interrupted {
		b.WriteString("\n**Interrupted: cells are missing.**\n")
	}
	if compared := underContention(r.inOrder()); len(compared) > 0 {
		r.markdownComparison(&b, compared)
	}
	if strategies, scenarios := r.places(); len(scenarios) > 1 {
		b.WriteString("\n| strategy |")
		for _, sc := range scenarios {
			fmt.Fprintf(&b, " %s |", markdownText(sc.Name))
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(scenarios)) + "\n")
		cells := r.byPlace()
		for _, s := range strategies {
			fmt.Fprintf(&b, "| %s |", tableCode(s.Name))
			for _, sc := range scenarios {
				c, ok := cells[place{s.Name, sc.Name}]
				if !ok {
					b.WriteString(" |")
					continue
				}
				fmt.Fprintf(&b, " %s |", markdownVerdict(c))
			}
			b.WriteString("\n")
		}
	}
	for _, c := range r.Surprises() {
		fmt.Fprintf(&b, "\n**Surprise:** %s under %s: %s, expected %s. Again: %s\n", markdownCode(c.Strategy), markdownText(c.Scenario),
			markdownText(string(c.Verdict)), markdownText(string(c.Expected)), markdownCode(c.Replay))
	}
	e := r.Environment
	fmt.Fprintf(&b, "\n%s: %s\n", markdownText(strings.Join(append(e.short(), e.Go), ", ")), markdownCode(e.Command))
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) markdownComparison(b *strings.Builder, cells []trial.Result) {
	if note := r.Environment.sideBySide(); note != "" {
		fmt.Fprintf(b, "\n%s\n", note)
	}
	costs := slices.ContainsFunc(cells, func(c trial.Result) bool { return c.CostPerSale != nil })
	header, rule := "", ""
	if costs {
		header, rule = " Redis/sale | database/sale |", "--:|--:|"
	}
	fmt.Fprintf(b, "\n| strategy | sold | oversold | sales/s | p50 ms | p95 ms | p99 ms |%s verdict |\n|---|--:|--:|--:|--:|--:|--:|%s---|\n", header, rule)
	for _, c := range cells {
		fmt.Fprintf(b, "| %s | %d/%d | %d | %s | %s | %s | %s |", tableCode(c.Strategy), c.Sold, c.InitialStock, c.Oversold,
			short(c.SalesPerSecond), short(c.Latency.P50), short(c.Latency.P95), short(c.Latency.P99))
		if costs {
			redis, database := cost(c)
			fmt.Fprintf(b, " %s | %s |", redis, database)
		}
		fmt.Fprintf(b, " %s |\n", markdownVerdict(c))
	}
}

func underContention(cells []trial.Result) []trial.Result {
	var found []trial.Result
	for _, c := range cells {
		if c.Comparable() && c.Requests > 0 {
			found = append(found, c)
		}
	}
	return found
}

// cost is what a sale cost, or dashes where that is not known.
func cost(c trial.Result) (redis, database string) {
	if c.CostPerSale == nil {
		return "–", "–"
	}
	return short(c.CostPerSale.Redis), short(c.CostPerSale.Database)
}

func markdownVerdict(c trial.Result) string {
	word := markdownText(counted(c))
	if c.Surprise() {
		return "**" + word + "!**"
	}
	return word
}

// markdownText escapes what would be HTML, emphasis, a link, or the end of a table's cell.
func markdownText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, "&", `\&`, "|", `\|`, "\n", " ").Replace(s)
}

// markdownCode is code in a line, in which nothing can be escaped: what would end it is replaced.
func markdownCode(s string) string {
	return "`" + strings.NewReplacer("`", "'", "\n", " ").Replace(s) + "`"
}

// tableCode is code in a table, whose cells end at every bar that is not escaped, in code too.
func tableCode(s string) string { return strings.ReplaceAll(markdownCode(s), "|", `\|`) }

// CSV writes the numbers, one line a cell.
func (r Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"strategy", "scenario", "seed", "runs", "agreed", "verdict", "expected", "cause", "initial_stock", "requests", "sold", "remaining",
		"oversold", "lost_updates", "told_sold", "sold_out", "busy", "fenced", "lost", "conflict", "refused", "unknown", "errors", "strikes",
		"sales_per_second", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms", "corrected_p50_ms", "corrected_p99_ms", "corrected_max_ms",
		"redis_per_sale", "database_per_sale", "seconds"})
	for _, c := range r.inOrder() {
		cause, redis, database := "", "", ""
		if c.Explanation != nil {
			cause = string(c.Explanation.Cause)
		}
		if c.CostPerSale != nil {
			redis, database = short(c.CostPerSale.Redis), short(c.CostPerSale.Database)
		}
		line := []string{c.Strategy, c.Scenario}
		for _, v := range []any{c.Seed, c.Runs, c.Agreed, c.Verdict, c.Expected, cause, c.InitialStock, c.Requests, c.Sold, c.Remaining, c.Oversold,
			c.LostUpdates, c.Answered, c.SoldOut, c.Busy, c.Fenced, c.Lost, c.Conflict, c.Refused, c.Unknown, c.Errors, c.Strikes,
			c.SalesPerSecond, c.Latency.P50, c.Latency.P95, c.Latency.P99, c.Latency.P999, c.Latency.Max,
			c.Corrected.P50, c.Corrected.P99, c.Corrected.Max, redis, database, c.Seconds} {
			line = append(line, fmt.Sprint(v))
		}
		out.Write(line)
	}
	out.Flush()
	return out.Error()
}
