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
	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
)

// Draw prints a record as one column for each customer, with what Redis and MySQL had after each
// step. Width is the terminal's in columns, 0 for one that is wide enough.
func Draw(w io.Writer, in *words.Language, r Record, width int) {
	t := tabular.New()
	say := func(key string, facts ...any) any { return in.Say(words.Of(key, facts...)) }
	header := table.Row{say("at")}
	all := Customers(r.Customers)
	for _, c := range all {
		header = append(header, c.String())
	}
	columns := append(tabular.Right(1, 1), table.ColumnConfig{Number: len(all) + 3, Align: text.AlignRight})
	if r.Outcome.Items > 1 {
		for i := range r.Outcome.Items {
			header = append(header, say("schedule.item", "n", i+1), say("schedule.item-stock", "n", i+1))
		}
		header = append(header, say("schedule.waits"), say("orders"))
		columns = tabular.Right(1, 1)
	} else {
		header = append(header, say("lane-lock", "server", r.lockServer()), say("stock"), say("orders"))
		if r.lags() {
			header = slices.Insert(header, len(header)-1, say("schedule.replica"))
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
			row = append(row, r.cell(in, e, c))
		}
		cells := stateCells(in, e.State)
		if r.lags() {
			cells = slices.Insert(cells, len(cells)-1, replicaCell(e.State))
		}
		t.AppendRow(append(row, cells...))
	}
	if width > 0 {
		t.Style().Size.WidthMax = width
	}
	fmt.Fprintln(w, t.Render())
	if circle := r.circle(in); circle != "" {
		fmt.Fprintf(w, "\n  %s\n", circle)
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
		e.Answer = steady(e.Answer)
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
	if slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Server == labmode.EtcdServer }) {
		return ServerName(labmode.EtcdServer)
	}
	return ServerName(labmode.RedisServer)
}

// cell is what a customer did in an entry.
func (r Record) cell(in *words.Language, e Entry, c Customer) string {
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
		step += " (" + in.Say(words.Of("server.replica")) + ")"
	}
	switch {
	case !e.Blocked.IsZero() && e.Answer == "":
		return step + " …"
	case !e.Blocked.IsZero():
		return step + " … " + brief(in, e)
	}
	return step + " " + brief(in, e)
}

// sentWidth is how wide a request is shown that was held at the wire.
const sentWidth = 44

// random matches what a request at the wire is shown without: random owners, and the names of scripts.
var random = regexp.MustCompile(`\b[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12,20}\b`)

// brief is the part of an answer that decides.
func brief(in *words.Language, e Entry) string {
	answer := e.Answer
	switch {
	case !e.Note.IsZero():
		return "✗ " + in.Say(e.Note)
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

func stateCells(in *words.Language, s *State) table.Row {
	if s == nil {
		return table.Row{"", "", ""}
	}
	if len(s.Stocks) > 0 {
		return basketCells(s)
	}
	lock := "–"
	if s.Locked() {
		lock = strings.Join(append([]string{in.Say(s.lock("schedule.held"))}, s.expiry(in, "ttl.none", "schedule.ms")...), in.Say(words.Of("comma")))
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

// lock is a text of the lock, and of its holder where it is known.
func (s State) lock(key string) words.Text {
	facts := []any{"lock", fmt.Sprintf("%q", s.Lock)}
	if s.Holder != "" {
		facts = append(facts, "of", s.Holder)
	}
	return words.Of(key, facts...)
}

// expiry says when the lock ends, under one of two keys, and nothing where that is not known.
func (s State) expiry(in *words.Language, never, left string) []string {
	switch s.TTLMS {
	case -1:
		return []string{in.Say(words.Of(never))}
	case 0:
		return nil
	}
	return []string{in.Say(words.Of(left, "ms", s.TTLMS))}
}

// Plural is a number of things.
func Plural(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Sentence says how a run ended, and why.
func (r Record) Sentence() words.Text {
	o := r.Outcome
	sold := []any{"orders", len(o.Orders), "units", o.Stock}
	if o.Items > 1 {
		sold = append(sold, "items", o.Items)
	}
	counted := words.Of("schedule.sold", sold...)
	if o.Verdict == verdict.Unbalanced {
		counted = words.Of("reason.unbalanced", "sold", len(o.Orders), "left", o.Stock+o.N-int64(len(o.Orders)), "stock", o.Stock)
	}
	key, facts := "schedule.counted", []any{"verdict", o.Verdict, "n", o.N, "cause", o.Cause, "sold", counted}
	switch o.Verdict {
	case verdict.Held:
		key = "schedule.ended"
	case verdict.Crashed:
		key = "schedule.crashed"
		for _, c := range Customers(r.Customers) {
			if r.crashed(c) {
				facts = append(facts, "who", c.String(), "answer", o.Answers[c.String()])
				break
			}
		}
	case verdict.Stuck:
		key, facts = "schedule.stuck", append(facts, "answer", o.Ordinary)
	}
	return words.Of(key, facts...)
}

// Print prints a record step by step: what was sent, what the server answered, and what both
// servers had then.
func Print(w io.Writer, in *words.Language, r Record) {
	for _, e := range r.Entries {
		name := e.Choice.String()
		if e.Own {
			name = in.Say(words.Of("schedule.own", "who", e.Customer))
		}
		switch {
		case name == "":
			fmt.Fprintf(w, "%8.1f  %s\n", e.AtMS, in.Say(e.Note))
		case e.Sent == "":
			fmt.Fprintf(w, "%8.1f  %s: %s\n", e.AtMS, name, e.Choice.Event.Doc(in))
		case e.Replica:
			fmt.Fprintf(w, "%8.1f  %-10s %s, %s: %s\n", e.AtMS, name, e.Server, in.Say(words.Of("schedule.the-replica")), e.Sent)
		default:
			fmt.Fprintf(w, "%8.1f  %-10s %s: %s\n", e.AtMS, name, e.Server, e.Sent)
		}
		if !e.Blocked.IsZero() {
			fmt.Fprintf(w, "%20s %s\n", "", in.Say(words.Of("blocked", "by", e.Blocked)))
		}
		if e.Answer != "" {
			fmt.Fprintf(w, "%20s %s\n", "→", e.Answer)
		}
		if !e.Note.IsZero() && name != "" {
			fmt.Fprintf(w, "%20s (%s)\n", "", in.Say(e.Note))
		}
		if e.State != nil {
			fmt.Fprintf(w, "%20s %s\n", "", e.State.line(in))
		}
	}
}

func (s State) line(in *words.Language) string {
	say := func(key string, facts ...any) string { return in.Say(words.Of(key, facts...)) }
	parts := []string{say("no.lock")}
	if s.Locked() {
		parts[0] = strings.Join(append([]string{in.Say(s.lock("schedule.lock"))}, s.expiry(in, "schedule.endless", "schedule.for")...), " ")
	}
	if s.Kept != "" {
		parts = append(parts, s.Kept)
	}
	parts = append(parts, say("stock.now", "n", s.Stock))
	if s.Replica != nil {
		parts = append(parts, say("schedule.stock-at-replica", "n", *s.Replica))
	}
	if s.Elsewhere != 0 {
		parts = append(parts, say("schedule.elsewhere", "n", s.Elsewhere))
	}
	if s.Fence != 0 {
		parts = append(parts, say("fence", "n", s.Fence))
	}
	if len(s.Orders) == 0 {
		parts = append(parts, say("no.orders"))
	}
	for _, o := range s.Orders {
		if o.Read == o.Written {
			parts = append(parts, say("schedule.order", "who", o.Customer))
			continue
		}
		parts = append(parts, say("order.now", "id", o.ID, "customer", o.Customer, "read", o.Read, "written", o.Written))
	}
	return strings.Join(parts, " · ")
}
