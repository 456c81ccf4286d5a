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
	"stocklock/internal/strategy"
)

//go:embed html
var pageFiles embed.FS

var page = template.Must(template.New("page.html.tmpl").Funcs(template.FuncMap{"number": drawing.Short}).ParseFS(pageFiles, "html/page.html.tmpl"))

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
	Report      Report
	Title       string
	Where       []string
	Style       template.CSS
	Script      template.JS
	Surprises   []pageCell
	Columns     []named
	Rows        []pageRow
	Legend      []verdict.Verdict // that it has
	Comparison  []pageCell
	Metrics     []string // their columns
	SideBySide  string   // a warning about its numbers
	Costs       bool     // some cells have the costs of a sale
	Properties  []named
	Strategies  []pageStrategy
	Environment []fact
	Cells       []pageCell
}

type named struct{ Name, Doc string }

type fact struct {
	Name, Value string
	Bad         bool
	Wide        bool // it takes the whole width
}

type pageRow struct {
	named
	Cells []pageCell // one for each column; without an ID where there is none
}

type pageStrategy struct {
	named
	Standings []strategy.Standing // of the properties, in their order
}

type pageLink struct {
	Name string
	Link template.URL
}

// pageCell is a result with everything that the page shows of it.
type pageCell struct {
	trial.Result
	ID             string
	Link           template.URL
	Previous, Next *pageLink
	Shown          verdict.Verdict
	Count          string // beside its word; empty for none
	Surprise       bool
	Done           string       // what the scenario does
	Reason         string       // what the verdict rests on
	Sentence       string       // why it ended as it did
	WouldHaveHeld  string       // empty where nothing broke
	Numbers        []pageNumber // in the comparison

	Drawing    drawing.Interleaving
	DrawingKey []chartKey
	Steps      []pageStep
	Counts     []fact

	Outcomes, LatencyOverTime, Distributed template.HTML
	Key                                    []chartKey
}

type pageStep struct {
	At, Who, Text string
	Alarm         bool
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
	p := pageData{Report: r, Style: style, Script: script, Environment: r.Environment.facts(), Title: r.title(), Where: r.Environment.short(),
		Legend: legend(r.Cells)}
	byPlace := map[place]pageCell{}
	for _, result := range r.inOrder() {
		c := newPageCell(result)
		byPlace[placeOf(result)] = c
		p.Cells = append(p.Cells, c)
		if c.Surprise {
			p.Surprises = append(p.Surprises, c)
		}
	}
	for i := range p.Cells {
		if i > 0 {
			p.Cells[i].Previous = &pageLink{p.Cells[i-1].ID, p.Cells[i-1].Link}
		}
		if i+1 < len(p.Cells) {
			p.Cells[i].Next = &pageLink{p.Cells[i+1].ID, p.Cells[i+1].Link}
		}
	}
	strategies, scenarios := r.places()
	for _, sc := range scenarios {
		p.Columns = append(p.Columns, named{sc.Name, sc.Doc})
	}
	for _, s := range strategies {
		row := pageRow{named: named{s.Name, s.Doc}}
		for _, sc := range scenarios {
			row.Cells = append(row.Cells, byPlace[place{s.Name, sc.Name}])
		}
		p.Rows = append(p.Rows, row)
		if r.nth(s.Name) < 0 {
			continue // the properties are not known
		}
		has := pageStrategy{named: named{s.Name, s.Doc}}
		for _, property := range strategy.AllProperties() {
			has.Standings = append(has.Standings, s.Properties.Standing(property))
		}
		p.Strategies = append(p.Strategies, has)
	}
	for _, property := range strategy.AllProperties() {
		p.Properties = append(p.Properties, named{property.String(), property.Doc()})
	}
	p.SideBySide = r.Environment.sideBySide()
	p.compare(underContention(r.inOrder()), byPlace)
	return p
}

// compare fills in the comparison of strategies, with a bar where more is better.
func (p *pageData) compare(cells []trial.Result, pages map[place]pageCell) {
	shown := metricsIn(onPage, cells)
	largest := make([]float64, len(shown))
	for i, m := range shown {
		p.Metrics = append(p.Metrics, m.heading())
		for _, r := range cells {
			v, _ := m.of(r)
			largest[i] = max(largest[i], v)
		}
	}
	for _, r := range cells {
		c := pages[placeOf(r)]
		p.Costs = p.Costs || r.CostPerSale != nil
		for i, m := range shown {
			v, _ := m.of(r)
			n := pageNumber{Text: m.text(r, drawing.Short), Bad: m.bad && v > 0, Meter: m.better == more}
			if largest[i] > 0 {
				n.Part = int(100 * v / largest[i])
			}
			c.Numbers = append(c.Numbers, n)
		}
		p.Comparison = append(p.Comparison, c)
	}
}

func newPageCell(r trial.Result) pageCell {
	r.Replay = brokenCommand(r.Replay, drawingWidth)
	c := pageCell{Result: r, ID: r.Name(), Shown: r.Shown(), Surprise: r.Surprise(), Reason: reason(r), Counts: counts(r)}
	c.Link = template.URL("#" + c.ID)
	if c.Shown.N != nil {
		c.Count = c.Shown.Beside(c.Shown.Number(r.Facts()))
	}
	if sc, err := scenario.ByName(r.Scenario); err == nil {
		c.Done = strings.ToUpper(sc.Doc[:1]) + sc.Doc[1:] + "."
	}
	c.Outcomes, c.LatencyOverTime = drawing.OverTime(r.Timeline, explain.English)
	c.Distributed = drawing.Distribution(r.Distribution)
	for _, o := range drawing.Outcomes {
		if r.Timeline.Outcomes[o.Outcome] != nil {
			c.Key = append(c.Key, chartKey{string(o.Outcome), o.Name})
		}
	}
	c.WouldHaveHeld = wouldHaveHeld(r)
	if len(r.Timeline.Faults) > 0 {
		c.Key = append(c.Key, chartKey{"shade", "fault"})
	}
	if x := r.Explanation; x != nil {
		c.Sentence = said(x.Why...)
		c.draw(x)
	}
	return c
}

func (c *pageCell) draw(x *explain.Explanation) {
	c.Drawing = drawing.NewInterleaving(x, explain.English)
	c.DrawingKey = drawingKey(x)
	for _, s := range x.Steps {
		c.Steps = append(c.Steps, pageStep{At: fmt.Sprintf("%+.1f ms", s.AtMS), Who: said(x.Columns[s.Column].Name), Text: said(s.Text), Alarm: s.Alarm})
	}
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
		{explain.Waiting, "waits for the lock"}, {explain.Inside, "in its section"}, {explain.Faulty, "asleep, stopped, dead or cut off"},
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
	for _, m := range metrics {
		v, ok := m.of(r)
		if m.shown&always != 0 || ok && v != 0 {
			facts = append(facts, fact{Name: m.heading(), Value: m.text(r, drawing.Short), Bad: m.bad && v > 0})
		}
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
func (r Report) places() (strategies []strategy.Description, scenarios []scenario.Scenario) {
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
		if !slices.ContainsFunc(strategies, func(s strategy.Description) bool { return s.Name == c.Strategy }) {
			strategies = append(strategies, strategy.Description{Name: c.Strategy})
		}
		if !slices.ContainsFunc(scenarios, func(sc scenario.Scenario) bool { return sc.Name == c.Scenario }) {
			scenarios = append(scenarios, scenario.Scenario{Name: c.Scenario})
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
