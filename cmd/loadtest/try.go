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

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wholefile"
)

type tryCommand struct {
	File string `arg:"" optional:"" default:"service.yaml" help:"The description of the service. With --init it is written."`

	Init      bool          `help:"Write a commented description to begin with. A file that is there stays."`
	For       time.Duration `default:"2m" help:"How long to look. What is not finished then is said."`
	Only      []string      `placeholder:"PART" help:"Some of probe, contention, explore and faults. The probe comes first in any case."`
	Step      string        `placeholder:"SCHEDULE" help:"Play one schedule, such as: A.select B.select. It is shown with all requests."`
	Seed      uint64        `default:"1" help:"Which customer buys at which process under contention."`
	AllowHost []string      `placeholder:"HOST" help:"A host other than this machine that may be loaded. It must be yours."`
	JSON      bool          `name:"json" help:"Print the result as JSON. loadtest serve --tried shows it."`
	HTML      string        `name:"html" placeholder:"FILE" help:"Also write it here as one page for a browser, which needs no network."`
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
    loadtest try shop/service.yaml --html out/tried.html

Exit codes: 0 nothing was found, 1 it oversells or lies, 2 the description or a flag is wrong, 3 nothing can be said.`
}

// The parts of a try.
var tryParts = []string{"probe", "contention", "explore", "faults"}

func (c *tryCommand) Run(ctx context.Context, s streams) error {
	if c.Init {
		return c.init(s)
	}
	for _, part := range c.Only {
		if !slices.Contains(tryParts, part) {
			return usage("--only: there is no part %q: want some of %s", part, strings.Join(tryParts, ", "))
		}
	}
	if c.HTML != "" {
		if err := wholefile.Check(c.HTML); err != nil {
			return usage("--html: %w", err)
		}
	}
	f, err := service.Read(c.File)
	switch {
	case errors.As(err, new(*service.Mistake)):
		return usage("%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return usage("%s is not there: write one with loadtest try --init", c.File)
	case err != nil:
		return usage("%w", err)
	}
	if host := f.Host(); host != "" && !service.IsLoopback(host) && !slices.Contains(c.AllowHost, host) {
		return usage("the service is on %s, another machine: --allow-host %s, if it is yours to load", host, host)
	}
	t := &try{tryCommand: c, streams: s, began: time.Now(), until: time.Now().Add(c.For), file: f}
	if err := t.run(ctx); err != nil {
		if errors.As(err, new(*service.Mistake)) {
			return usage("%w", err)
		}
		return err
	}
	return t.conclude()
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
	fmt.Fprintf(s.out, "%s is written: edit it, then run loadtest try %s\n", c.File, quoted(c.File))
	return nil
}

// try is one run of the command.
type try struct {
	*tryCommand
	streams
	until time.Time
	file  *service.File
	on    *service.Service
	probe *service.Probe

	found   bool     // the service has failed
	unknown []string // why nothing can be said of a part
	parts   []report.TriedPart
	began   time.Time
}

// wants says whether a part is asked for.
func (t *try) wants(part string) bool { return len(t.Only) == 0 || slices.Contains(t.Only, part) }

func (t *try) run(ctx context.Context) (err error) {
	t.progress("starting %s", t.file.Name)
	if t.on, err = service.Start(ctx, t.file); err != nil {
		t.done()
		return err
	}
	defer func() { err = errors.Join(err, t.on.Close()) }()
	t.progress("one customer buys")
	t.probe, err = t.on.Probe(ctx)
	t.done()
	if err != nil {
		return err
	}
	if !t.JSON {
		t.probe.Print(t.out)
	}
	t.add(report.TriedPart{Part: "probe", Verdict: t.probe.Judgement.Kind, Reason: t.probe.Reason})
	if t.found {
		return nil // what one customer after the other shows need not be attacked
	}
	if t.Step == "" && t.wants("contention") {
		if err := t.contend(ctx); err != nil {
			return err
		}
	}
	return t.atTheWire(ctx)
}

// contentionRounds is how often many customers buy at once.
const contentionRounds = 3

func (t *try) contend(ctx context.Context) error {
	var last service.Result
	for round := range contentionRounds {
		t.progress("%d customers buy at once, round %d of %d", service.DefaultContention.Customers, round+1, contentionRounds)
		load := service.DefaultContention
		load.Seed = t.Seed + uint64(round)
		r, err := t.on.Contend(ctx, load)
		t.done()
		if err != nil {
			return err
		}
		last = r
		if r.Judgement.Kind != verdict.Held || time.Now().After(t.until) {
			break
		}
	}
	v := verdict.Of(last.Judgement.Kind)
	reason := cmp.Or(last.Judgement.Problem, v.Reason("en", last.Facts))
	if last.Error != "" && last.Judgement.Problem == "" {
		reason = strings.TrimPrefix(fmt.Sprintf("%s; %d answers were none of the description's, such as %s", reason, last.Answers["error"], last.Error), "; ")
	}
	t.add(report.TriedPart{Part: "contention", Verdict: last.Judgement.Kind, Reason: reason, Answers: last.Answers})
	return nil
}

// add notes the result of a part, and prints it.
func (t *try) add(p report.TriedPart) {
	if p.Record != nil {
		p.Mends, p.Replay = mends[p.Record.Outcome.Cause], t.replay(*p.Record)
	}
	t.parts = append(t.parts, p)
	v := verdict.Of(p.Verdict)
	t.found = t.found || v.Bad
	skipped := p.Verdict == verdict.Skipped && (t.Step != "" || slices.Contains(t.Only, p.Part)) // and it was asked for
	if p.Verdict == verdict.Invalid || skipped {
		t.unknown = append(t.unknown, p.Part)
	}
	if t.JSON {
		return
	}
	line := fmt.Sprintf("%-11s %s", p.Part+":", v.En.Word)
	if p.Reason != "" {
		line += ": " + p.Reason
	}
	fmt.Fprintln(t.out, line)
}

// result is what is kept of the try.
func (t *try) result() report.Tried {
	steps := func(of []service.Step) (all []report.TriedStep) {
		for _, step := range of {
			all = append(all, report.TriedStep(step))
		}
		return all
	}
	return report.Tried{
		Version: report.TriedVersion, Service: t.file.Name, Time: t.began.Format(time.RFC3339), Command: commandLine(t.args), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Cores: runtime.NumCPU(), Seed: t.Seed, Sale: steps(t.probe.Sold), SoldOut: steps(t.probe.SoldOut), Unseen: t.probe.Unseen, Parts: t.parts,
	}
}

func (t *try) conclude() error {
	if t.JSON {
		if err := t.result().JSON(t.out); err != nil {
			return err
		}
	}
	if t.HTML != "" {
		err := wholefile.Write(t.HTML, func(w io.Writer) error { return t.result().HTML(w, "") })
		if err != nil {
			return err
		}
		if !t.JSON {
			fmt.Fprintln(t.out, "wrote", t.HTML)
		}
	}
	switch {
	case t.found:
		return errSurprised
	case len(t.unknown) > 0:
		return fmt.Errorf("nothing can be said of: %s", strings.Join(t.unknown, ", "))
	}
	return nil
}

// progress shows on a terminal what is done.
func (t *try) progress(format string, args ...any) {
	if isTerminal(t.err) {
		fmt.Fprintf(t.err, "\r\x1b[2K"+format, args...)
	}
}

func (t *try) done() { clearProgress(t.streams) }
