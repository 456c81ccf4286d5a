// Package report shows results as tables in the terminal, JSON, CSV and Markdown. Package live makes a page of
// them. metrics.go lists the numbers that all of them show. verdict.go has the colours of verdicts.
//
// # Decisions
//
// A result keeps the drawing, not the events. A saved cell has its counts, its outcomes in at most
// sixty bins, and the drawing of its explanation. A whole matrix takes some megabytes. Every form
// of report can be made from it later.
package report

import (
	"slices"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

// Report is one run of the load test.
type Report struct {
	Version     int         `json:"version"` // of the format, [Version]
	Environment Environment `json:"environment"`
	Interrupted bool        `json:"interrupted,omitempty"` // cells are missing
	// Strategies has what the shop said of those that were to run, in the order of the tables. It
	// is empty in the results of an older program, which are shown with the names alone.
	Strategies []declared.Strategy `json:"strategies,omitempty"`
	Cells      []trial.Result      `json:"cells"`
}

// Joined returns a report with the cells of two, in the environment of the first. Cells of the second
// note where they ran beside another number of cells.
func Joined(first, second Report) Report {
	both := first
	both.Cells = slices.Concat(first.Cells, second.Cells)
	if beside := second.Environment.Testbeds; beside != first.Environment.Testbeds {
		for i := range both.Cells[len(first.Cells):] {
			both.Cells[len(first.Cells)+i].SideBySide = beside
		}
	}
	both.Interrupted = first.Interrupted || second.Interrupted
	both.Strategies = slices.Clone(second.Strategies)
	for _, s := range first.Strategies {
		if second.nth(s.Name) < 0 {
			both.Strategies = append(both.Strategies, s)
		}
	}
	return both
}

// nth is the index of a strategy in the order of the tables, -1 for one that is not known.
func (r Report) nth(name string) int {
	return slices.IndexFunc(r.Strategies, func(s declared.Strategy) bool { return s.Name == name })
}

// byStrategy is for sorting cells by their strategies, in the order of the tables.
func (r Report) byStrategy(a, b trial.Result) int { return r.nth(a.Strategy) - r.nth(b.Strategy) }

// Environment is where the numbers come from. Do not compare numbers of two environments.
type Environment struct {
	Time      string            `json:"time"`
	Command   string            `json:"command"`
	Seed      uint64            `json:"seed"`
	OS        string            `json:"os"`
	Cores     int               `json:"cores"`
	Go        string            `json:"go"`
	MySQL     string            `json:"mysql"`
	Redis     string            `json:"redis"`
	Etcd      string            `json:"etcd,omitempty"` // the version, where one was started
	Libraries map[string]string `json:"libraries"`
	Shops     int               `json:"shops"`
	Testbeds  int               `json:"testbeds"` // sets of shops that worked side by side
	Workers   int               `json:"workers"`
	Rate      string            `json:"rate,omitempty"` // requests a second, as --rate has it
	trial.Conditions
	PoolMySQL int `json:"pool_mysql"` // connections a shop opens at most
}

// Surprises returns the cells whose verdict was not the expected one.
func (r Report) Surprises() []trial.Result { return cellsThat(trial.Result.Surprise, r.Cells) }

// cellsThat are the cells of which a function is true.
func cellsThat(is func(trial.Result) bool, cells []trial.Result) []trial.Result {
	return slices.DeleteFunc(slices.Clone(cells), func(c trial.Result) bool { return !is(c) })
}

// Compared are the cells whose numbers may be compared. Where they were measured under several
// conditions, these are the cells of the first report that was joined, with the stock that most have.
// Others are the strategies that were measured under other conditions.
func (r Report) Compared() (cells []trial.Result, others []string) {
	type conditions struct {
		beside int
		stock  int64
	}
	groups := map[conditions][]trial.Result{}
	var largest conditions
	all := cellsThat(func(c trial.Result) bool { return c.Comparable() && c.Requests > 0 }, r.InOrder())
	for _, c := range all {
		of := conditions{c.SideBySide, c.InitialStock}
		groups[of] = append(groups[of], c)
		if len(groups[largest]) == 0 || of.beside < largest.beside || of.beside == largest.beside && len(groups[of]) > len(groups[largest]) {
			largest = of
		}
	}
	for _, c := range all {
		if largest != (conditions{c.SideBySide, c.InitialStock}) {
			others = append(others, c.Strategy)
		}
	}
	return groups[largest], others
}

// InOrder are the cells by strategy, in the order of the tables, and then by scenario.
func (r Report) InOrder() []trial.Result {
	scenarios := scenario.Names()
	return slices.SortedStableFunc(slices.Values(r.Cells), func(a, b trial.Result) int {
		if d := r.byStrategy(a, b); d != 0 {
			return d
		}
		return slices.Index(scenarios, a.Scenario) - slices.Index(scenarios, b.Scenario)
	})
}

// Places are the strategies and scenarios of some cells. Those of which nothing is known come last, with a
// name only.
func (r Report) Places(of []trial.Result) (strategies []declared.Strategy, scenarios []trial.Scenario) {
	for _, s := range r.Strategies {
		if slices.ContainsFunc(of, func(c trial.Result) bool { return c.Strategy == s.Name }) {
			strategies = append(strategies, s)
		}
	}
	for _, sc := range scenario.All() {
		if slices.ContainsFunc(of, func(c trial.Result) bool { return c.Scenario == sc.Name }) {
			scenarios = append(scenarios, sc)
		}
	}
	for _, c := range of {
		if !slices.ContainsFunc(strategies, func(s declared.Strategy) bool { return s.Name == c.Strategy }) {
			strategies = append(strategies, declared.Strategy{Name: c.Strategy})
		}
		if !slices.ContainsFunc(scenarios, func(sc trial.Scenario) bool { return sc.Name == c.Scenario }) {
			scenarios = append(scenarios, trial.Scenario{Name: c.Scenario})
		}
	}
	return strategies, scenarios
}

// isMatrix reports whether several strategies were each run under several scenarios.
func (r Report) isMatrix() bool {
	strategies, scenarios := r.Places(r.Cells)
	ofTopologies := slices.ContainsFunc(r.Cells, trial.Result.OnTopology) // not all of which are for all strategies
	return len(strategies) > 1 && len(scenarios) > 1 && (r.Interrupted || ofTopologies || len(r.Cells) == len(strategies)*len(scenarios))
}

func (r Report) byName() map[string]trial.Result {
	cells := map[string]trial.Result{}
	for _, c := range r.Cells {
		cells[c.Name()] = c
	}
	return cells
}
