package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// shown is what a page or a section shows: a schedule of a strategy, or a cell.
type shown struct {
	cell     string // STRATEGY:SCENARIO, empty for a schedule
	strategy string // one of [schedules]
}

// command prints what is shown.
func (s shown) command() string {
	if s.cell != "" {
		return "loadtest run " + s.cell + " --draw"
	}
	return "loadtest step " + s.strategy + " " + schedules[s.strategy] + " --draw --no-times"
}

// schedules tell the stories of strategies. The telling cell shows a strategy without one.
var schedules = map[string]string{
	"none":                  "A.select B.select",
	"mutex":                 "A.select B.select",
	"setnx":                 "A.setnx kill:A",
	"setnx-expire":          "A.setnx kill:A",
	"set-ex-nx":             "A.set A.select A.update A.insert A.commit wait B.set A.del C.set C.select",
	"lua-setex":             "A.acquire wait B.acquire B.select",
	"owner-get-del":         "A.set A.select A.update A.insert A.commit A.get wait B.set A.del C.set C.select",
	"owner-checked":         "A.set wait B.set B.select",
	"reentrant-fixed":       "A.acquire wait B.acquire B.select",
	"reentrant-timer":       "A.acquire cut:A B.acquire B.select",
	"reentrant":             "A.acquire forget B.acquire B.select",
	"redis-async":           "A.take A.set A.select A.set2 A.take2 kill:A",
	"reservation-unchecked": "A.update A.insert A.insert2 A.commit wait",
	"lock-in-transaction":   "A.acquire A.select A.update A.insert A.release B.acquire B.select",
	"snapshot-before-lock":  "A.select B.select",
	"lock-then-for-update":  "A.select B.select A.acquire A.select2 A.update A.insert A.release B.acquire B.select2",
	"transaction-in-lock":   "A.acquire A.update A.select pause:A B.acquire B.update B.select B.update2 B.insert B.commit",
	"getset-server-clock":   "A.time A.setnx wait B.time B.setnx B.get B.getset B.select",
	"redlock":               "A.acquire A.select pause:A B.acquire B.select",
	"reservation":           "A.update A.insert A.insert2 A.commit wait B.update",
	"get-lock":              "A.select A.select2 kill:A B.select",
	"fenced":                "A.acquire A.update A.select pause:A B.acquire B.update B.select B.update2 B.insert B.commit",
	"for-update":            "A.select B.select kill:A",
	"optimistic":            "A.select B.select",
	"conditional":           "A.update B.update",
}

// bySchedule are the scenarios that the schedule of a strategy shows, because a cell's drawing
// has no place for what they do: an answer without an order.
var bySchedule = map[string]string{"crash-answered": "redis-async"}

// ends are the causes of the schedules that oversell and are not among those that are kept.
var ends = map[string]verdict.Cause{"getset-server-clock": verdict.Overrun, "redlock": verdict.LateWrite}

// outcome is how the schedule is to end: as it is kept, or by [ends], or else held.
func (s shown) outcome() (verdict.Kind, verdict.Cause) {
	for _, k := range schedule.KeptSchedules() {
		if k.Strategy == s.strategy && k.Schedule.String() == schedules[s.strategy] {
			return k.Verdict, k.Cause
		}
	}
	if cause, ok := ends[s.strategy]; ok {
		return verdict.Oversold, cause
	}
	return verdict.Held, ""
}

// stageLease is the lease of the schedules: what is drawn does not depend on it.
const stageLease = 300 * time.Millisecond

// playAll plays the schedules, and returns what loadtest prints of each, by its command.
func playAll(ctx context.Context, shop *catalog.Catalog) (map[string]string, error) {
	on, err := step.OpenShops(ctx, shop, step.Options{Lease: stageLease, OwnSlots: 1})
	if err != nil {
		return nil, err
	}
	defer on.Close()
	var mu sync.Mutex // guards printed
	printed := map[string]string{}
	playing, ctx := errgroup.WithContext(ctx)
	playing.SetLimit(4)
	for _, of := range slices.Sorted(maps.Keys(schedules)) {
		playing.Go(func() error {
			shows := shown{strategy: of}
			command := shows.command()
			fmt.Fprintln(os.Stderr, command)
			plan, err := schedule.Parse(schedules[of])
			if err != nil {
				return err
			}
			r, err := on.PlaySchedule(ctx, of, plan.Customers(), plan)
			if err != nil {
				return fmt.Errorf("%s: %w", command, err)
			}
			if v, cause := shows.outcome(); r.Outcome.Verdict != v || r.Outcome.Cause != cause {
				return fmt.Errorf("%s ended %s, want %s %s", command, r.Sentence(), v, cause)
			}
			var b strings.Builder
			schedule.Draw(&b, words.English, r.WithoutTimes(), 0)
			mu.Lock()
			defer mu.Unlock()
			printed[command] = fmt.Sprintf("%s%s\n", &b, r.Sentence())
			return nil
		})
	}
	return printed, playing.Wait()
}

// results returns the results of the cells of the chapters, by name, and keeps them in a file. Those
// that the file does not have, and those that are named, are run.
func results(ctx context.Context, shop *catalog.Catalog, all []page, file string, anew []string) (map[string]trial.Result, error) {
	kept, err := keptCells(file)
	if err != nil {
		return nil, err
	}
	known, cells := byName(kept.Cells), map[string]trial.Result{}
	for _, p := range all {
		name := p.shows.cell
		if name == "" || cells[name].Strategy != "" {
			continue
		}
		c, ok := known[name]
		if !ok || slices.Contains(anew, name) || slices.Contains(anew, "all") {
			fmt.Fprintln(os.Stderr, p.shows.command())
			r, err := runCell(ctx, shop, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			switch ran := r.Cells[0]; {
			case ran.Verdict != verdict.Skipped:
				c, kept.Version, kept.Environment.Time = forPage(ran), report.Version, r.Environment.Time
			case ok:
				fmt.Fprintf(os.Stderr, "%s stays as it is: it %s\n", name, ran.Problem)
			default:
				return nil, fmt.Errorf("%s: it %s", name, ran.Problem)
			}
		}
		cells[name] = c
	}
	kept.Cells = slices.SortedFunc(maps.Values(cells), func(a, b trial.Result) int { return cmp.Compare(a.Name(), b.Name()) })
	var out bytes.Buffer
	if err := kept.JSON(&out); err != nil {
		return nil, err
	}
	return cells, os.WriteFile(file, out.Bytes(), 0o644)
}

func byName(cells []trial.Result) map[string]trial.Result {
	named := map[string]trial.Result{}
	for _, c := range cells {
		named[c.Name()] = c
	}
	return named
}

func keptCells(file string) (report.Report, error) {
	if _, err := os.Stat(file); os.IsNotExist(err) {
		return report.Report{}, nil
	}
	return report.Read(file)
}

func runCell(ctx context.Context, shop *catalog.Catalog, name string) (report.Report, error) {
	pairs, err := cells.Pairs([]string{name}, shop)
	if err != nil {
		return report.Report{}, err
	}
	status := matrix.NewStatus(os.Stderr, 0)
	defer status.Close()
	plan := matrix.Plan{Pairs: pairs, Shop: shop.Program, Offered: shop.Strategies, Seed: 1}
	r, err := matrix.Run(ctx, plan, status)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && r.Cells[0].Surprise() {
		err = fmt.Errorf("it ended %s, which is a surprise", r.Cells[0].Verdict)
	}
	return r, err
}

// forPage is a result with what [report.Terminal.Explain] prints of it.
func forPage(c trial.Result) trial.Result {
	c.ByOutcome, c.Distribution, c.Timeline, c.Steps, c.CostPerSale = nil, nil, trial.Timeline{}, nil, nil
	return c
}

// output is the block of what a chapter shows, with its command. Other languages link to the English
// one, and say the cause. Old is the page until now: it has what a schedule printed that was not
// played.
func (p page) output(old string, played map[string]string, cells map[string]trial.Result) string {
	if p.shows == (shown{}) {
		return ""
	}
	c := cells[p.shows.cell]
	if p.translated() {
		page := path.Base(strings.TrimSuffix(p.path, p.file)) + english.file
		return fmt.Sprintf("```console\n$ %s\n```\n\n%s\n", p.shows.command(), p.say("printed", "page", page, "why", p.why(c)))
	}
	printed := played[p.shows.command()]
	switch {
	case p.shows.cell != "":
		var out bytes.Buffer
		report.Terminal{Out: &out}.Explain(c)
		for line := range strings.Lines(out.String()) {
			printed += strings.TrimRight(line, " \n") + "\n"
		}
	case printed == "":
		_, after, _ := strings.Cut(old, "$ "+p.shows.command()+"\n")
		printed, _, _ = strings.Cut(after, "```\n")
	}
	return fmt.Sprintf("```console\n$ %s\n%s```\n", p.shows.command(), printed)
}

// why is in other languages than English how it ended, and the cause.
func (p page) why(c trial.Result) string {
	if p.shows.cell != "" {
		return p.verdict(c.Verdict) + p.Say(words.Of("colon")) + p.Say(c.Explanation.Why...)
	}
	ended, cause := p.shows.outcome()
	if cause == "" {
		return p.say("sentence", "said", p.verdict(ended))
	}
	return p.say("ended", "verdict", ended, "cause", cause)
}
