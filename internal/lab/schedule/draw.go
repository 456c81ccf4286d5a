package schedule

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/shop/labmode"
)

// Draw prints a record as one column for each customer, with what Redis and MySQL had after each
// step. Width is the terminal's in columns, 0 for one that is wide enough.
func Draw(w io.Writer, r Record, width int) {
	t := tabular.New()
	header := table.Row{"ms"}
	all := Customers(r.Customers)
	for _, c := range all {
		header = append(header, c.String())
	}
	columns := append(tabular.Right(1, 1), table.ColumnConfig{Number: len(all) + 3, Align: text.AlignRight})
	if r.Outcome.Items > 1 {
		for i := range r.Outcome.Items {
			header = append(header, fmt.Sprintf("item %d\nheld by", i+1), fmt.Sprintf("stock\nof %d", i+1))
		}
		header = append(header, "waits", "orders")
		columns = tabular.Right(1, 1)
	} else {
		header = append(header, "lock in "+r.lockServer(), "stock", "orders")
		if r.lags() {
			header = slices.Insert(header, len(header)-1, any("at the\nreplica"))
			columns = append(columns, tabular.Right(len(all)+4, len(all)+4)...)
		}
	}
	t.AppendHeader(header)
	columns[0].Hidden = r.timeless
	t.SetColumnConfigs(columns)
	for _, e := range r.Entries {
		if e.Choice == (Choice{}) {
			continue
		}
		row := table.Row{fmt.Sprintf("%.0f", e.AtMS)}
		for _, c := range all {
			row = append(row, r.cell(e, c))
		}
		cells := stateCells(e.State)
		if r.lags() {
			cells = slices.Insert(cells, len(cells)-1, replicaCell(e.State))
		}
		t.AppendRow(append(row, cells...))
	}
	if width > 0 {
		t.Style().Size.WidthMax = width
	}
	fmt.Fprintln(w, t.Render())
	if circle := r.circle(); circle != "" {
		fmt.Fprintln(w, "\n  a circle: "+circle)
	}
}

// changing is what differs from run to run in an answer: an owner, a time, a token, an item's id.
var changing = regexp.MustCompile(`\b[A-Z2-7]{26}\b|\b\d{4}-\d\d-\d\dT[^" ]+|\b\d{10,}\b|\bstock:\d+`)

// WithoutTimes returns the record for a drawing that is the same in each run: without times, and
// with the name of the customer who sent it first, or else dots, in the place of a value that
// differs.
func (r Record) WithoutTimes() Record {
	sender := map[string]string{}
	for _, e := range r.Entries {
		for _, value := range changing.FindAllString(e.Sent, -1) {
			if _, ok := sender[value]; !ok {
				sender[value] = e.Customer + "'s"
			}
		}
	}
	steady := func(s string) string {
		return changing.ReplaceAllStringFunc(s, func(value string) string {
			if strings.HasPrefix(value, "stock:") {
				return "stock"
			}
			return cmp.Or(sender[value], "…")
		})
	}
	r.timeless, r.Entries = true, slices.Clone(r.Entries)
	for i := range r.Entries {
		e := &r.Entries[i]
		e.Answer, e.Note.Words = steady(e.Answer), steady(e.Note.Words)
		if e.State == nil {
			continue
		}
		state := *e.State
		state.TTLMS, state.Kept = min(state.TTLMS, 0), steady(state.Kept)
		e.State = &state
	}
	return r
}

// lockServer is the server of the lock, for people.
func (r Record) lockServer() string {
	for _, e := range r.Entries {
		if e.Server == labmode.EtcdServer {
			return ServerName(e.Server)
		}
	}
	return ServerName(labmode.RedisServer)
}

// cell is what a customer did in an entry.
func (r Record) cell(e Entry, c Customer) string {
	switch {
	case !e.Choice.IsStep() && (e.Choice.Customer == 0 || e.Choice.Customer == c):
		if r.Wire { // its processes have the customers' names nowhere else
			return "· " + e.Choice.String() + " ·"
		}
		return "· " + string(e.Choice.Event) + " ·"
	case e.Choice.Customer != c:
		return ""
	}
	step := e.Choice.Step
	if r.Wire {
		step = text.WrapSoft(text.Snip(random.ReplaceAllString(e.Sent, "…"), 3*sentWidth, "…"), sentWidth) + "\n→"
	}
	if e.Item > 0 {
		step += fmt.Sprintf("(%d)", e.Item)
	}
	if e.Replica {
		step += " (replica)"
	}
	switch {
	case !e.Blocked.IsZero() && e.Answer == "":
		return step + " …"
	case !e.Blocked.IsZero():
		return step + " … " + brief(e)
	}
	return step + " " + brief(e)
}

// sentWidth is how wide a request is shown that was held at the wire.
const sentWidth = 44

// random matches what a request at the wire is shown without: random owners, and the names of scripts.
var random = regexp.MustCompile(`\b[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12,20}\b`)

// brief is the part of an answer that decides.
func brief(e Entry) string {
	answer := e.Answer
	switch {
	case !e.Note.IsZero():
		return "✗ " + e.Note.String()
	case e.Server == labmode.MySQLServer && strings.HasPrefix(answer, "id="):
		for field := range strings.FieldsSeq(answer) {
			if strings.HasPrefix(field, "stock=") {
				return field
			}
		}
	case answer == "ok" || answer == "1 row":
		return "ok"
	}
	return text.Snip(answer, 18, "…")
}

func stateCells(s *State) table.Row {
	if s == nil {
		return table.Row{"", "", ""}
	}
	if len(s.Stocks) > 0 {
		return basketCells(s)
	}
	lock := "–"
	if s.Locked() {
		lock = "held"
		if s.Holder != "" {
			lock = s.Holder + "'s"
		}
		lock += s.expiry(", no expiry", ", %d ms")
	}
	var orders []string
	for _, o := range s.Orders {
		if o.Read == o.Written { // the orders of a service say neither
			orders = append(orders, o.Customer)
			continue
		}
		orders = append(orders, fmt.Sprintf("%s %d→%d", o.Customer, o.Read, o.Written))
	}
	if s.Kept != "" {
		lock = s.Kept
	}
	stock := fmt.Sprint(s.Stock)
	if s.Elsewhere != 0 {
		stock += fmt.Sprintf("+%d", s.Elsewhere)
	}
	return table.Row{lock, stock, strings.Join(orders, ", ")}
}

// lags says whether the record shows a replica that is behind.
func (r Record) lags() bool { return r.Outcome.Items <= 1 && r.Schedule.Has(Lag) }

// replicaCell is the stock at the replica.
func replicaCell(s *State) any {
	if s == nil || s.Replica == nil {
		return ""
	}
	return *s.Replica
}

// basketCells has two cells for each of several items.
func basketCells(s *State) table.Row {
	var row table.Row
	for i, units := range s.Stocks {
		holder := "–"
		if i < len(s.Has) && s.Has[i] != "" {
			holder = s.Has[i]
		}
		row = append(row, holder, units)
	}
	var orders []string
	for _, o := range s.Orders {
		if o.Item == 1 {
			orders = append(orders, o.Customer)
		}
	}
	return append(row, strings.Join(s.Waiting, ", "), strings.Join(orders, ", "))
}

// expiry says when the lock ends, in one of two forms, and nothing where that is not known.
func (s State) expiry(never, in string) string {
	switch s.TTLMS {
	case -1:
		return never
	case 0:
		return ""
	}
	return fmt.Sprintf(in, s.TTLMS)
}

// Plural is a number of things.
func Plural(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Sentence says how a run ended, and why.
func (r Record) Sentence() string {
	o := r.Outcome
	sold := Plural(int64(len(o.Orders)), "order") + " for " + Plural(o.Stock, "unit")
	if o.Items > 1 {
		sold = fmt.Sprintf("%s in orders of %d items, for %s of each", Plural(int64(len(o.Orders)), "line"), o.Items, Plural(o.Stock, "unit"))
	}
	switch o.Verdict {
	case verdict.Held:
		return "held: " + sold
	case verdict.Crashed:
		return fmt.Sprintf("crashed: %s: %s: %s", sold, r.crashed(), o.Cause.Doc())
	case verdict.Stuck:
		return fmt.Sprintf("stuck: %s, and an ordinary customer was answered with %s: %s", sold, o.Ordinary, o.Cause.Doc())
	}
	return fmt.Sprintf("%s %d: %s: %s", o.Verdict, o.N, sold, o.Cause.Doc())
}

// crashed says how the first customer was answered whose sale failed.
func (r Record) crashed() string {
	for _, c := range Customers(r.Customers) {
		if answer := r.Outcome.Answers[c.String()]; failed(answer) {
			return fmt.Sprintf("%s was answered with %s", c, answer)
		}
	}
	return ""
}

// Print prints a record step by step: what was sent, what the server answered, and what both
// servers had then.
func Print(w io.Writer, r Record) {
	for _, e := range r.Entries {
		name := e.Choice.String()
		if e.Own {
			name = "(shop " + e.Customer + ")"
		}
		switch {
		case name == "":
			fmt.Fprintf(w, "%8.1f  %s\n", e.AtMS, e.Note)
		case e.Sent == "":
			fmt.Fprintf(w, "%8.1f  %s: %s\n", e.AtMS, name, e.Choice.Event.Doc())
		default:
			fmt.Fprintf(w, "%8.1f  %-10s %s: %s\n", e.AtMS, name, e.server(), e.Sent)
		}
		if !e.Blocked.IsZero() {
			fmt.Fprintf(w, "%20s waits: %s\n", "", e.Blocked)
		}
		if e.Answer != "" {
			fmt.Fprintf(w, "%20s %s\n", "→", e.Answer)
		}
		if !e.Note.IsZero() && name != "" {
			fmt.Fprintf(w, "%20s (%s)\n", "", e.Note)
		}
		if e.State != nil {
			fmt.Fprintf(w, "%20s %s\n", "", e.State)
		}
	}
}

// server is who was asked.
func (e Entry) server() string {
	if e.Replica {
		return e.Server + ", the replica"
	}
	return e.Server
}

// String is a state in one line.
func (s State) String() string {
	parts := []string{"no lock"}
	if s.Locked() {
		parts[0] = fmt.Sprintf("lock %q", s.Lock)
		if s.Holder != "" {
			parts[0] += " of " + s.Holder
		}
		parts[0] += s.expiry(" without an expiry", " for %d ms")
	}
	if s.Kept != "" {
		parts = append(parts, s.Kept)
	}
	parts = append(parts, fmt.Sprintf("stock %d", s.Stock))
	if s.Replica != nil {
		parts = append(parts, fmt.Sprintf("%d at the replica", *s.Replica))
	}
	if s.Elsewhere != 0 {
		parts = append(parts, fmt.Sprintf("%d in rows of the strategy", s.Elsewhere))
	}
	if s.Fence != 0 {
		parts = append(parts, fmt.Sprintf("fence %d", s.Fence))
	}
	if len(s.Orders) == 0 {
		parts = append(parts, "no orders")
	}
	for _, o := range s.Orders {
		if o.Read == o.Written {
			parts = append(parts, "an order of "+o.Customer)
			continue
		}
		parts = append(parts, fmt.Sprintf("order %d of %s read %d, wrote %d", o.ID, o.Customer, o.Read, o.Written))
	}
	return strings.Join(parts, " · ")
}
