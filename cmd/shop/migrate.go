package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"stocklock/internal/stock"
)

type migrateCommand struct{}

// Run migrates the database at SHOP_MYSQL, once it is there.
func (*migrateCommand) Run(ctx context.Context, set *settings, stderr io.Writer) (err error) {
	if set.MySQL == "" {
		return errNoMySQL
	}
	store, err := stock.Open(set.MySQL)
	if err != nil {
		return usage("--mysql (SHOP_MYSQL): %w", err)
	}
	defer joinClose(&err, store)
	log := newLog(stderr, set.LogLevel)
	ctx, cancel := context.WithTimeoutCause(ctx, set.StartupTimeout, fmt.Errorf("gave up after %s", set.StartupTimeout))
	defer cancel()
	for {
		err := store.Ping(ctx)
		if err == nil {
			break
		}
		log.Warn("waiting for mysql", "address", store.Addr(), "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("mysql at %s: %w", store.Addr(), errors.Join(context.Cause(ctx), err))
		}
	}
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	log.Info("the schema is up to date")
	return nil
}
