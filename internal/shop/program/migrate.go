package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"stocklock/internal/stock"
)

type migrateCommand struct {
	Up     migrateUpCommand     `cmd:"" default:"1" help:"Bring the schema up to date, and end. This is the default."`
	Status migrateStatusCommand `cmd:"" help:"Print the version of the schema: exit code 0 if it is what this program needs, 1 if not."`
}

type migrateUpCommand struct{}

// Run migrates the database at SHOP_MYSQL once it answers.
func (*migrateUpCommand) Run(ctx context.Context, set *settings, stderr io.Writer) (err error) {
	store, err := openStore(ctx, set, stderr)
	if err != nil {
		return err
	}
	defer joinClose(&err, store)
	log := newLog(stderr, set.LogLevel)
	if err := store.Migrate(ctx, log); err != nil {
		if advice := stock.Advice(err); advice != "" {
			err = fmt.Errorf("%w: %s", err, advice)
		}
		return err
	}
	log.Info("the schema is up to date")
	return nil
}

type migrateStatusCommand struct{}

// Run prints the schema's version.
func (*migrateStatusCommand) Run(ctx context.Context, set *settings, out *streams) (err error) {
	store, err := openStore(ctx, set, out.err)
	if err != nil {
		return err
	}
	defer joinClose(&err, store)
	is, needed, err := store.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out.out, "the schema is at version %d, this program needs %d\n", is, needed)
	if is < needed {
		return errors.New("migrations are pending: run shop migrate")
	}
	return nil
}

type eraseCommand struct {
	Subject string `arg:"" help:"The customer, as the gateway named it."`
}

// Run erases a customer. It needs the rights of the user that migrates.
func (e *eraseCommand) Run(ctx context.Context, set *settings, out *streams) (err error) {
	store, err := openStore(ctx, set, out.err)
	if err != nil {
		return err
	}
	defer joinClose(&err, store)
	erased, err := store.Erase(ctx, e.Subject)
	fmt.Fprintf(out.out, "erased the customer from %d orders\n", erased)
	return err
}

// openStore opens the store at SHOP_MYSQL and waits until it answers.
func openStore(ctx context.Context, set *settings, stderr io.Writer) (*stock.Store, error) {
	if err := set.readMySQL(); err != nil {
		return nil, err
	}
	store, err := stock.Open(set.MySQL)
	if err != nil {
		return nil, usage("--mysql (SHOP_MYSQL): %w", err)
	}
	log := newLog(stderr, set.LogLevel)
	ctx, cancel := context.WithTimeoutCause(ctx, set.StartupTimeout, fmt.Errorf("gave up after %s", set.StartupTimeout))
	defer cancel()
	for {
		err := store.Ping(ctx)
		if err == nil {
			return store, nil
		}
		log.Warn("waiting for mysql", "address", store.Addr(), "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			err := fmt.Errorf("mysql at %s: %w", store.Addr(), errors.Join(context.Cause(ctx), err))
			return nil, errors.Join(err, store.Close())
		}
	}
}
