// Package program is the program shop: its commands, flags and exit codes. The main of cmd/shop
// only calls it. Another main can offer strategies of its own.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"stocklock/internal/flags"
	"stocklock/internal/strategy"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // it could not start, or could not finish cleanly
	exitUsage  = 2 // a setting cannot be
)

// AddFlags adds the flags of a struct in kong's form, such as those that a strategy needs. It is
// called before [Main]. Main has set them when it builds a strategy.
func AddFlags(flags any) { addedFlags = append(addedFlags, flags) }

var addedFlags kong.Plugins

// Main runs the program with the arguments and streams of this process until a signal ends it, and
// returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after the first signal, the next one ends the process at once
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// usageError is a setting that cannot be.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

type commands struct {
	settings
	Serve       serveCommand       `cmd:"" default:"1" help:"Sell until told to end. This is the default."`
	Healthcheck healthcheckCommand `cmd:"" help:"Ask a running shop whether it is ready: exit code 0 if it is, 1 if not."`
	Migrate     migrateCommand     `cmd:"" help:"Bring the schema up to date, and end."`
	Erase       eraseCommand       `cmd:"" help:"Remove who a customer is from its orders, and end."`
	Strategies  strategiesCommand  `cmd:"" help:"List the strategies of this shop, and end."`
	flags.VersionFlag
	kong.Plugins
}

const description = `Sells stock from MySQL, one sale at a time an item, under a lock in Redis.

Examples:

    SHOP_MYSQL='shop:secret@tcp(127.0.0.1:3306)/stocklock' shop
    SHOP_MYSQL='shop:secret@tcp(db:3306)/stocklock?tls=true' SHOP_REDIS=rediss://:secret@cache:6379 shop --addr=:8080
    shop healthcheck --addr=127.0.0.1:8080

Prefer the environment for SHOP_MYSQL and SHOP_REDIS: flags can be seen by every user of the machine.
OpenTelemetry traces are sent when OTEL_EXPORTER_OTLP_ENDPOINT says where to. A shop built with the tag lab sends none.`

// streams are where a command prints its result and its log.
type streams struct{ out, err io.Writer }

// run is the program: it returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	chosen := commands{Plugins: slices.Concat(labCommands, addedFlags)}
	parsed, done, err := flags.Parse(&chosen, args,
		kong.Name("shop"),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.Vars{"strategies": strings.Join(strategy.Names(offered), ", "), "strategy": defaultStrategy},
		lockDefaults,
		kong.ExplicitGroups([]kong.Group{{Key: "lab", Title: "The lab, never in production:"}}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.BindTo(stderr, (*io.Writer)(nil)),
		kong.Bind(&streams{stdout, stderr}),
	)
	switch {
	case done:
		return exitOK
	case err != nil:
		err = usageError{err}
	default:
		err = parsed.Run(&chosen.settings)
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "shop: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

type strategiesCommand struct {
	describing `embed:""`
}

func (c *strategiesCommand) Run(to *streams) error {
	if done, err := c.describe(to.out); done {
		return err
	}
	for _, s := range offered {
		if _, err := fmt.Fprintf(to.out, "%-20s %s\n", s.Name, s.Doc); err != nil {
			return err
		}
	}
	return nil
}
