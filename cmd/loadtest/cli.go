package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"

	"stocklock/internal/flags"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/mistakes"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/soak"
	"stocklock/internal/strategy/declared"
)

// Exit codes.
const (
	exitExpected    = 0 // every cell did what its strategy's properties promise
	exitSurprised   = 1 // one did not, or met a --fail-if
	exitUsage       = 2 // a flag or an argument is wrong
	exitFailed      = 3 // the harness failed, which says nothing about the strategies
	exitInterrupted = 130
)

var (
	errUsage     = errors.New("usage")
	errSurprised = errors.New("surprised")
	errFound     = errors.New("found") // as errSurprised, and an interruption does not change it
)

// usage is an error in what the user asked for.
func usage(format string, args ...any) error {
	return fmt.Errorf("%w%w", errSilent{errUsage}, fmt.Errorf(format, args...))
}

// errSilent marks an error and adds nothing to its text.
type errSilent struct{ error }

func (errSilent) Error() string   { return "" }
func (e errSilent) Unwrap() error { return e.error }

type commands struct {
	Demo     demoCommand     `cmd:"" help:"Compare five strategies, then break each strategy where it shows most. About a minute."`
	Run      runCommand      `cmd:"" help:"Run strategies under scenarios and show what was oversold."`
	Explain  explainCommand  `cmd:"" help:"Run one cell, or take it from a saved result, and show the interleaving that broke it, or what prevented that."`
	Report   reportCommand   `cmd:"" help:"Make any form of report from saved results, or compare two of them."`
	Serve    serveCommand    `cmd:"" help:"Serve the page on which a class predicts, runs, watches and steps through cells."`
	Soak     soakCommand     `cmd:"" help:"Sell for a long time while everything goes wrong at once, and count."`
	Crashes  crashesCommand  `cmd:"" help:"Sell a million units while a shop is killed every two seconds, and compare answers with orders."`
	Step     stepCommand     `cmd:"" help:"Play two or three sales request by request, in an order that you choose."`
	Explore  exploreCommand  `cmd:"" help:"Run every order of the requests of two or three sales, and show the shortest that fails."`
	Try      tryCommand      `cmd:"" help:"Attack a service of your own, in any language, as a file describes it."`
	Judge    judgeCommand    `cmd:"" help:"Hold what a strategy declares against scenarios and explorations, property by property."`
	Exercise exerciseCommand `cmd:"" help:"Begin an exercise of the course, or check your solution. Needs Go and a checkout."`
	Shell    shellCommand    `cmd:"" help:"Start a Redis and a MySQL, and a shell in which redis-cli and mysql reach them: to type the transcripts of the course."`
	List     listCommand     `cmd:"" help:"Describe the strategies, their properties, and the scenarios."`
	flags.VersionFlag
}

const description = `Sells limited stock through many strategies, breaks things on purpose, and shows what each of them oversold.

Examples:

    loadtest demo                                              # the comparison, the telling cells, and a page
    loadtest run                                               # five strategies under contention
    loadtest run --strategies all --scenarios all              # everything: the matrix
    loadtest run --strategies set-ex-nx --scenarios late-release --runs 5
    loadtest run --strategies none,conditional --rate 500 --json out/result.json
    loadtest run --strategies all --scenarios all --html out/report.html
    loadtest report before.json after.json                     # what changed, cell by cell
    loadtest run --strategies fenced --fail-if 'oversold>0' --fail-if 'p99>500ms'
    loadtest run --strategies conditional --rate 200..2000/30s --results out/requests.gob
    loadtest run --mysql 'user:secret@tcp(db:3306)/stocklock' --shop http://shop1:8080 --shop http://shop2:8080
    loadtest explain set-ex-nx:pause                           # run it, and say why it oversells, step by step
    loadtest run --cells telling --json out/result.json        # each strategy where it shows most
    loadtest explain set-ex-nx:pause --from out/result.json    # of that saved result
    loadtest step none A.select B.select                       # two sales, request by request
    loadtest explore set-ex-nx --events wait --customers 3     # every order of three sales
    loadtest try --init                                        # your own service, in any language
    loadtest judge set-ex-nx                                   # is what it declares true?
    loadtest soak --minutes 10 --seed 1                        # everything goes wrong at once
    loadtest crashes --sales 100000                            # kill -9, one shop after the other
    loadtest list properties
    loadtest exercise 3 --check                                # have you solved it?

Without --mysql, --redis and --shop it starts servers and shops of its own, and ends them. The same
--seed keeps which request meets which fault. It does not keep in which order requests are served.

Exit codes: 0 all as expected, 1 a surprise or a --fail-if, 2 bad usage, 3 the harness failed, 130 interrupted.`

// run is the program: it returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	parsed, done, err := (&commands{}).parse(ctx, streams{stdout, stderr, args})
	switch {
	case done:
		return exitExpected
	case err != nil:
		err = usage("%w; see loadtest --help", err)
	default:
		err = parsed.Run()
	}
	code := exitCode(ctx, err)
	switch {
	case code == exitUsage || code == exitFailed:
		fmt.Fprintln(stderr, "loadtest:", err)
	case code == exitInterrupted && err != nil && !errors.Is(err, errSurprised):
		fmt.Fprintln(stderr, "loadtest: interrupted, before there was a result")
	}
	return code
}

// parse reads the command line. Done says that there is nothing more to do.
func (c *commands) parse(ctx context.Context, s streams) (parsed *kong.Context, done bool, err error) {
	return flags.Parse(c, s.args,
		kong.Name("loadtest"),
		kong.Description(description),
		kong.Writers(s.out, s.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars(defaults),
		kong.Vars{"scenarios": strings.Join(scenario.Names(), ", "), "groups": strings.Join(scenario.Groups()[1:], ", "), "shapes": load.Help(),
			"metrics": strings.Join(report.Metrics(), ", "), "faults": strings.Join(soak.Faults(), "; ")},
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(s),
	)
}

func exitCode(ctx context.Context, err error) int {
	switch {
	case errors.Is(err, errFound):
		return exitSurprised
	case ctx.Err() != nil:
		return exitInterrupted
	case err == nil:
		return exitExpected
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errSurprised):
		return exitSurprised
	default:
		return exitFailed
	}
}

// streams is where a command writes, and how it was called.
type streams struct {
	out, err io.Writer
	args     []string
}

func (s streams) terminal() report.Terminal {
	return report.Terminal{Out: s.out, Colour: isTerminal(s.out) && os.Getenv("NO_COLOR") == "", Width: widthOf(s.out)}
}

func (s streams) json(v any) error {
	out := json.NewEncoder(s.out)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// widthOf is the width of a terminal in columns, and 0 for anything else.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// isTerminal reports whether w is a terminal. Colours and a moving status line are for terminals
// alone.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

type listCommand struct {
	shopSettings `embed:""`
	What         string `arg:"" optional:"" enum:"all,strategies,properties,scenarios,baskets,reservations,topologies" default:"all" help:"What to describe: strategies, properties, scenarios, baskets, reservations, topologies, or all."`
}

func (c listCommand) Run(ctx context.Context, s streams) error {
	t := s.terminal()
	var strategies, baskets, reservations []declared.Strategy
	if c.What != "scenarios" {
		shop, err := c.known(ctx, s)
		if err != nil {
			return err
		}
		defer shop.Close()
		strategies, baskets, reservations = shop.Strategies, shop.Baskets, shop.Reservations
	}
	for _, part := range []struct {
		name  string
		print func()
	}{
		{"strategies", func() { t.Strategies(strategies) }},
		{"properties", func() { t.Properties(strategies) }},
		{"scenarios", t.Scenarios},
		{"baskets", func() { t.Baskets(baskets) }},
		{"reservations", func() { t.Reservations(reservations) }},
		{"topologies", func() { t.Topologies(strategies) }},
	} {
		if c.What == "all" || c.What == part.name {
			part.print()
		}
	}
	if slices.Contains([]string{"all", "strategies", "scenarios"}, c.What) {
		fmt.Fprintf(s.out, "\nThe story of each: %s/README.md\n", mistakes.Folder)
	}
	return nil
}
