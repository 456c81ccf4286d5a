package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"stocklock/internal/lab/mistakes"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// chapters are the pages of docs/mistakes, in the order in which they are read, with what each shows.
var chapters = []struct {
	name  string
	shows shown
}{
	{"no-lock", shown{strategy: "none"}},
	{"keys", shown{cell: "wrong-key-customer:contention"}},
	{"leases", shown{strategy: "owner-checked"}},
	{"releases", shown{strategy: "set-ex-nx"}},
	{"clocks", shown{cell: "getset:clock-skew"}},
	{"transactions", shown{strategy: "lock-in-transaction"}},
	{"caches", shown{cell: "cached-read:page-view"}},
	{"redis", shown{strategy: "redis-async"}},
	{"holds", shown{strategy: "fenced"}},
}

// mends are for each strategy that fails in its telling cell those that hold there, from the one that changes least.
var mends = map[string][]string{
	"none":                      {"conditional", "for-update"},
	"mutex":                     {"conditional", "reentrant"},
	"check-constraint-absolute": {"check-constraint"},
	"ledger":                    {"ledger-parent-locked", "ledger-serializable"},
	"wrong-key-customer":        {"reentrant", "fenced"},
	"wrong-key-shop":            {"reentrant", "fenced"},
	"setnx":                     {"set-ex-nx"},
	"setnx-expire":              {"set-ex-nx"},
	"lua-setex":                 {"reentrant", "fenced"},
	"owner-checked":             {"reentrant", "fenced"},
	"owner-delex":               {"reentrant", "fenced"},
	"reentrant-fixed":           {"reentrant", "fenced"},
	"reentrant-timer":           {"reentrant", "fenced"},
	"reentrant":                 {"fenced", "fenced-relative"},
	"redlock":                   {"fenced", "fenced-relative"},
	"reservation-unchecked":     {"reservation"},
	"set-ex-nx":                 {"owner-checked"},
	"owner-get-del":             {"owner-checked", "owner-watch"},
	"owner-watch":               {"reentrant"},
	"getset":                    {"getset-server-clock", "set-ex-nx"},
	"getset-server-clock":       {"reentrant"},
	"lock-in-transaction":       {"transaction-in-lock", "lock-then-for-update"},
	"snapshot-before-lock":      {"transaction-in-lock", "lock-then-for-update"},
	"retry-without-key":         {"retry-with-key"},
	"cached-read":               {"cached-page"},
	"cached-read-through":       {"cached-page"},
	"redis-async":               {"redis-stream", "batched"},
	"ack-first":                 {"redis-stream", "batched"},
}

// pages lists all pages in all languages, with what the code and the shop say of them.
func pages(in []language, strategies []declared.Strategy) []page {
	var all []page
	for _, l := range in {
		facts := map[string]string{}
		for _, s := range strategies {
			facts[s.Name] = l.strategyFacts(s)
		}
		for _, sc := range scenario.Of(trial.OneServer) {
			facts[sc.Name] = l.scenarioFacts(sc, strategies)
		}
		for _, c := range chapters {
			p := page{language: l, path: "mistakes/" + c.name + l.file, facts: map[string]string{}, shows: c.shows}
			for name, of := range facts {
				p.facts[name] = strings.ReplaceAll(of, "("+c.name+l.file+"#", "(#")
			}
			all = append(all, p)
		}
		all = append(all, l.index(strategies), page{language: l, path: "is-it-mine" + l.file, made: map[string]string{"": l.mine()}})
	}
	return all
}

// section is a link to the section on a strategy or a scenario, for a page in a folder of docs.
func (l language) section(name, folder string) string {
	to := strings.TrimPrefix(mistakes.Section(name, l.tag), "docs/")
	if folder != "" {
		to = strings.TrimPrefix(to, folder+"/")
	}
	return fmt.Sprintf("[`%s`](%s)", name, to)
}

func (l language) links(names []string, folder string) string {
	var all []string
	for _, name := range names {
		all = append(all, l.section(name, folder))
	}
	return strings.Join(all, l.say("comma"))
}

func (l language) codeIn(file string) string {
	return l.say("code", "name", path.Base(file), "file", file)
}

// ofStrategy is what shows a strategy: the schedule that tells its story, or its telling cell.
func ofStrategy(s declared.Strategy) shown {
	if schedules[s.Name] != "" {
		return shown{strategy: s.Name}
	}
	return shown{cell: s.Name + ":" + s.Telling}
}

func (l language) strategyFacts(s declared.Strategy) string {
	var b strings.Builder
	b.WriteString(l.sentence("strategy."+s.Name, s.Doc) + "\n")
	source := ""
	if !l.translated() { // the sources are named in English alone
		source = "Source: " + s.Source + ". "
	}
	fmt.Fprintf(&b, "- %s%s%s", l.say("shown", "command", ofStrategy(s).command()), source, l.codeIn(codeOf(s)))
	if by := mends[s.Name]; by != nil {
		b.WriteString(l.say("mends", "links", l.links(by, "mistakes")))
	}
	b.WriteString("\n")
	for _, k := range schedule.KeptSchedules() {
		if plan := k.Schedule.String(); k.Strategy == s.Name && plan != schedules[s.Name] {
			fmt.Fprintf(&b, "- %s\n", l.say("caused", "command", fmt.Sprintf("loadtest step %s %s --draw", s.Name, plan), "cause", k.Cause))
		}
	}
	return b.String()
}

func (l language) scenarioFacts(sc trial.Scenario, strategies []declared.Strategy) string {
	var b strings.Builder
	b.WriteString(l.sentence("scenario."+sc.Name, sc.Doc) + "\n")
	fails, holds := bothSides(sc, strategies)
	shows := shown{cell: fails.Name + ":" + sc.Name}
	if of, ok := bySchedule[sc.Name]; ok {
		shows = shown{strategy: of}
	}
	property := words.Text{Key: "property." + sc.Attacks.String(), Words: sc.Attacks.Doc()}
	fmt.Fprintf(&b, "- %s%s%s\n", l.say("both", "command", shows.command(), "twin", l.section(holds.Name, "mistakes"), "cell", holds.Name+":"+sc.Name),
		l.say("attacks", "name", sc.Attacks.String(), "property", property), l.codeIn("internal/lab/scenario/one_server.go"))
	return b.String()
}

// The strategies that show best how a scenario ends, from the best on. Where none of them ends so,
// it is the last one of the ladder that fails by the property that the scenario attacks.
var (
	showFailing = []string{"reentrant", "reentrant-timer", "owner-checked", "mutex", "setnx"}
	showHolding = []string{"reentrant", "fenced"}
)

// bothSides returns a strategy that fails under a scenario, and one that holds.
func bothSides(sc trial.Scenario, strategies []declared.Strategy) (fails, holds declared.Strategy) {
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

// index lists all names.
func (l language) index(strategies []declared.Strategy) page {
	var b strings.Builder
	b.WriteString(l.say("strategies") + "\n|---|---|---|\n")
	for _, s := range strategies {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.section(s.Name, "mistakes"), l.Or("strategy."+s.Name, s.Doc), l.section(s.Telling, "mistakes"))
	}
	b.WriteString("\n" + l.say("scenarios") + "\n|---|---|---|\n")
	for _, sc := range scenario.Of(trial.OneServer) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.section(sc.Name, "mistakes"), l.Or("scenario."+sc.Name, sc.Doc), sc.Attacks)
	}
	return page{language: l, path: "mistakes/README" + l.file, made: map[string]string{"": b.String()}}
}

// codeOf is the path of a strategy's file: those that are fit for production are in the list of
// package strategy.
func codeOf(s declared.Strategy) string {
	if s.Production {
		return path.Join("internal/strategy", codeFile(s.Name))
	}
	return path.Join("internal/strategy/ladder", codeFile(s.Name))
}

// codeFile is the file that a strategy is in, by convention.
func codeFile(name string) string {
	return strings.ReplaceAll(cmp.Or(variants[name], name), "-", "_") + ".go"
}

// variants are the strategies that share a file, with its name.
var variants = map[string]string{"wrong-key-customer": "wrong-key", "wrong-key-shop": "wrong-key"}
