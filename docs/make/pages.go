package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// pages lists all pages in all languages, with what the code and the shop say of them.
func pages(in []language, strategies []declared.Strategy) []page {
	var all []page
	for _, l := range in {
		for _, s := range strategies {
			all = append(all, l.strategyPage(s))
		}
		for _, sc := range scenario.All() {
			all = append(all, l.scenarioPage(sc, strategies))
		}
		all = append(all, l.strategyIndex(strategies), l.scenarioIndex(), l.expectedPage(strategies), l.minePage())
	}
	return all
}

// page is a page with a link to the one in the other language, and one to what is expected.
func (l language) page(folder, name, title, top string) page {
	other := english.file
	if l.words == nil {
		other = ".zh-CN.md"
	}
	links := fmt.Sprintf(l.other, name+other)
	if folder != "" {
		links += " · " + fmt.Sprintf(l.all, "../expected"+l.file)
	}
	return page{language: l, path: folder + name + l.file, english: name + english.file, title: title, top: links + "\n\n" + top}
}

func (l language) strategyPage(s declared.Strategy) page {
	p := l.page("strategies/", s.Name, "`"+s.Name+"`", l.sentence("strategy."+s.Name, s.Doc)+"\n")
	p.parts = []string{l.wrong, l.meet}
	p.shows = shown{strategy: s.Name, schedule: schedules[s.Name]}
	if p.shows.schedule == "" {
		p.shows = shown{cell: s.Name + ":" + s.Telling}
	}
	var b strings.Builder
	if p.shows.schedule != "" {
		b.WriteString(l.columns + "\n\n")
	}
	first := true
	for _, k := range kept() {
		if plan := k.Schedule.String(); k.Strategy == s.Name && plan != p.shows.schedule {
			if first {
				b.WriteString(l.more + "\n\n")
			}
			first = false
			fmt.Fprintf(&b, "- `loadtest step %s %s --draw`%s%s\n", s.Name, plan, l.colon, l.say("cause."+string(k.Cause), k.Cause.Doc()))
		}
	}
	if !first {
		b.WriteString("\n")
	}
	b.WriteString("| | |\n|---|---|\n")
	row := func(name, value string) { fmt.Fprintf(&b, "| %s | %s |\n", name, value) }
	if l.words == nil { // in English alone
		row("guard", s.Guard)
		row("decrement", s.Decrement)
		row("source", s.Source)
	}
	row(l.code, fmt.Sprintf("[`%[1]s`](../../%[1]s)", codeOf(s)))
	row(l.has, l.properties(s.Properties.Has))
	row(l.lacks, l.properties(s.Properties.Lacks()))
	row(l.notApplicable, l.properties(s.Properties.NotApplicable))
	p.facts = b.String()
	return p
}

func (l language) scenarioPage(sc scenario.Scenario, strategies []declared.Strategy) page {
	p := l.page("scenarios/", sc.Name, "`"+sc.Name+"`", l.sentence("scenario."+sc.Name, sc.Doc)+"\n")
	p.parts = []string{l.happens, l.meet}
	fails, holds := bothSides(sc, strategies)
	p.shows = shown{cell: fails.Name + ":" + sc.Name}
	if of, ok := bySchedule[sc.Name]; ok {
		p.shows = shown{strategy: of, schedule: schedules[of]}
	}
	var b strings.Builder
	fmt.Fprintf(&b, l.attacks+"\n", sc.Attacks, l.say("property."+sc.Attacks.String(), sc.Attacks.Doc()))
	fmt.Fprintf(&b, l.held+"\n", holds.Name, sc.Name)
	fmt.Fprintf(&b, l.implemented, fmt.Sprintf("[`%[1]s`](../../internal/lab/scenario/%[1]s)", codeFile(sc.Name)))
	if sc.Needs == scenario.Rig {
		b.WriteString(l.commands)
	}
	p.facts = b.String() + l.stop + "\n"
	return p
}

// The strategies that show best how a scenario ends, from the best on. Where none of them ends so,
// it is the last one of the ladder that fails by the property that the scenario attacks.
var (
	showFailing = []string{"reentrant", "reentrant-timer", "owner-checked", "mutex"}
	showHolding = []string{"reentrant", "fenced"}
)

// bothSides returns a strategy that fails under a scenario, and one that holds.
func bothSides(sc scenario.Scenario, strategies []declared.Strategy) (fails, holds declared.Strategy) {
	best := func(among []string, ends func(declared.Strategy) bool) (found declared.Strategy) {
		for _, s := range strategies {
			if ends(s) {
				found = s
			}
		}
		for _, name := range slices.Backward(among) {
			if i := slices.IndexFunc(strategies, func(s declared.Strategy) bool { return s.Name == name && ends(s) }); i >= 0 {
				found = strategies[i]
			}
		}
		return found
	}
	fails = best(showFailing, func(s declared.Strategy) bool {
		e := sc.Expected(s)
		return verdict.Of(e.Verdict).Bad && e.Because.Property == sc.Attacks.String()
	})
	holds = best(showHolding, func(s declared.Strategy) bool { return sc.Expected(s).Verdict == verdict.Held })
	return fails, holds
}

func (l language) strategyIndex(strategies []declared.Strategy) page {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| %s | %s | %s |\n|---|---|---|\n", l.listStrategies, l.strategy, l.does, l.shownBy)
	for _, s := range strategies {
		fmt.Fprintf(&b, "| [`%[1]s`](%[1]s%[2]s) | %[3]s | [`%[4]s`](../scenarios/%[4]s%[2]s) |\n", s.Name, l.file, l.say("strategy."+s.Name, s.Doc), s.Telling)
	}
	return l.page("strategies/", "README", l.strategies, b.String())
}

func (l language) scenarioIndex() page {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| %s | %s | %s |\n|---|---|---|\n", l.listScenarios, l.scenario, l.does, l.attacked)
	for _, sc := range scenario.All() {
		fmt.Fprintf(&b, "| [`%[1]s`](%[1]s%[2]s) | %[3]s | %[4]s |\n", sc.Name, l.file, l.say("scenario."+sc.Name, sc.Doc), sc.Attacks)
	}
	return l.page("scenarios/", "README", l.scenarios, b.String())
}

// expectedPage has every cell: half of the scenarios in each table, so that it fits a page.
func (l language) expectedPage(strategies []declared.Strategy) page {
	var b strings.Builder
	b.WriteString(l.matrix + "\n")
	all := scenario.All()
	for half := range slices.Chunk(all, (len(all)+1)/2) {
		fmt.Fprintf(&b, "\n| %s |", l.strategy)
		for _, sc := range half {
			fmt.Fprintf(&b, " [`%[1]s`](scenarios/%[1]s%[2]s) |", sc.Name, l.file)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(half)) + "\n")
		for _, s := range strategies {
			fmt.Fprintf(&b, "| [`%[1]s`](strategies/%[1]s%[2]s) |", s.Name, l.file)
			for _, sc := range half {
				e := sc.Expected(s)
				word := l.verdict(e.Verdict) + l.colon
				switch {
				case e.Verdict == verdict.Inapplicable:
					word = ""
				case e.Verdict != verdict.Held:
					word = "**" + l.verdict(e.Verdict) + "**" + l.colon
				}
				fmt.Fprintf(&b, " %s%s |", word, l.decisive(e.Because))
			}
			b.WriteString("\n")
		}
	}
	return l.page("", "expected", l.expected, b.String())
}

// codeOf is the path of a strategy's file: those that are fit for production are in the list of
// package strategy.
func codeOf(s declared.Strategy) string {
	if s.Production {
		return "internal/strategy/" + codeFile(s.Name)
	}
	return "internal/strategy/ladder/" + codeFile(s.Name)
}

// codeFile is the file that a strategy or a scenario is in, by their convention.
func codeFile(name string) string {
	return strings.ReplaceAll(cmp.Or(variants[name], name), "-", "_") + ".go"
}

// variants are the strategies that share a file, with its name.
var variants = map[string]string{"wrong-key-customer": "wrong-key", "wrong-key-shop": "wrong-key"}
