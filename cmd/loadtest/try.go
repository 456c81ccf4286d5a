package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"stocklock/internal/lab/live"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

type tryCommand struct {
	File string `arg:"" optional:"" default:"service.yaml" help:"The description of the service. With --init it is written. Without it service.yaml."`

	Init      bool          `help:"Write a commented description to begin with. A file that is there stays."`
	For       time.Duration `default:"2m" min:"1ms" max:"24h" help:"How long to look, shared by the parts. A part that is not finished then is invalid."`
	Only      []string      `placeholder:"PART" help:"Some of probe, contention, explore and faults. The probe comes first in any case."`
	Require   []string      `placeholder:"PART" help:"The parts that must hold for exit code 0. Without it, those of --only, or all."`
	Fast      bool          `help:"Each part ends at its first finding."`
	Step      string        `placeholder:"SCHEDULE" help:"Play one schedule, such as: A.select B.select. It is shown with all requests."`
	Spare     bool          `help:"With --step: there is a unit for each customer. Otherwise there is one less."`
	Seed      uint64        `default:"1" help:"Which customer buys at which process under contention."`
	AllowHost []string      `placeholder:"HOST" help:"A host other than this machine that may be loaded. It must be yours."`
	outputs   `embed:"" set:"forms=.json, which loadtest serve --tried shows; .html, one page for a browser"`
}

// Help is shown under the flags.
func (*tryCommand) Help() string {
	return `Attacks a service in any language, as a file describes it, with no change to the service. It starts the service with a
Redis and a MySQL of its own, behind proxies that understand their protocols. It buys, counts, and plays sales
request by request.

Run only descriptions that you have read: they start programs. Try only services that are your own.

Examples:

    loadtest try --init                                # write service.yaml, then edit it
    loadtest try                                       # probe, contention, every order of two sales, faults
    loadtest try shop/service.yaml --only probe        # what does one sale send?
    loadtest try shop/service.yaml --step 'A.select B.select'
    loadtest try shop/service.yaml --out out/tried.html

Exit codes: 0 every part that applies decided and held, 1 a part found a failure, 2 the description or a flag is wrong,
3 a part was skipped or decided nothing, and neither --only nor --require explore,faults leaves it out,
130 interrupted before anything was found. 1 comes before the others.`
}

// The parts of a try.
var tryParts = []string{"probe", "contention", "explore", "faults"}

func (c *tryCommand) Run(ctx context.Context, s streams, parsed *kong.Context) error {
	others, why := []string{"spare"}, "is of --step"
	switch {
	case c.Init:
		others, why = []string{"for", "only", "require", "fast", "step", "spare", "seed", "allow-host", "out"}, "is for a service that is tried, and --init tries none"
	case c.Step != "":
		others, why = []string{"only", "require", "fast"}, "is not for --step, which plays one schedule"
	}
	if flag := among(others, parsed); flag != "" {
		return usage("%s %s", flag, why)
	}
	if c.Init {
		return c.init(s)
	}
	for _, part := range c.Only {
		if _, err := scenario.Named("part", part, tryParts, strings.Clone); err != nil {
			return usage("--only: %w", err)
		}
	}
	for _, part := range c.Require {
		if _, err := scenario.Named("part", part, c.wanted(), strings.Clone); err != nil {
			return usage("--require: %w", err)
		}
	}
	order, err := schedule.Parse(c.Step)
	if err != nil {
		return usage("--step: %w", err)
	}
	if err := c.check(".json", ".html"); err != nil {
		return err
	}
	f, err := service.Read(c.File)
	switch {
	case errors.As(err, new(*service.Mistake)):
		return usage("%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return usage("%s is not there: write one with %s try --init", c.File, program())
	case err != nil:
		return usage("%w", err)
	}
	if host := f.Host(); host != "" && !service.IsLoopback(host) && !slices.Contains(c.AllowHost, host) {
		return usage("the service is on %s, another machine: --allow-host %s, if it is yours to load", host, host)
	}
	t := &try{tryCommand: c, streams: c.beside(s), stdout: s, began: time.Now(), until: time.Now().Add(c.For), file: f, order: order}
	err = t.run(ctx)
	if errors.As(err, new(*service.Mistake)) {
		t.mistake, err = err, nil
	}
	return t.conclude(ctx, err)
}

// wanted are the parts that are asked for.
func (c *tryCommand) wanted() []string {
	if len(c.Only) > 0 {
		return c.Only
	}
	return tryParts
}

func (c *tryCommand) init(s streams) error {
	out, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usage("%s is there already: give another name, or remove it", c.File)
	}
	if err != nil {
		return usage("%w", err)
	}
	_, err = out.Write(service.Example)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s is written: edit it, then run %s try %s\n", c.File, program(), quoted(c.File))
	return nil
}

// try is one run of the command.
type try struct {
	*tryCommand
	streams         // for people
	stdout  streams // where the result goes
	until   time.Time
	file    *service.File
	on      *service.Service
	probe   *service.Probe

	found   bool              // the service has failed
	unknown []string          // the parts that are required, and of which nothing can be said
	mistake error             // of the description or of --step, which a part has shown
	order   schedule.Schedule // that of --step
	parts   []report.TriedPart
	began   time.Time
}

// requires says whether nothing may stay unsaid of a part.
func (t *try) requires(part string) bool {
	switch {
	case !slices.Contains(tryParts[1:], part): // the probe, or a step
		return true
	case len(t.Require) > 0:
		return slices.Contains(t.Require, part)
	}
	return slices.Contains(t.wanted(), part)
}

// part plays a part. That it cannot go on is its result: what others have found stays.
func (t *try) part(ctx context.Context, name, what string, play func() error) {
	err := context.Cause(ctx)
	if err == nil {
		err = play()
	}
	t.moving("")
	if err == nil {
		return
	}
	if errors.As(err, new(*service.Mistake)) {
		t.mistake = err
	}
	reason := firstLine(err)
	if ctx.Err() != nil {
		reason = "interrupted"
	}
	t.add(report.TriedPart{Part: name, Verdict: verdict.Invalid, Reason: strings.TrimPrefix(what+": "+reason, ": ")})
}

func (t *try) run(ctx context.Context) (err error) {
	t.progress("starting %s", t.file.Name)
	if t.on, err = service.Start(ctx, t.file); err != nil {
		t.moving("")
		return err
	}
	defer func() { err = errors.Join(err, t.on.Close()) }()
	t.progress("one customer buys")
	t.probe, err = t.on.Probe(ctx)
	t.moving("")
	if err != nil {
		return err
	}
	t.probe.Print(t.out)
	t.add(report.TriedPart{Part: "probe", Verdict: t.probe.Judgement.Kind, Reason: t.probe.Reason})
	if t.found {
		return nil // what one customer after the other shows need not be attacked
	}
	if t.Step == "" && slices.Contains(t.wanted(), "contention") {
		t.part(ctx, "contention", "", func() error { return t.contend(ctx) })
	}
	t.atTheWire(ctx)
	return nil
}

// contentionRounds is how often many customers buy at once.
const contentionRounds = 3

func (t *try) contend(ctx context.Context) error {
	var last trial.Result
	rounds := 0
	bench := &trial.Bench{Service: service.Seller{Service: t.on, Late: t.probe.AfterAnswer}}
	for _, p := range t.on.Processes {
		bench.Shops = append(bench.Shops, trial.Shop{URL: p.URL})
	}
	for round := range contentionRounds {
		t.progress("%d customers buy at once, round %d of %d", scenario.DescribedCustomers, round+1, contentionRounds)
		results, err := trial.Run(ctx, bench, scenario.Described, []declared.Strategy{{Name: t.file.Name}}, t.Seed+uint64(round), trial.Options{})
		t.moving("")
		if err != nil {
			return err
		}
		last = results[0]
		rounds++
		if last.Verdict != verdict.Held || time.Now().After(t.until) {
			break
		}
	}
	reason := cmp.Or(last.Problem, verdict.Of(last.Verdict).Reason(last.Facts()).String())
	if last.FirstError != "" && last.Problem == "" {
		reason = strings.TrimPrefix(fmt.Sprintf("%s; %d answers were none of the description's, such as %s", reason, last.Errors, last.FirstError), "; ")
	}
	if last.Verdict == verdict.Held && rounds < contentionRounds {
		last.Verdict, reason = verdict.Invalid, fmt.Sprintf("%d of %d rounds, since time was up: see --for", rounds, contentionRounds)
	}
	t.add(report.TriedPart{Part: "contention", Verdict: last.Verdict, Reason: reason})
	return nil
}

// add notes the result of a part, and prints it.
func (t *try) add(p report.TriedPart) {
	if p.Record != nil {
		p.Mends, p.Replay = mendedAt(p.Record.Outcome.Cause), t.replay(*p.Record)
	}
	if p.Verdict == verdict.Held && (p.Part == "explore" || p.Part == "faults") {
		p.Reason = strings.Join(append([]string{p.Reason}, t.probe.Beyond()...), "; ")
	}
	t.parts = append(t.parts, p)
	v := verdict.Of(p.Verdict)
	t.found = t.found || v.Bad
	if undecided := p.Verdict == verdict.Invalid || p.Verdict == verdict.Skipped; undecided && t.requires(p.Part) && !slices.Contains(t.unknown, p.Part) {
		t.unknown = append(t.unknown, p.Part)
	}
	line := fmt.Sprintf("%-11s %s", p.Part+":", v.Word(words.English))
	if p.Reason != "" {
		line += ": " + p.Reason
	}
	fmt.Fprintln(t.out, line)
}

// result is what is kept of the try.
func (t *try) result() report.Tried {
	return report.Tried{
		Version: report.TriedVersion, Service: t.file.Name, Time: t.began.Format(time.RFC3339), Command: commandLine(t.args), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Cores: runtime.NumCPU(), Seed: t.Seed, Sale: t.probe.Sold, SoldOut: t.probe.SoldOut, Unseen: t.probe.Unseen, Parts: t.parts,
	}
}

// conclude writes the files, and says how the try ended, whose run had an error or none.
func (t *try) conclude(ctx context.Context, err error) error {
	if len(t.parts) > 0 {
		in := forms{".json": t.result().JSON, ".html": func(w io.Writer) error { return live.SaveTried(t.result(), w) }}
		err = errors.Join(err, t.write(t.stdout, in, ".json"))
	}
	switch {
	case t.found && err != nil: // the exit code says that there is a finding, and nothing else would say this
		fmt.Fprintln(t.err, "loadtest:", err)
		return errFound
	case t.found:
		return errFound
	case t.mistake != nil:
		return usage("%w", errors.Join(t.mistake, err))
	case err != nil:
		return err
	case len(t.unknown) > 0 && ctx.Err() == nil:
		return fmt.Errorf("nothing can be said of: %s", strings.Join(t.unknown, ", "))
	}
	return nil
}

// progress shows on a terminal what is done.
func (t *try) progress(format string, args ...any) {
	t.moving(fmt.Sprintf(format, args...))
}
