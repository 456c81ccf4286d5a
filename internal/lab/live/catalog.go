package live

import (
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/ladder"
)

// catalog is what can be run.
type catalog struct {
	Strategies []strategyInfo `json:"strategies"`
	Scenarios  []scenarioInfo `json:"scenarios"`
	Words      []string       `json:"words"` // of a prediction
	Limits     limits         `json:"limits"`
}

type strategyInfo struct {
	Name       string   `json:"name"`
	Doc        string   `json:"doc"`
	Guard      string   `json:"guard"`
	Decrement  string   `json:"decrement"`
	Source     string   `json:"source"`
	Telling    string   `json:"telling"`
	Has        []string `json:"has"`
	NotStepped string   `json:"not_stepped,omitempty"` // why it cannot be stepped through
}

type scenarioInfo struct {
	Name       string `json:"name"`
	Doc        string `json:"doc"`
	Attacks    string `json:"attacks"`
	Comparable bool   `json:"comparable"`
}

// limits bound what may be asked for.
type limits struct {
	Waiting        int `json:"waiting"`         // cells
	LoadStrategies int `json:"load_strategies"` // of one comparison
	LoadRequests   int `json:"load_requests"`   // for each of them
	Schedule       int `json:"schedule"`        // characters
}

// predictable are the verdicts that can be predicted.
var predictable = []scenario.Kind{scenario.Held, scenario.Oversold, scenario.Stuck, scenario.Left, scenario.Lied}

func newCatalog() catalog {
	c := catalog{Limits: limits{maxWaiting, maxLoadStrategies, maxLoadRequests, maxSchedule}}
	for _, s := range ladder.All() {
		d := s.Describe()
		c.Strategies = append(c.Strategies, strategyInfo{Name: d.Name, Doc: d.Doc, Guard: d.Guard, Decrement: d.Decrement,
			Source: d.Source, Telling: d.Telling, Has: d.Has, NotStepped: notStepped(d)})
	}
	for _, s := range scenario.All() {
		c.Scenarios = append(c.Scenarios, scenarioInfo{s.Name, s.Doc, s.Attacks.String(), s.Comparable})
	}
	for _, w := range predictable {
		c.Words = append(c.Words, string(w))
	}
	return c
}

// notStepped is why a strategy cannot be stepped through, empty where it can.
func notStepped(d strategy.Description) string {
	switch {
	case d.NeedsQuorum:
		return "quorum"
	case d.KeepsState:
		return "state"
	case d.AnswersFirst:
		return "answers-first"
	}
	return ""
}

// cellOf finds what is to be run.
func cellOf(c cellName, seed uint64) (trial.Cell, error) {
	st, err := ladder.ByName(c.Strategy)
	if err != nil {
		return trial.Cell{}, err
	}
	sc, err := scenario.ByName(c.Scenario)
	return trial.Cell{Strategy: st, Scenario: sc, Seed: seed}, err
}

// holding are the strategies that are expected to hold under a scenario, those fit for production
// first.
func holding(under scenario.Scenario, o strategy.Options) []string {
	var names []string
	for _, s := range append(strategy.All(), ladder.All()...) {
		if under.Expected(s.PropertiesUnder(o)) == scenario.Held {
			names = append(names, s.Name)
		}
	}
	return unique(names)
}

func unique(names []string) []string {
	seen := map[string]bool{}
	var once []string
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			once = append(once, n)
		}
	}
	return once
}

// propertiesOf are what a strategy declares.
func propertiesOf(name string) (strategy.Properties, error) {
	st, err := ladder.ByName(name)
	return st.Properties, err
}
