package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"stocklock/internal/shop"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

type serveCommand struct{}

// gcPercent replaces the default of GOGC. Each request makes garbage, and what is kept is small, so collecting it
// less often saves `batched` a sixth of its processor time for some megabytes. GOMEMLIMIT bounds them.
const gcPercent = 400

// Run sells until ctx ends. The log goes to stderr.
func (*serveCommand) Run(ctx context.Context, set *settings, stderr io.Writer) (err error) {
	if err := set.check(); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log := newLog(stderr, set.LogLevel)
	slog.SetDefault(log)
	shop.RedisLog(log)

	chosen, err := strategy.Find(set.Strategy, offered)
	if err != nil {
		return usage("--strategy (SHOP_STRATEGY): %w", err)
	}
	if set.Staff && !chosen.Mixable {
		return usage("--staff (SHOP_STAFF): %s writes over what was restocked, or keeps its stock elsewhere: want %s",
			chosen.Name, strings.Join(strategy.Names(mixable()), ", "))
	}
	tracing, err := startTracing(ctx)
	if err != nil {
		return err
	}
	defer joinClose(&err, tracing)
	lab, err := set.labSettings.open(set.Name)
	if err != nil {
		return err
	}
	defer joinClose(&err, lab)
	store, err := stock.Open(set.MySQL, slices.Concat([]stock.Option{stock.WithPoolSize(set.MySQLPool)}, tracing.store(), lab.store())...)
	if err != nil {
		return usage("--mysql (SHOP_MYSQL): %w", err)
	}
	defer joinClose(&err, store)
	client, err := shop.OpenRedis(set.Redis, set.RedisPool)
	if err != nil {
		return usage("--redis (SHOP_REDIS): %w", err)
	}
	if err := tracing.redis(client); err != nil {
		return err
	}
	defer joinClose(&err, client)
	deps := strategy.Deps{Redis: client, Store: store, Options: set.options()}
	lab.equip(&deps)
	if err := chosen.Check(deps); err != nil {
		return usage("--strategy (SHOP_STRATEGY): %w", err)
	}
	s, err := shop.New(shop.Config{
		Name:            set.Name,
		Strategy:        chosen,
		Deps:            deps,
		Log:             log,
		SchemaIsManaged: !set.Migrate,
		SubjectHeader:   set.SubjectHeader,
		KeyTTL:          set.KeyTTL,
		Limit:           set.Limit,
		Staff:           set.Staff,
		MaxInFlight:     set.MaxInFlight,
		MaxConnections:  set.MaxConnections,
		StartupTimeout:  set.StartupTimeout,
		DrainDelay:      set.DrainDelay,
		DrainTimeout:    set.DrainTimeout,
		Tracing:         tracing.provider,
	})
	if err != nil {
		return usage("--name (SHOP_NAME): %w", err)
	}
	lab.attach(s)
	public, err := net.Listen("tcp", set.Addr)
	if err != nil {
		return fmt.Errorf("--addr (SHOP_ADDR) cannot be used: %w", err)
	}
	var internal net.Listener
	if set.InternalAddr != "" {
		if internal, err = net.Listen("tcp", set.InternalAddr); err != nil {
			return fmt.Errorf("--internal-addr (SHOP_INTERNAL_ADDR) cannot be used: %w", errors.Join(err, public.Close()))
		}
	}
	return s.Serve(ctx, public, internal)
}

// mixable lists the strategies beside which items may be changed.
func mixable() []strategy.Strategy {
	return slices.DeleteFunc(slices.Clone(offered), func(s strategy.Strategy) bool { return !s.Mixable })
}

func joinClose(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }

func newLog(w io.Writer, level string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		panic(err) // the flag's enum has only levels
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: least}))
}
