package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"text/template"

	"stocklock/bench/peers"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy"
)

//go:embed page.md.tmpl
var source string

var form = template.Must(template.New("page").Parse(source))

// page is what docs/peers.md says.
type page struct {
	Environment report.Environment
	Commands    []string
	Scenarios   []scenario.Scenario
	Rows        []row
	Runs        int // of each failing cell
	Bench       *benched
	SalesBy     string // the command of the table of sales
	Explored    []explored
}

// row is a lock.
type row struct {
	Name, Doc, Source, Guard, Decrement string
	Version                             string // of its module, empty for this repository's
	Has                                 string
	Cells                               []cell
	Failing                             []cell
	Skipped                             []string
	Sales                               string
	P99                                 string
}

// cell is a lock under a scenario.
type cell struct {
	Scenario, Doc, Verdict, Short, Because string
	Seen                                   string // in how many runs of how many
	Sentence, Drawing                      string
	Note                                   *peers.Note
}

func (o options) page(cells report.Report) (*page, error) {
	p := &page{Environment: cells.Environment, Scenarios: scenario.All(), Commands: []string{cells.Environment.Command}}
	again := map[string]trial.Result{}
	if o.Again != "" {
		r, err := report.Read(o.Again)
		if err != nil {
			return nil, err
		}
		p.Commands = append(p.Commands, r.Environment.Command)
		for _, c := range r.Cells {
			again[c.Name()] = c
			p.Runs = max(p.Runs, c.Runs)
		}
	}
	sales := map[string]trial.Result{}
	if o.Sales != "" {
		r, err := report.Read(o.Sales)
		if err != nil {
			return nil, err
		}
		p.SalesBy = r.Environment.Command
		for _, c := range r.Cells {
			sales[c.Strategy] = c
		}
	}
	if o.Bench != "" {
		var err error
		if p.Bench, err = readBench(o.Bench); err != nil {
			return nil, err
		}
	}
	for _, path := range o.Explored {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var more []explored
		if err := json.Unmarshal(text, &more); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p.Explored = append(p.Explored, more...)
	}
	notes, modules := map[string]map[string]peers.Note{}, map[string]string{}
	for _, peer := range peers.All(&peers.Settings{}) {
		notes[peer.Name], modules[peer.Name] = peer.Notes, peer.Module
	}
	for _, own := range peers.Ours() {
		notes[own.Name] = own.Notes
	}
	for _, name := range compared() {
		i := slices.IndexFunc(cells.Strategies, func(s strategy.Description) bool { return s.Name == name })
		if i < 0 {
			continue
		}
		s := cells.Strategies[i]
		r := row{Name: s.Name, Doc: s.Doc, Source: s.Source, Guard: s.Guard, Decrement: s.Decrement, Has: s.Has.String()}
		if m := modules[name]; m != "" {
			r.Version = m + " " + version(m)
		}
		if c, ok := sales[name]; ok {
			again[c.Name()] = c // its leases and waits are those of comparisons
		}
		for _, sc := range p.Scenarios {
			r.add(sc, cells, again, notes[name])
		}
		if c, ok := sales[name]; ok && c.Verdict == verdict.Held {
			r.Sales, r.P99 = fmt.Sprintf("%.0f", c.SalesPerSecond), fmt.Sprintf("%.0f", c.Latency.P99)
		}
		p.Rows = append(p.Rows, r)
	}
	return p, nil
}

// add adds the cell of a scenario. The runs with other seeds count where there are some.
func (r *row) add(sc scenario.Scenario, cells report.Report, again map[string]trial.Result, notes map[string]peers.Note) {
	i := slices.IndexFunc(cells.Cells, func(c trial.Result) bool { return c.Strategy == r.Name && c.Scenario == sc.Name })
	if i < 0 {
		r.Cells = append(r.Cells, cell{Scenario: sc.Name})
		return
	}
	result := cells.Cells[i]
	failed, runs := failures(result), result.Runs
	if more, ok := again[result.Name()]; ok {
		chance := (result.Surprise() || more.Surprise()) && result.Verdict != verdict.Invalid
		switch {
		case chance: // some runs failed and others held: all count, and one that failed is shown
			failed, runs = failed+failures(more), runs+more.Runs
			if result.Verdict == verdict.Held {
				result = more
			}
		default:
			result, failed, runs = more, failures(more), more.Runs
		}
	}
	seen := fmt.Sprintf("%d of %d runs", failed, runs)
	c := cell{Scenario: sc.Name, Doc: sc.Doc, Verdict: string(result.Verdict), Because: result.Because.String()}
	switch result.Verdict {
	case verdict.Oversold:
		c.Short, c.Verdict = fmt.Sprintf("+%d", result.Oversold), fmt.Sprintf("oversold %d", result.Oversold)
	case verdict.Skipped:
		c.Short = "–"
		r.Skipped = append(r.Skipped, fmt.Sprintf("`%s`: %s.", sc.Name, result.Problem))
	default:
		c.Short = string(result.Verdict)
	}
	if result.Surprise() {
		c.Short += " !!"
	}
	if result.Verdict != verdict.Held && result.Verdict != verdict.Skipped {
		c.Seen = seen
		if x := result.Explanation; x != nil {
			c.Sentence = explain.English.Say(x.Why...)
			var drawing bytes.Buffer
			report.Mermaid(&drawing, result)
			c.Drawing = strings.TrimSpace(drawing.String())
		} else {
			c.Sentence = result.Problem
		}
		if note, ok := notes[sc.Name]; ok {
			c.Note = &note
		}
		r.Failing = append(r.Failing, c)
	}
	r.Cells = append(r.Cells, c)
}

// explored is what an exploration of one strategy under one event found.
type explored struct {
	Strategy, Event, Skipped string
	Found                    struct {
		Runs, Bad int
		Shortest  []struct {
			Schedule string
			Outcome  struct{ Cause schedule.Cause }
		}
	}
}

// failures is how many runs of a cell did not hold.
func failures(r trial.Result) int {
	if r.Expected == verdict.Held {
		return r.Runs - r.Agreed
	}
	return r.Agreed
}

// version is that of a module in this program.
func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "of an unknown version"
}

// benched is what bench --json wrote.
type benched struct {
	Environment struct {
		Redis, Etcd, Go, OS string
		Cores               int
	}
	Cells []benchedCell
}

type benchedCell struct {
	Shape, Section        string
	Processes, Goroutines int
	PauseMS               float64    `json:"pause_ms"`
	SectionUS             measured   `json:"section_us"`
	TripUS                measured   `json:"round_trip_us"`
	Locks                 []struct { // in the order of the table
		Lock    string
		Share   median `json:"share_of_mutex"`
		Over    median `json:"us_over_mutex"`
		Trips   median `json:"round_trips_over_mutex"`
		Metrics map[string]median
		Errors  measured
	}
}

// measured is a number, or null where it was not measured.
type measured struct{ of *float64 }

type median struct{ Median measured }

func (m *measured) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &m.of) }

// Show is the number in a form of package fmt, a dash where there is none.
func (m measured) Show(form string) string {
	if m.of == nil {
		return "–"
	}
	return fmt.Sprintf(form, *m.of)
}

func readBench(path string) (*benched, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var b benched
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	b.Cells = slices.DeleteFunc(b.Cells, func(c benchedCell) bool { return c.Shape == "pairs" || strings.HasPrefix(c.Shape, "hold-") })
	return &b, nil
}

// Names lists the locks that were measured.
func (b benched) Names() string {
	var names []string
	for _, c := range b.Cells {
		for _, l := range c.Locks {
			if !slices.Contains(names, l.Lock) {
				names = append(names, l.Lock)
			}
		}
	}
	return strings.Join(names, ",")
}

// Shapes lists the shapes in which they were measured.
func (b benched) Shapes() string {
	var shapes []string
	for _, c := range b.Cells {
		shapes = append(shapes, c.Shape)
	}
	return strings.Join(shapes, ",")
}

func (p *page) write(to io.Writer) error { return form.Execute(to, p) }
