// Command bench compares the lock with its peers. Several processes compete for the same lock. One
// run measures the throughput, the waits, the fairness and the load on Redis of each lock.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"stocklock/bench/lock"
	"stocklock/bench/measure"
	"stocklock/bench/section"
	"stocklock/bench/worker"
	"stocklock/internal/flags"
)

func main() {
	if os.Getenv(worker.Env) != "" {
		os.Exit(worker.Main(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitMeasured    = 0
	exitUnsafe      = 1 // this repository's lock lost an update
	exitUsage       = 2
	exitFailed      = 3
	exitWorse       = 4 // than the baseline
	exitInterrupted = 130
)

type commands struct {
	Locks options      `cmd:"" default:"withargs" help:"Compare locks. This is what bench does without a command."`
	Scale scaleCommand `cmd:"" help:"Measure how sales grow with items, shops and servers, as ratios."`
}

const description = `Compares locks on Redis: holds per second relative to a sync.Mutex with the same work, waits, fairness,
and the cost of each hold in Redis. Starts its own servers and processes, and stops them at the end.

Examples:

    bench                                              # the default locks in all shapes; takes a few minutes
    bench --shapes 4x8 --locks mutex,stocklock,redsync --repeat 5 --seconds 2
    bench --shapes 2x1,8x1,64x1 --locks mutex,stocklock
    bench --shapes pairs,pairs-cancellable,pairs-wait --sections empty --locks stocklock --seconds 5
    bench --locks mutex,stocklock --baseline bench/baseline.txt  # what became worse
    bench --list                                       # the locks and their settings
    bench scale                                        # one hot item, many items, several shops, a Cluster
    bench scale topologies --each 2s                   # on databases of several servers

Exit codes: 0 measured, 1 this repository's lock lost an update, 2 bad usage, 3 the measurement failed,
4 this repository's lock is worse than the baseline beyond noise, 130 interrupted.`

// run is the program without its process: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o commands
	parsed, done, err := flags.Parse(&o, args, kong.Name("bench"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}))
	if done {
		return exitMeasured
	}
	var of interface {
		check() error
		run(ctx context.Context, stdout, stderr io.Writer) (code int, err error)
	} = &o.Scale
	if err == nil && parsed.Selected() != nil && parsed.Selected().Name == "locks" {
		var p plan
		p, err = o.Locks.plan()
		of = &p
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v; see bench --help\n", err)
		return exitUsage
	}
	if o.Locks.List {
		list(stdout)
		return exitMeasured
	}
	if err := of.check(); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	}
	code, err := of.run(ctx, stdout, stderr)
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	return code
}

func list(out io.Writer) {
	for _, l := range lock.All {
		fmt.Fprintf(out, "%-14s %s\n", l.Name, l.Doc)
		if l.Tuning != "" {
			fmt.Fprintf(out, "%-14s tuning: %s\n", "", l.Tuning)
		}
	}
	fmt.Fprintln(out)
	for _, s := range section.All {
		fmt.Fprintf(out, "%-14s %s\n", s.Name, s.Doc)
	}
	fmt.Fprintf(out, "\nshapes: PROCESSESxGOROUTINES, optionally with added latency to Redis or a pause between two holds; hold-LOCKS; pairs, pairs-cancellable or pairs-wait. By default:\n")
	for _, c := range measure.DefaultCells() {
		fmt.Fprintf(out, "%-14s %s\n", c.Shape.Name, c.Section.Name)
	}
}
