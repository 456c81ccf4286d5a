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

	"stocklock/internal/shop"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

type serveCommand struct{}

// extension is what one build of this program adds to a shop, and the other has not: the lab, or
// traces.
type extension interface {
	StoreOptions() []stock.Option      // for the store
	Equip(deps *strategy.Deps) error   // changes what strategies are built on
	Log(log *slog.Logger) *slog.Logger // of the shop
	Attach(s *shop.Shop)
	Close() error // after the shop
}

// collected reports whether OpenTelemetry's own variables name a collector of traces.
func collected() bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

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

	chosen, err := strategy.Find(set.Strategy, offered)
	if err != nil {
		return usage("--strategy (SHOP_STRATEGY): %w", err)
	}
	more, err := set.labSettings.open(ctx, set.Name)
	if err != nil {
		return err
	}
	defer joinClose(&err, more)
	store, err := stock.Open(set.MySQL, append(more.StoreOptions(), stock.WithPoolSize(set.MySQLPool))...)
	if err != nil {
		return usage("--mysql (SHOP_MYSQL): %w", err)
	}
	defer joinClose(&err, store)
	deps := strategy.Deps{Store: store, Options: set.options()}
	client, err := set.lockSettings.open(log, &deps)
	if err != nil {
		return err
	}
	defer joinClose(&err, client)
	if err := more.Equip(&deps); err != nil {
		return err
	}
	staff := subject(set.StaffHeader)
	if set.StaffAddr == "" {
		staff = nil
	}
	s, err := shop.New(shop.Config{
		Name:            set.Name,
		Strategy:        chosen,
		Deps:            deps,
		Log:             more.Log(log),
		SchemaIsManaged: !set.Migrate,
		Subject:         subject(set.SubjectHeader),
		Anonymous:       set.Anonymous,
		KeyTTL:          set.KeyTTL,
		Limit:           set.Limit,
		CancelWithin:    set.CancelWithin,
		Staff:           staff,
		Reservations:    set.reservations(),
		MaxInFlight:     set.MaxInFlight,
		MaxConnections:  set.MaxConnections,
		StartupTimeout:  set.StartupTimeout,
		DrainDelay:      set.DrainDelay,
		DrainTimeout:    set.DrainTimeout,
	})
	if err != nil {
		return usageError{err}
	}
	more.Attach(s)
	var listeners [3]net.Listener
	for i, at := range []struct{ setting, addr string }{
		{"--addr (SHOP_ADDR)", set.Addr}, {"--staff-addr (SHOP_STAFF_ADDR)", set.StaffAddr}, {"--internal-addr (SHOP_INTERNAL_ADDR)", set.InternalAddr},
	} {
		if at.addr == "" {
			continue
		}
		if listeners[i], err = net.Listen("tcp", at.addr); err != nil {
			return fmt.Errorf("%s cannot be used: %w", at.setting, err) // the process ends, and the others with it
		}
	}
	return s.Serve(ctx, listeners[0], listeners[1], listeners[2])
}

func joinClose(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }

func newLog(w io.Writer, level string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		panic(err) // the flag's enum has only levels
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: least}))
}
