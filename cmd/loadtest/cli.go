package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"

	"stocklock/internal/flags"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/words"
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
	Demo     demoCommand     `cmd:"" help:"Compare five strategies, then run every strategy in its telling scenario. About a minute."`
	Run      runCommand      `cmd:"" help:"Run strategies under scenarios, show what was oversold, and with --draw why."`
	Report   reportCommand   `cmd:"" help:"Make any form of report from saved results, or compare two of them."`
	Serve    serveCommand    `cmd:"" help:"Serve the page on which a class predicts, runs, watches and steps through cells."`
	Step     stepCommand     `cmd:"" help:"Play two or three sales request by request, in an order that you choose."`
	Explore  exploreCommand  `cmd:"" help:"Run every order of the requests of two or three sales, and show the shortest that fails; with --judge, whether a strategy is what it declares."`
	Try      tryCommand      `cmd:"" help:"Attack a service of your own, in any language, as a file describes it."`
	Soak     soakCommand     `cmd:"" help:"Sell for a long time while everything goes wrong at once, or a million units while shops are killed, and count."`
	Exercise exerciseCommand `cmd:"" help:"Begin an exercise of the course, or check your solution. Needs Go and a checkout. With --shell, servers to type to."`
	List     listCommand     `cmd:"" help:"Describe the strategies, their properties, and the scenarios."`
	Lang     string          `enum:",en,zh" default:"" placeholder:"LANGUAGE" help:"The language of results, drawings, explanations and exercises: en or zh. Without it, on a terminal, the one of LANG. Help, errors and files are in English, and so is all of try and soak."`
	flags.VersionFlag
}

const description = `Sells limited stock through many strategies, breaks things on purpose, and shows what each of them oversold.

Examples:

    loadtest demo                                              # the comparison, the telling cells, and a page
    loadtest run                                               # five strategies under contention
    loadtest run all                                           # every strategy under every scenario: the matrix
    loadtest run set-ex-nx:pause --draw                        # one cell, and why it oversells, step by step
    loadtest run telling --out out/result.json                 # each strategy in its telling scenario
    loadtest report before.json after.json                     # what changed, cell by cell
    loadtest step none A.select B.select                       # two sales, request by request
    loadtest explore set-ex-nx --events wait --customers 3     # every order of three sales
    loadtest explore set-ex-nx --judge                         # is what it declares true?
    loadtest try --init                                        # your own service, in any language
    loadtest soak --for 10m --seed 1                           # everything goes wrong at once
    loadtest list properties
    loadtest exercise 3 --check                                # have you solved it?

Without --mysql, --redis and --shop it starts and stops its own servers and shops. The same
--seed keeps which request meets which fault. It does not keep in which order requests are served.

Exit codes: 0 all as expected, 1 a surprise or a --fail-if, 2 bad usage, 3 the harness failed, 130 interrupted.`

// run is the program: it returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, s := &commands{}, streams{out: stdout, err: stderr, args: args}
	parsed, done, err := c.parse(ctx, s)
	switch {
	case done:
		return exitExpected
	case err != nil && isBehindFlags(err, args):
		err = usage("%w: words come before flags; see %s --help", err, program())
	case err != nil:
		err = usage("%w; see %s --help", err, program())
	default:
		s.lang = language(c.Lang, stdout)
		err = parsed.Run(s)
	}
	code := exitCode(ctx, err)
	switch {
	case code == exitUsage || code == exitFailed:
		fmt.Fprintln(stderr, "loadtest:", err)
	case code == exitInterrupted && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
		fmt.Fprintln(stderr, "loadtest: interrupted, before there was a result")
	case code == exitInterrupted && err != nil && !errors.Is(err, errSurprised):
		fmt.Fprintln(stderr, "loadtest: interrupted:", err)
	}
	return code
}

// isBehindFlags says whether a command has taken a word behind flags for none of its own.
func isBehindFlags(err error, args []string) bool {
	word, unexpected := strings.CutPrefix(err.Error(), "unexpected argument ")
	word, _, _ = strings.Cut(word, ",")
	return unexpected && word != args[0] && slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
}

// parse reads the command line. Done says that there is nothing more to do.
func (c *commands) parse(ctx context.Context, s streams) (parsed *kong.Context, done bool, err error) {
	if err := refuseReplaced(s.args); err != nil {
		return nil, false, err
	}
	return flags.Parse(c, s.args,
		kong.Name("loadtest"),
		kong.Description(description),
		kong.Writers(s.out, s.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars(defaults),
		kong.BindTo(ctx, (*context.Context)(nil)),
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
	lang     *words.Language // nil for English
}

// language is the one of --lang. Without it, a terminal speaks that of its user.
func language(flag string, out io.Writer) *words.Language {
	if flag == "" && isTerminal(out) {
		flag, _, _ = strings.Cut(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")), "_")
	}
	return words.In(flag)
}

func (s streams) in() *words.Language { return cmp.Or(s.lang, words.English) }

func (s streams) say(key string, facts ...any) string { return s.in().Say(words.Of(key, facts...)) }

func (s streams) terminal() report.Terminal {
	return report.Terminal{Out: s.out, Colour: isTerminal(s.out) && os.Getenv("NO_COLOR") == "", Width: widthOf(s.out), Lang: s.lang}
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

// movingWidth is the width of a terminal for a line that keeps changing, and 0 for anything else.
func movingWidth(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	return widthOf(w)
}

// moving shows on a terminal a line in place of the one before.
func (s streams) moving(line string) {
	if width := movingWidth(s.err); width > 0 {
		fmt.Fprint(s.err, "\r\x1b[2K"+tabular.Cut(line, width))
	}
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
	What         string `arg:"" optional:"" default:"all" help:"What to describe: strategies, properties, scenarios, baskets, reservations, topologies, or all."`
}

func (c listCommand) Run(ctx context.Context, s streams) error {
	t := s.terminal()
	var strategies, baskets, reservations []declared.Strategy
	type part struct {
		name  string
		print func()
	}
	parts := []part{
		{"strategies", func() { t.Strategies(strategies) }},
		{"properties", func() { t.Properties(strategies) }},
		{"scenarios", t.Scenarios},
		{"baskets", func() { t.Baskets(baskets) }},
		{"reservations", func() { t.Reservations(reservations) }},
		{"topologies", func() { t.Topologies(strategies) }},
	}
	if c.What != "all" {
		one, err := scenario.Named("list", c.What, parts, func(p part) string { return p.name })
		if err != nil {
			return usage("%w, or all", err)
		}
		parts = []part{one}
	}
	if c.What != "scenarios" {
		shop, err := c.known(ctx, s)
		if err != nil {
			return err
		}
		defer shop.Close()
		strategies, baskets, reservations = shop.Strategies, shop.Baskets, shop.Reservations
	}
	for _, p := range parts {
		p.print()
	}
	if slices.Contains([]string{"all", "strategies", "scenarios"}, c.What) {
		fmt.Fprintf(s.out, "\n%s\n", s.say("list.stories"))
	}
	return nil
}
