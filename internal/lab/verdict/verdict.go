// Package verdict has the verdicts on a run, of a cell or of a schedule.
//
// A verdict is one entry of [All], the only list of them. The terminal, Markdown, HTML, the live
// page and the documents take its colours and its count from there, and its words from the catalogue. To
// add one, add its word and its entry here, its lines in package words, and the case in [Facts.Verdict] that finds it. A new fact
// is counted in trial/verdict.go, and in schedule/record.go for schedules. Where a scenario predicts
// the verdict, its Demands name it. docs/glossary.md explains it.
//
// # Decisions
//
// There is one table of verdicts. An entry of internal/lab/verdict has the colours and the number. The terminal, the pages and the exit code read it, for cells and
// for schedules. A cell is judged once, by a pure function of its facts.
//
// A verdict compares customers' answers with orders in both directions. An order belongs to a
// purchase: all requests under one idempotency key, or one request. Facts that SQL and the answers
// prove come before unexpected answers, which cannot undo them. The first that applies counts:
// oversold, twice, half-sold, unpaid, unserved, lied, denied, unclaimed, unbalanced, crashed, then invalid for
// unexpected answers, then left and stuck. Units that are left where nobody has an order, and no answer
// decides, prove nothing either: the cell is invalid, and not held. So is a cell of a few one of whom should have an answer that
// decides, and has none.
//
//   - A request without an answer, with 503 unavailable or with 500 may have an order or none.
//   - Every other answer than 201 says that no order was made. An order of such a customer is
//     denied, also when the answer is busy, conflict, lock lost or fenced off. A repeat that is
//     busy denies nothing, because it speaks of itself alone. A repeat that is sold out after its
//     sale denies the order.
//   - Units count as left only if nobody else can have had them. A request that was sent before
//     the answer and has an order, or may have one, counts as having had its units all the time. A
//     strategy that keeps units besides the item's row may hold those of a refused request for
//     longer.
package verdict

import (
	"fmt"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/words"
)

// Kind is a verdict in one word, as saved results have it.
type Kind string

// The verdicts.
const (
	Held       Kind = "held"       // exactly the stock was sold
	Oversold   Kind = "oversold"   // more was sold
	Twice      Kind = "twice"      // a customer has two orders for one purchase
	HalfSold   Kind = "half-sold"  // orders of several items stand without all that was ordered
	Unpaid     Kind = "unpaid"     // orders stand that no payment has paid
	Unserved   Kind = "unserved"   // payments were kept, and no order stands for them
	Lied       Kind = "lied"       // answers said sold, and no such order stands
	Denied     Kind = "denied"     // orders stand whose customers were answered otherwise
	Left       Kind = "left"       // customers were sent away, and the database had units for them
	Unclaimed  Kind = "unclaimed"  // units are in no order and not for sale, after all that can end has ended
	Unbalanced Kind = "unbalanced" // orders and what is left do not add up to the stock, and it is none of those above
	Crashed    Kind = "crashed"    // sales ended with an error or without an answer, and nothing had happened
	Stuck      Kind = "stuck"      // stock and demand were left, and nothing was sold any more
	Invalid    Kind = "invalid"    // the harness failed, which says nothing about the strategy
	Skipped    Kind = "skipped"    // the scenario cannot be run here
	// Inapplicable: the scenario has nothing to attack in the strategy.
	Inapplicable Kind = "inapplicable"

	// Degraded is shown and never saved: the verdict is Held, and less was sold than was wanted.
	Degraded Kind = "degraded"
)

// OfSchedules are what a class can predict of a schedule.
var OfSchedules = []Kind{Held, Oversold, Lied, Left, Stuck, HalfSold}

// Verdict is an entry: what is shown of a verdict, everywhere. The catalogue has its words, under verdict., short. (in a
// table), legend. (below one), means. (a sentence) and reason. (of a run, what the verdict rests on) with its kind.
type Verdict struct {
	Kind        Kind
	Bad         bool // the strategy failed
	Predictable bool // a class can predict it
	// N is the number that is shown with the word, nil for a verdict that has none. Signed shows a
	// plus before it.
	N        func(Facts) int64
	Signed   bool
	Terminal text.Colors // nil for the colour of other text
	Style    string      // on a page, in declarations of CSS; empty for the grey of what says nothing
}

// All are the verdicts in the order of legends.
var All = []Verdict{
	{Kind: Held, Predictable: true, Terminal: text.Colors{text.FgGreen}, Style: held},
	{Kind: Degraded, Terminal: text.Colors{text.FgGreen}, Style: held},
	{Kind: Oversold, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Oversold }, Terminal: yellow, Style: broke},
	{Kind: Twice, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Twice }, Terminal: yellow, Style: broke},
	{Kind: HalfSold, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.HalfSold }, Terminal: yellow, Style: broke},
	{Kind: Unpaid, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Unpaid }, Terminal: yellow, Style: broke},
	{Kind: Unserved, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Unserved }, Terminal: yellow, Style: broke},
	{Kind: Lied, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Unordered }, Terminal: yellow, Style: broke},
	{Kind: Denied, Bad: true, N: func(f Facts) int64 { return f.Denied }, Terminal: yellow, Style: broke},
	{Kind: Left, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Left }, Terminal: yellow, Style: broke},
	{Kind: Unclaimed, Bad: true, Predictable: true, N: func(f Facts) int64 { return f.Unclaimed }, Terminal: yellow, Style: broke},
	{Kind: Unbalanced, Bad: true, N: func(f Facts) int64 { return f.LostUpdates }, Signed: true, Terminal: yellow, Style: broke},
	{Kind: Crashed, Bad: true, N: func(f Facts) int64 { return f.Crashed }, Terminal: yellow, Style: broke},
	{Kind: Stuck, Bad: true, Predictable: true, Terminal: yellow, Style: broke + " background-image: repeating-linear-gradient(45deg, transparent 0 6px, #0000000f 6px 12px);"},
	{Kind: Invalid, Terminal: yellow, Style: "background-color: var(--loud); color: var(--loud-ink); font-weight: 700; outline: 3px solid var(--loud); outline-offset: 1px;"},
	{Kind: Skipped},
	{Kind: Inapplicable, Predictable: true},
}

// The colours that several verdicts have. The variables are in pages/base.css, for a light
// and for a dark page.
var yellow = text.Colors{text.FgYellow}

const (
	held  = "background-color: var(--held); color: var(--held-ink);"
	broke = "background-color: var(--broke); color: var(--broke-ink);"
)

// Of returns the entry of a verdict. One that this program does not know, of a newer program's
// result, is bad and speaks for itself.
func Of(k Kind) Verdict {
	for _, v := range All {
		if v.Kind == k {
			return v
		}
	}
	return Verdict{Kind: k, Bad: true}
}

// Word is the verdict in a language.
func (v Verdict) Word(l *words.Language) string { return l.Named("verdict", string(v.Kind)) }

// Means is a sentence of what the verdict means in a group of scenarios.
func (v Verdict) Means(group string) words.Text {
	return words.Of("means."+string(v.Kind), group, true)
}

// Counted is the word with the run's number, such as "oversold 3".
func (v Verdict) Counted(l *words.Language, f Facts) string {
	return strings.TrimSpace(v.Word(l) + " " + v.Number(f))
}

// Short is the same as a table has it, such as "+3".
func (v Verdict) Short(l *words.Language, f Facts) string { return v.short(l, v.Number(f)) }

func (v Verdict) short(l *words.Language, n string) string {
	key := "short." + string(v.Kind)
	if said := l.Say(words.Of(key, "n", n)); said != key {
		return said
	}
	return strings.TrimSpace(string(v.Kind) + " " + n)
}

// Count is the run's number, 0 for a verdict that has none.
func (v Verdict) Count(f Facts) int64 {
	if v.N == nil {
		return 0
	}
	return v.N(f)
}

// Number is the run's number as it is shown with the word, empty where there is none.
func (v Verdict) Number(f Facts) string {
	switch {
	case v.N == nil:
		return ""
	case v.Signed:
		return fmt.Sprintf("%+d", v.Count(f))
	}
	return fmt.Sprint(v.Count(f))
}

// Legend is the entry's line below a table of a group of scenarios, such as "+N: oversold N".
func (v Verdict) Legend(l *words.Language, group string) string {
	n := ""
	if v.N != nil {
		n = "N"
	}
	return v.short(l, n) + l.Joined("", words.Of("colon"), words.Of("legend."+string(v.Kind), "n", n, group, true))
}

// Reason is what the verdict on a run rests on. It is nothing where there is no more to say than the word.
func (v Verdict) Reason(f Facts) words.Text {
	key := "reason." + string(v.Kind)
	facts := []any{"n", v.Number(f), "sold", f.Sold, "left", f.Remaining, "stock", f.Stock, "seconds", math.Round(f.Seconds)}
	if words.English.Messages()[key] == "" {
		return words.Text{}
	}
	if f.Starves {
		facts = append(facts, "declared", true)
	}
	switch {
	case v.Kind == Stuck && f.Outlasted:
		facts = append(facts, "outlasted", true)
	case v.Kind == Stuck:
		facts = append(facts, "waiting", f.Waiting.text())
	}
	return words.Of(key, facts...)
}

// Style is the style sheet of the chips that show verdicts, each with the classes v and its word, and of the colours of
// answers: in a chart (o-), in its key (k-), and in a bar (b-).
func Style() string {
	var b strings.Builder
	for _, v := range All {
		if v.Style != "" {
			fmt.Fprintf(&b, ".v.%s { %s }\n", v.Kind, v.Style)
		}
	}
	for _, a := range Answers {
		fmt.Fprintf(&b, ".o-%[1]s { stroke: var(--%[2]s); } .k-%[1]s { --k: var(--%[2]s); } .b-%[1]s { background: var(--%[2]s); }\n", a.Name, a.Colour)
	}
	return b.String()
}
