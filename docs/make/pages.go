package main

import (
	"fmt"
	"strings"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/strategy"
)

// pages lists all pages, with what the code and the shop say of them.
func pages(strategies []strategy.Description) []page {
	var all []page
	for _, s := range strategies {
		all = append(all, strategyPage(s))
	}
	for _, sc := range scenario.All() {
		all = append(all, scenarioPage(sc, strategies))
	}
	return append(all, strategyIndex(strategies), scenarioIndex())
}

func strategyPage(s strategy.Description) page {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n| | |\n|---|---|\n", sentence(s.Doc))
	row := func(name, value string) { fmt.Fprintf(&b, "| %s | %s |\n", name, value) }
	row("guard", s.Guard)
	row("decrement", s.Decrement)
	row("source", s.Source)
	row("code", fmt.Sprintf("[`%[1]s`](../../%[1]s)", codeOf(s)))
	row("has", words(s.Properties.Has))
	row("lacks", words(s.Properties.Lacks()))
	row("does not apply", words(s.Properties.NotApplicable))
	b.WriteString("\nWhat is expected of it follows from that:\n\n| under | it is | because |\n|---|---|---|\n")
	for _, sc := range scenario.All() {
		fmt.Fprintf(&b, "| [`%[1]s`](../scenarios/%[1]s.md) | %s | %s |\n", sc.Name, sc.Expected(s.Properties), sc.Decisive(s.Properties))
	}
	telling, err := scenario.ByName(s.Telling)
	if err != nil {
		panic(err) // the strategy names no scenario
	}
	return page{
		path: "strategies/" + s.Name + ".md", title: "`" + s.Name + "`", fields: b.String(),
		parts:   []string{"What goes wrong", "How people meet it"},
		command: "loadtest run --cells " + s.Name + ":" + s.Telling,
		pairs:   []matrix.Pair{{Strategy: s, Scenario: telling}},
	}
}

func scenarioPage(sc scenario.Scenario, strategies []strategy.Description) page {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n", sentence(sc.Doc))
	fmt.Fprintf(&b, "It attacks the property **%s**: %s.\n", sc.Attacks, sc.Attacks.Doc())
	fmt.Fprintf(&b, "Its schedule is in [`%[1]s`](../../internal/lab/scenario/%[1]s)", codeFile(sc.Name))
	if sc.Needs == scenario.Rig {
		b.WriteString("; it commands servers, so it needs ones that `loadtest` started itself")
	}
	b.WriteString(".\n\n| strategy | is | because |\n|---|---|---|\n")
	for _, s := range strategies {
		fmt.Fprintf(&b, "| [`%[1]s`](../strategies/%[1]s.md) | %s | %s |\n", s.Name, sc.Expected(s.Properties), sc.Decisive(s.Properties))
	}
	sides := bothSides(sc, strategies)
	var names []string
	var pairs []matrix.Pair
	for _, s := range sides {
		names = append(names, s.Name)
		pairs = append(pairs, matrix.Pair{Strategy: s, Scenario: sc})
	}
	return page{
		path: "scenarios/" + sc.Name + ".md", title: "`" + sc.Name + "`", fields: b.String(),
		parts:   []string{"What happens", "How people meet it"},
		command: "loadtest run --scenarios " + sc.Name + " --strategies " + strings.Join(names, ","),
		pairs:   pairs,
	}
}

// bothSides returns the last strategy of the ladder that fails under a scenario, and the first
// after it that holds.
func bothSides(sc scenario.Scenario, strategies []strategy.Description) []strategy.Description {
	var fails, holds strategy.Description
	for _, s := range strategies {
		switch held := sc.Expected(s.Properties) == scenario.Held; {
		case !held:
			fails, holds = s, strategy.Description{}
		case holds.Name == "":
			holds = s
		}
	}
	return []strategy.Description{fails, holds}
}

func strategyIndex(strategies []strategy.Description) page {
	var b strings.Builder
	b.WriteString("From the naive to the strict, one page each.\n\n| strategy | what it does | shown by |\n|---|---|---|\n")
	for _, s := range strategies {
		fmt.Fprintf(&b, "| [`%[1]s`](%[1]s.md) | %[2]s | [`%[3]s`](../scenarios/%[3]s.md) |\n", s.Name, s.Doc, s.Telling)
	}
	return page{path: "strategies/README.md", title: "The strategies", fields: b.String()}
}

func scenarioIndex() page {
	var b strings.Builder
	b.WriteString("Each attacks one property of a strategy, and is placed at one point of a sale.\n\n| scenario | what it does | attacks |\n|---|---|---|\n")
	for _, sc := range scenario.All() {
		fmt.Fprintf(&b, "| [`%[1]s`](%[1]s.md) | %s | %s |\n", sc.Name, sc.Doc, sc.Attacks)
	}
	return page{path: "scenarios/README.md", title: "The scenarios", fields: b.String()}
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

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func words(p strategy.Property) string {
	if p == 0 {
		return "nothing"
	}
	return p.String()
}
