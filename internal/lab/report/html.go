package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

//go:embed html
var pageFiles embed.FS

var page = template.Must(template.New("page.html.tmpl").Funcs(template.FuncMap{
	"title": Report.title, "short": Environment.short, "facts": Environment.facts, "sideBySide": Environment.sideBySide,
	"legend": legend, "properties": declared.AllProperties, "number": drawing.Short, "reason": reason, "sentence": sentence,
	"said": said, "promises": func(cells []trial.Result) bool {
		return slices.ContainsFunc(cells, func(c trial.Result) bool { return c.Promise() != "" })
	}, "wouldHaveHeld": wouldHaveHeld, "counts": counts, "distribution": drawing.Distribution,
	"command": func(c string) string { return brokenCommand(c, drawingWidth) },
}).ParseFS(pageFiles, "html/page.html.tmpl"))

// Style is the style sheet of the page, of its verdicts and of its drawings.
func Style() []byte { return append([]byte(verdict.Style()), embedded("style.css")...) }

// embedded is a file of the page.
func embedded(name string) []byte {
	content, err := pageFiles.ReadFile("html/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return content
}

// HTML writes the report as one page that needs no network and no other file.
func (r Report) HTML(w io.Writer) error {
	if err := page.Execute(w, r.page(template.CSS(Style()), template.JS(embedded("script.js")))); err != nil {
		return fmt.Errorf("write the HTML report: %w", err)
	}
	return nil
}

// pageData is the input of the page's template.
type pageData struct {
	Report     Report
	Style      template.CSS
	Script     template.JS
	Surprises  []*pageCell
	Columns    []trial.Scenario
	Rows       []pageRow
	Comparison []pageCell
	Others     string   // says what is not in it
	Metrics    []string // their columns
	Costs      bool     // some cells have the costs of a sale
	Cells      []*pageCell
}

type fact struct {
	Name, Value string
	Bad         bool
	Wide        bool // it takes the whole width
}

type pageRow struct {
	declared.Strategy             // with the name alone where nothing is known of it
	Cells             []*pageCell // one for each column, nil where there is none
}

// pageCell is a result with what the page draws of it.
type pageCell struct {
	trial.Result
	Link           template.URL
	Previous, Next *pageCell
	Numbers        []pageNumber // in the comparison

	Drawing                   drawing.Interleaving
	DrawingKey                []chartKey
	Outcomes, LatencyOverTime template.HTML
	Key                       []chartKey
}

// pageNumber is a metric of a cell.
type pageNumber struct {
	Text  string
	Bad   bool
	Meter bool // with a bar
	Part  int  // of the largest, in percent
}

type chartKey struct{ Class, Name string }

func (r Report) page(style template.CSS, script template.JS) pageData {
	p := pageData{Report: r, Style: style, Script: script}
	byPlace := map[place]*pageCell{}
	var last *pageCell
	for _, result := range r.inOrder() {
		c := newPageCell(result)
		if c.Previous = last; last != nil {
			last.Next = c
		}
		last, byPlace[placeOf(result)] = c, c
		p.Cells = append(p.Cells, c)
		if c.Surprise() {
			p.Surprises = append(p.Surprises, c)
		}
	}
	strategies, scenarios := r.places()
	p.Columns = scenarios
	for _, s := range strategies {
		row := pageRow{Strategy: s}
		for _, sc := range scenarios {
			row.Cells = append(row.Cells, byPlace[place{s.Name, sc.Name}])
		}
		p.Rows = append(p.Rows, row)
	}
	compared, others := r.underContention()
	p.Others = others
	p.compare(compared, byPlace)
	return p
}

// compare fills in the comparison of strategies, with a bar where more is better.
func (p *pageData) compare(cells []trial.Result, pages map[place]*pageCell) {
	shown := metricsIn(onPage, cells)
	largest := make([]float64, len(shown))
	for i, m := range shown {
		p.Metrics = append(p.Metrics, m.heading())
		for _, r := range cells {
			v, _ := m.value(r)
			largest[i] = max(largest[i], v)
		}
	}
	for _, r := range cells {
		c := *pages[placeOf(r)]
		p.Costs = p.Costs || r.CostPerSale != nil
		for i, m := range shown {
			v, _ := m.value(r)
			n := pageNumber{Text: m.text(r, drawing.Short), Bad: m.bad && v > 0, Meter: m.better == more}
			if largest[i] > 0 {
				n.Part = int(100 * v / largest[i])
			}
			c.Numbers = append(c.Numbers, n)
		}
		p.Comparison = append(p.Comparison, c)
	}
}

func newPageCell(r trial.Result) *pageCell {
	c := &pageCell{Result: r, Link: template.URL("#" + r.Name())}
	c.Outcomes, c.LatencyOverTime = drawing.OverTime(r.Timeline, explain.English)
	for _, o := range drawing.Outcomes {
		if r.Timeline.Outcomes[o.Outcome] != nil {
			c.Key = append(c.Key, chartKey{string(o.Outcome), o.Name})
		}
	}
	if len(r.Timeline.Faults) > 0 {
		c.Key = append(c.Key, chartKey{"shade", "fault"})
	}
	if x := r.Explanation; x != nil {
		c.Drawing, c.DrawingKey = drawing.NewInterleaving(x, explain.English), drawingKey(x)
	}
	return c
}

// Done is what the scenario does, as a sentence; empty where it is not known.
func (c pageCell) Done() string {
	doc := done(c.Result)
	if doc == "" {
		return ""
	}
	return strings.ToUpper(doc[:1]) + doc[1:] + "."
}

// Count stands beside the word of the verdict, empty for none.
func (c pageCell) Count() string {
	if c.Shown().N == nil {
		return ""
	}
	return c.Shown().Beside(c.Shown().Number(c.Facts()))
}

// drawingKey names the colours of a drawing that it has.
func drawingKey(x *explain.Explanation) []chartKey {
	has := map[explain.SpanKind]bool{}
	for _, column := range x.Columns {
		for _, s := range column.Spans {
			has[s.Kind] = true
		}
	}
	var key []chartKey
	for _, kind := range []struct {
		explain.SpanKind
		name string
	}{
		{explain.Waiting, "waits for the lock"}, {explain.Inside, "in its section"}, {explain.Open, "not committed"}, {explain.Faulty, "asleep, stopped, dead or cut off"},
		{explain.Locked, "Redis has the lock"}, {explain.Value, "the stock in MySQL"},
	} {
		if has[kind.SpanKind] {
			key = append(key, chartKey{"s-" + string(kind.SpanKind), kind.name})
		}
	}
	if x.Both != nil {
		key = append(key, chartKey{"both", "two in the section at once"})
	}
	return key
}

// counts are the numbers of a cell, without those that did not occur.
func counts(r trial.Result) []fact {
	var facts []fact
	numbers, _ := Numbers(r, "en")
	for _, n := range numbers {
		facts = append(facts, fact{Name: n.Title, Value: n.Text, Bad: n.Bad})
	}
	if r.Runs > 1 {
		facts = append(facts, fact{Name: "runs as predicted", Value: fmt.Sprintf("%d of %d", r.Agreed, r.Runs)})
	}
	return append(facts, fact{Name: "seed", Value: fmt.Sprint(r.Seed)})
}

// inOrder are the cells by strategy, in the order of the tables, and then by scenario.
func (r Report) inOrder() []trial.Result {
	scenarios := scenario.Names()
	return slices.SortedStableFunc(slices.Values(r.Cells), func(a, b trial.Result) int {
		if d := r.byStrategy(a, b); d != 0 {
			return d
		}
		return slices.Index(scenarios, a.Scenario) - slices.Index(scenarios, b.Scenario)
	})
}

// places are the strategies and scenarios that have a cell. Those of which nothing is known come
// last, with a name only.
func (r Report) places() (strategies []declared.Strategy, scenarios []trial.Scenario) {
	for _, s := range r.Strategies {
		if slices.ContainsFunc(r.Cells, func(c trial.Result) bool { return c.Strategy == s.Name }) {
			strategies = append(strategies, s)
		}
	}
	for _, sc := range scenario.All() {
		if slices.ContainsFunc(r.Cells, func(c trial.Result) bool { return c.Scenario == sc.Name }) {
			scenarios = append(scenarios, sc)
		}
	}
	for _, c := range r.Cells {
		if !slices.ContainsFunc(strategies, func(s declared.Strategy) bool { return s.Name == c.Strategy }) {
			strategies = append(strategies, declared.Strategy{Name: c.Strategy})
		}
		if !slices.ContainsFunc(scenarios, func(sc trial.Scenario) bool { return sc.Name == c.Scenario }) {
			scenarios = append(scenarios, trial.Scenario{Name: c.Scenario})
		}
	}
	return strategies, scenarios
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
