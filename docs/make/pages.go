package main

import (
	"fmt"
	"strings"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy"
)

// pages lists all pages in a language, with what the code and the shop say of them.
func (l language) pages(strategies []strategy.Description) []page {
	var all []page
	for _, s := range strategies {
		all = append(all, l.strategyPage(s))
	}
	for _, sc := range scenario.All() {
		all = append(all, l.scenarioPage(sc, strategies))
	}
	return append(all, l.strategyIndex(strategies), l.scenarioIndex())
}

// page is a page with a link to the one in the other language.
func (l language) page(folder, name, title, fields string) page {
	other := english.file
	if l.words == nil {
		other = ".zh-CN.md"
	}
	return page{language: l, path: folder + "/" + name + l.file, title: title, fields: fmt.Sprintf(l.other, name+other) + "\n\n" + fields}
}

func (l language) strategyPage(s strategy.Description) page {
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	row := func(name, value string) { fmt.Fprintf(&b, "| %s | %s |\n", name, value) }
	row(l.guard, orNothing(s.Guard, l.nothing))
	row(l.decrement, s.Decrement)
	row(l.source, s.Source)
	row(l.code, fmt.Sprintf("[`%[1]s`](../../%[1]s)", codeOf(s)))
	row(l.has, l.properties(s.Properties.Has))
	row(l.lacks, l.properties(s.Properties.Lacks()))
	row(l.notApplicable, l.properties(s.Properties.NotApplicable))
	fmt.Fprintf(&b, "\n%s\n\n| %s | %s | %s |\n|---|---|---|\n", l.follows, l.under, l.is, l.because)
	for _, sc := range scenario.All() {
		e := sc.Expected(s.Properties)
		fmt.Fprintf(&b, "| [`%[1]s`](../scenarios/%[1]s%[2]s) | %[3]s | %[4]s |\n", sc.Name, l.file, l.verdict(e.Verdict), l.decisive(e.Because))
	}
	telling, err := scenario.ByName(s.Telling)
	if err != nil {
		panic(err) // the strategy names no scenario
	}
	p := l.page("strategies", s.Name, "`"+s.Name+"`", l.sentence("strategy."+s.Name, s.Doc)+"\n")
	p.expected = b.String()
	p.parts = []string{l.wrong, l.meet}
	p.command = "loadtest explain " + s.Name + ":" + s.Telling
	p.pairs = []matrix.Pair{{Strategy: s, Scenario: telling}}
	return p
}

func (l language) scenarioPage(sc scenario.Scenario, strategies []strategy.Description) page {
	var b strings.Builder
	fmt.Fprintf(&b, l.attacks+"\n", sc.Attacks, l.say("property."+sc.Attacks.String(), sc.Attacks.Doc()))
	fmt.Fprintf(&b, l.schedule, fmt.Sprintf("[`%[1]s`](../../internal/lab/scenario/%[1]s)", codeFile(sc.Name)))
	if sc.Needs == scenario.Rig {
		b.WriteString(l.commands)
	}
	fmt.Fprintf(&b, "%s\n\n| %s | %s | %s |\n|---|---|---|\n", l.stop, l.strategy, l.is, l.because)
	for _, s := range strategies {
		e := sc.Expected(s.Properties)
		fmt.Fprintf(&b, "| [`%[1]s`](../strategies/%[1]s%[2]s) | %[3]s | %[4]s |\n", s.Name, l.file, l.verdict(e.Verdict), l.decisive(e.Because))
	}
	var names []string
	p := l.page("scenarios", sc.Name, "`"+sc.Name+"`", l.sentence("scenario."+sc.Name, sc.Doc)+"\n")
	for _, s := range bothSides(sc, strategies) {
		names = append(names, s.Name)
		p.pairs = append(p.pairs, matrix.Pair{Strategy: s, Scenario: sc})
	}
	p.expected = b.String()
	p.parts = []string{l.happens, l.meet}
	p.command = "loadtest run --scenarios " + sc.Name + " --strategies " + strings.Join(names, ",") + " --draw"
	return p
}

// bothSides returns the last strategy of the ladder that fails under a scenario, and the first
// after it that holds.
func bothSides(sc scenario.Scenario, strategies []strategy.Description) []strategy.Description {
	var fails, holds strategy.Description
	for _, s := range strategies {
		switch held := sc.Expected(s.Properties).Verdict == verdict.Held; {
		case !held:
			fails, holds = s, strategy.Description{}
		case holds.Name == "":
			holds = s
		}
	}
	return []strategy.Description{fails, holds}
}

func (l language) strategyIndex(strategies []strategy.Description) page {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| %s | %s | %s |\n|---|---|---|\n", l.listStrategies, l.strategy, l.does, l.shownBy)
	for _, s := range strategies {
		fmt.Fprintf(&b, "| [`%[1]s`](%[1]s%[2]s) | %[3]s | [`%[4]s`](../scenarios/%[4]s%[2]s) |\n", s.Name, l.file, l.say("strategy."+s.Name, s.Doc), s.Telling)
	}
	return l.page("strategies", "README", l.strategies, b.String())
}

func (l language) scenarioIndex() page {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| %s | %s | %s |\n|---|---|---|\n", l.listScenarios, l.scenario, l.does, l.attacked)
	for _, sc := range scenario.All() {
		fmt.Fprintf(&b, "| [`%[1]s`](%[1]s%[2]s) | %[3]s | %[4]s |\n", sc.Name, l.file, l.say("scenario."+sc.Name, sc.Doc), sc.Attacks)
	}
	return l.page("scenarios", "README", l.scenarios, b.String())
}

// codeOf is the path of a strategy's file: those that are fit for production are in the list of
// package strategy.
func codeOf(s strategy.Description) string {
	if _, err := strategy.Find(s.Name, strategy.All()); err == nil {
		return "internal/strategy/" + codeFile(s.Name)
	}
	return "internal/strategy/ladder/" + codeFile(s.Name)
}

// codeFile is the file that a strategy or a scenario is in, by their convention.
func codeFile(name string) string { return strings.ReplaceAll(name, "-", "_") + ".go" }

func orNothing(s, nothing string) string {
	if s == "nothing" {
		return nothing
	}
	return s
}
