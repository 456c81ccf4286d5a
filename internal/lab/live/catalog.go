package live

import (
	"fmt"
	"slices"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/mine"
	"stocklock/internal/lab/mistakes"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// menu is what can be run.
type menu struct {
	Program    string         `json:"program"` // as its user calls loadtest
	Strategies []strategyInfo `json:"strategies"`
	Scenarios  []scenarioInfo `json:"scenarios"`
	Baskets    groupMenu      `json:"baskets"`
	Topologies []topologyInfo `json:"topologies"`
	// Reservations are what can be run of those.
	Reservations groupMenu      `json:"reservations"`
	Shapes       []load.Form    `json:"shapes"`   // of a comparison under load
	Verdicts     []verdict.Kind `json:"verdicts"` // in the order of the legend
	Words        []verdict.Kind `json:"words"`    // of a prediction
	Outcomes     []string       `json:"outcomes"` // of requests, in the order of charts
	Shops        int            `json:"shops"`    // that sell in a cell
	// Searches are the kinds of event of a search for an oversell, in its order: none, and then what oversells most.
	Searches []schedule.Event `json:"searches,omitempty"`
	// Questions lead from a visitor's code to a cell.
	Questions []mine.Question `json:"questions"`
	// Tried are the pages of services that were tried.
	Tried []triedInfo `json:"tried,omitempty"`
	// Classroom is where phones vote, nil for no votes.
	Classroom *classInfo `json:"classroom,omitempty"`
	Saved     *savedInfo `json:"saved,omitempty"` // of a saved page
}

type triedInfo struct {
	Service string       `json:"service"`
	Verdict verdict.Kind `json:"verdict"`
	Page    string       `json:"page"`
}

type classInfo struct {
	URL  string `json:"url"`
	Code string `json:"code"` // as a picture
}

// groupMenu is what can be run of sales of several items, or of reservations. No scenario has the name of one of another
// group.
type groupMenu struct {
	Strategies []strategyInfo `json:"strategies"`
	Scenarios  []scenarioInfo `json:"scenarios"`
}

// topologyInfo is a database of several servers, and what can happen to it. Its strategies are those of one server.
type topologyInfo struct {
	Name      string         `json:"name"`
	Doc       string         `json:"doc"`
	Missing   words.Text     `json:"missing,omitzero"` // why it cannot start on this machine
	Scenarios []scenarioInfo `json:"scenarios"`
}

type strategyInfo struct {
	Name       string `json:"name"`
	Doc        string `json:"doc"`
	Guard      string `json:"guard"`
	Decrement  string `json:"decrement"`
	Telling    string `json:"telling"`
	NotStepped bool   `json:"not_stepped,omitempty"` // it cannot be stepped through
	Page       string `json:"page,omitempty"`        // the address of its section, in English
}

type scenarioInfo struct {
	Name    string `json:"name"`
	Doc     string `json:"doc"`
	Attacks string `json:"attacks"`
	Page    string `json:"page,omitempty"` // the address of its section, in English
	// Expected has the strategies with which it is a cell, nil for all.
	Expected map[string]verdict.Kind `json:"expected,omitempty"`
	Words    []verdict.Kind          `json:"words,omitempty"` // of a prediction
}

func newMenu(shop *catalog.Catalog, tried []report.Tried) menu {
	m := menu{Outcomes: outcomes(), Searches: []schedule.Event{"", schedule.Wait, schedule.Forget, schedule.Lose, schedule.Pause, schedule.Cut, schedule.Kill}, Shapes: slices.DeleteFunc(slices.Clone(load.Forms), func(f load.Form) bool { return f.Offered == "" })}
	m.Tried = triedInfos(tried)
	m.Strategies, m.Baskets.Strategies, m.Reservations.Strategies = ways(shop.Strategies), ways(shop.Baskets), ways(shop.Reservations)
	for i, s := range m.Strategies {
		m.Strategies[i].Page = mistakes.Section(s.Name, "en")
	}
	m.Baskets.Scenarios, m.Reservations.Scenarios, m.Scenarios = infos(trial.Baskets, shop.Baskets, false), infos(trial.Reservations, shop.Reservations, false), infos(trial.OneServer, shop.Strategies, false)
	for _, of := range topology.All {
		info := topologyInfo{Name: of.Name, Doc: of.Doc}
		if missing := of.Missing(); missing != nil {
			info.Missing = words.Of("missing", "why", missing.Error())
		}
		info.Scenarios = infos(of.Name, shop.Strategies, true)
		m.Topologies = append(m.Topologies, info)
	}
	for _, v := range verdict.All {
		if v.Kind != verdict.Degraded { // the page shows what it held
			m.Verdicts = append(m.Verdicts, v.Kind)
		}
		if v.Predictable {
			m.Words = append(m.Words, v.Kind)
		}
	}
	m.Questions = mine.Known(func(of, under string) bool {
		_, noStrategy := shop.ByName(of)
		_, noScenario := scenario.ByName(under)
		return noStrategy == nil && noScenario == nil
	})
	return m
}

// ways are strategies as the page describes them.
func ways(of []declared.Strategy) []strategyInfo {
	all := make([]strategyInfo, 0, len(of))
	for _, s := range of {
		notStepped := s.NeedsQuorum || s.State.Scattered() || s.AnswersFirst || s.OnlyBaskets && !step.Unplayable(s).IsZero()
		all = append(all, strategyInfo{Name: s.Name, Doc: s.Doc, Guard: s.Guard, Decrement: s.Decrement, Telling: s.Telling, NotStepped: notStepped})
	}
	return all
}

// outcomes are the names of those of requests.
func outcomes() (names []string) {
	for _, a := range verdict.Answers {
		names = append(names, a.Name)
	}
	return names
}

func triedInfos(tried []report.Tried) (all []triedInfo) {
	for i, t := range tried {
		all = append(all, triedInfo{t.Service, t.Verdict(), fmt.Sprintf("tried/%d", i+1)})
	}
	return all
}

// endsOf are what may be predicted of a scenario: what some strategy comes to there, and the usual ways to end.
func endsOf(s trial.Scenario, of []declared.Strategy) []verdict.Kind {
	can := []verdict.Kind{verdict.Held, verdict.Oversold, verdict.Stuck}
	for _, st := range of {
		if s.Applies(st) {
			can = append(can, s.Expected(st).Verdict)
		}
	}
	return predictable(can)
}

// predictable are those of some verdicts that may be predicted, in the order of the legend.
func predictable(among []verdict.Kind) (words []verdict.Kind) {
	for _, v := range verdict.All {
		if v.Predictable && slices.Contains(among, v.Kind) {
			words = append(words, v.Kind)
		}
	}
	return words
}

// infos are the scenarios of a group, and what may be predicted of them; with what is expected of strategies where
// not all have a cell.
func infos(group string, of []declared.Strategy, expected bool) (all []scenarioInfo) {
	for _, s := range scenario.Of(group) {
		info := scenarioInfo{Name: s.Name, Doc: s.Doc, Attacks: s.Attacks.String(), Words: endsOf(s, of)}
		if group == trial.OneServer {
			info.Page = mistakes.Section(s.Name, "en")
		}
		if expected {
			info.Expected = map[string]verdict.Kind{}
			for _, st := range of {
				if s.Applies(st) {
					info.Expected[st.Name] = s.Expected(st).Verdict
				}
			}
		}
		all = append(all, info)
	}
	return all
}

// scenarios are those of all kinds of cells.
func (m menu) scenarios() []scenarioInfo {
	all := slices.Concat(m.Scenarios, m.Baskets.Scenarios, m.Reservations.Scenarios)
	for _, of := range m.Topologies {
		all = append(all, of.Scenarios...)
	}
	return all
}

// pair finds what is to be run.
func (s *Server) pair(c cellName) (pair matrix.Pair, err error) {
	if pair.Scenario, err = scenario.ByName(c.Scenario); err != nil {
		return pair, err
	}
	_, of := s.o.Shop.Under(pair.Scenario)
	if pair.Strategy, err = of(c.Strategy); err == nil && !pair.Scenario.Applies(pair.Strategy) {
		err = words.Of("refused.no-cell", "strategy", c.Strategy, "scenario", c.Scenario)
	}
	return pair, err
}
