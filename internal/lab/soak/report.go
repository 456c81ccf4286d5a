package soak

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/tabular"
)

// Report is what a soak found.
type Report struct {
	Options
	Versions string        // of MySQL and Redis
	Lasted   time.Duration // how long customers came

	Recoveries recoveries
	Accounts   []Account
	Changes    []Changes // none where no strategy takes them
	Before     *Gauges
	After      *Gauges // neither after a soak of kills: no shop lived for long

	Purchases int // customers
	Bought    int // of them, those with a 201
	Repeats   int // requests that were sent again
	Busy      int // clean refusals
	Limited   int // answers that the customer has all units that it may have

	Skipped  []string // strategies that the Redis cannot run, with the reasons
	Findings []string // what went wrong; none where the shops survived
}

func (r *Report) find(format string, args ...any) {
	r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
}

// Recovery is how the shops came back from one kind of fault.
type Recovery struct {
	Times int           // that it was injected
	Worst time.Duration // from the end of the episode until every shop had sold by every strategy
	Total time.Duration
	Never int // how often they did not come back
}

type recoveries map[*kind]Recovery

func (all recoveries) add(e episode, took time.Duration, recovered bool) {
	for _, f := range e.faults {
		of := f.kind
		if f.missed && of.ends {
			of = &kinds[0] // the shop was killed afterwards
		}
		r := all[of]
		r.Worst, r.Never = max(r.Worst, took), r.Never+one(!recovered)
		if !f.missed || of.ends {
			r.Times, r.Total = r.Times+1, r.Total+took
		}
		all[of] = r
	}
}

// judge turns what is wrong with an account into findings.
func (r *Report) judge(a Account) {
	for _, wrong := range []struct {
		n    int64
		what string
	}{
		{a.Oversold, "units oversold"},
		{a.LostUpdates, "updates lost"},
		{int64(a.AnswersWithoutOrder), "answers without their order"},
		{int64(a.OrdersWithoutAnswer), "orders without an answer"},
		{int64(a.Duplicates), "orders that a customer has twice"},
		{int64(a.Torn), "orders without all their lines"},
		{int64(a.OverLimit), "customers with more units than the limit"},
		{int64(a.Keyless), "orders without a customer's key"},
	} {
		if wrong.n != 0 {
			r.find("%s: %d %s", a.Strategy, wrong.n, wrong.what)
		}
	}
	if r.ofKills() && a.Left != 0 {
		r.find("%s: %d units are left", a.Strategy, a.Left)
	}
	for _, example := range a.Examples {
		r.find("%s: for example %s", a.Strategy, example)
	}
	if a.Orders == 0 {
		r.find("%s: nothing was sold at all", a.Strategy)
	}
}

// close adds what the recoveries and the gauges say.
func (r *Report) close() {
	for i := range kinds {
		switch f := r.Recoveries[&kinds[i]]; {
		case f.Never > 0:
			r.find("%s: %d times the shops did not recover", kinds[i].title(), f.Never)
		case !r.ofKills() && f.Worst > r.RecoverWithin:
			r.find("%s: recovered after %s, want %s", kinds[i].title(), f.Worst.Round(time.Millisecond), r.RecoverWithin)
		}
	}
	if r.After != nil {
		for _, leak := range leaks(r.Before, r.After) {
			r.find("leak: %s", leak)
		}
	}
}

// Survived says whether nothing was found.
func (r *Report) Survived() bool { return len(r.Findings) == 0 }

// Undecided says why a report without findings decides nothing. It is empty for one that decides.
func (r *Report) Undecided() string {
	switch {
	case !r.Survived() || r.faults() > 0:
		return ""
	case r.ofKills():
		return "all was sold before the first kill: want more --sales, or a shorter --kill-every"
	}
	return "no fault was met: want it longer, or other --faults"
}

// faults counts those that were met.
func (r *Report) faults() (met int) {
	for _, f := range r.Recoveries {
		met += f.Times
	}
	return met
}

// Print writes tables for people.
func (r *Report) Print(out io.Writer) {
	tables := []string{r.recoveryTable(), r.accountTable()}
	if len(r.Changes) > 0 {
		tables = append(tables, r.balanceTable(), r.changeTable())
	}
	speed, plan, rest := fmt.Sprintf("%d orders/s", r.Rate), fmt.Sprintf("seed %d", r.Seed), ""
	if r.ofKills() {
		speed, plan = fmt.Sprintf("%.0f sales/s", float64(r.Bought)/r.Lasted.Seconds()), fmt.Sprintf("a kill every %s", r.Every)
	} else {
		tables = append(tables, r.gaugeTable())
		rest = fmt.Sprintf(" · Redis: %d locks, %d keys that never expire, %d that do · MySQL: %d unknown connections",
			r.After.Locks, r.After.KeysForEver, r.After.KeysThatExpire, r.After.MySQL)
	}
	fmt.Fprintln(out, strings.Join(tables, "\n\n"))
	fmt.Fprintf(out, "\n%d customers at %s for %s, %d repeats, %d clean refusals, %d by the limit%s\n",
		r.Purchases, speed, r.Lasted.Round(time.Second), r.Repeats, r.Busy, r.Limited, rest)
	for _, skipped := range r.Skipped {
		fmt.Fprintf(out, "skipped %s\n", skipped)
	}
	for _, finding := range r.Findings {
		fmt.Fprintln(out, "found:", finding)
	}
	verdict := "survived"
	if why := r.Undecided(); why != "" {
		verdict = "undecided: " + why
	} else if !r.Survived() {
		verdict = fmt.Sprintf("not survived: %d findings", len(r.Findings))
	}
	fmt.Fprintf(out, "%s · %s, %d shops, %s\n", verdict, r.Versions, r.Shops, plan)
}

// Save writes what was counted as a line in the format of Go's benchmarks: first how many faults were met.
func (r *Report) Save(out io.Writer) error {
	var all Account
	for _, a := range r.Accounts {
		all.Orders, all.Lines, all.Doubtful = all.Orders+a.Orders, all.Lines+a.Lines, all.Doubtful+a.Doubtful
		all.Sold, all.Left = all.Sold+a.Sold, all.Left+a.Left
	}
	worst := time.Duration(0)
	for _, f := range r.Recoveries {
		worst = max(worst, f.Worst)
	}
	name := fmt.Sprintf("seed=%d %d %.2f worst-recovery-s", r.Seed, r.faults(), worst.Seconds())
	if r.ofKills() {
		name = fmt.Sprintf("kills %d", r.faults())
	}
	_, err := fmt.Fprintf(out, "BenchmarkSoak/%s %.0f seconds %d customers %d in-doubt-at-first %d orders %d lines %d units %d findings\n",
		name, r.Lasted.Seconds(), r.Purchases, all.Doubtful, all.Orders, all.Lines, all.Sold+all.Left, len(r.Findings))
	return err
}

func (r *Report) recoveryTable() string {
	w := newTable("fault", "times", "worst\nrecovery", "average\nrecovery")
	for i := range kinds {
		if f := r.Recoveries[&kinds[i]]; f != (Recovery{}) {
			w.AppendRow(table.Row{kinds[i].title(), f.Times, r.seconds(f.Worst), r.seconds(f.Total / time.Duration(max(f.Times, 1)))})
		}
	}
	w.AppendFooter(table.Row{"all", r.faults()})
	return w.Render()
}

func (r *Report) accountTable() string {
	w := newTable("strategy", "items", "orders", "lines", "201s", "replayed", "in doubt\nat first", "refused", "oversold", "lost\nupdates",
		"201 without\norder", "order\nwithout 201", "duplicates")
	for _, a := range r.Accounts {
		w.AppendRow(table.Row{a.Strategy, a.Items, a.Orders, a.Lines, a.Answers, a.Replayed, a.Doubtful, a.Refused, a.Oversold, a.LostUpdates,
			a.AnswersWithoutOrder, a.OrdersWithoutAnswer, a.Duplicates})
	}
	return w.Render()
}

// balanceTable shows that what was there and what came is what was sold and what is left.
func (r *Report) balanceTable() string {
	w := newTable("units", "initial", "restocked", "corrected", "sum", "in orders\nthat stand", "left", "sum", "cancelled")
	for _, a := range r.Accounts {
		w.AppendRow(table.Row{a.Strategy, a.Initial, a.Restocked, a.Corrected, a.Initial + a.Restocked + a.Corrected, a.Sold, a.Left, a.Sold + a.Left, a.Cancelled})
	}
	return w.Render()
}

func (r *Report) changeTable() string {
	w := newTable("changes", "asked", "made", "replayed", "in doubt\nat first", "refused")
	for _, c := range r.Changes {
		w.AppendRow(table.Row{c.Action, c.Asked, c.Made, c.Replayed, c.Doubtful, c.Refused})
	}
	return w.Render()
}

func (r *Report) gaugeTable() string {
	w := newTable("at rest", "goroutines", "in use", "heap", "resident", "MySQL\nconnections")
	for i, b := range r.Before.Shops {
		for _, row := range []struct {
			when string
			Gauge
		}{{"before", b}, {"after", r.After.Shops[i]}} {
			w.AppendRow(table.Row{row.Shop + " " + row.when, row.Goroutines, row.Busy, mib(row.Heap), mib(row.Resident), row.MySQL})
		}
	}
	return w.Render()
}

// seconds prints a recovery. A soak of kills does not wait for recoveries.
func (r *Report) seconds(d time.Duration) string {
	if r.ofKills() {
		return "–"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func mib(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

// newTable has the first column to the left and numbers to the right.
func newTable(header ...any) table.Writer {
	w := tabular.New()
	w.AppendHeader(header)
	w.SetColumnConfigs(tabular.Right(2, len(header)))
	return w
}
