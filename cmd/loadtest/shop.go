package main

import (
	"context"
	"errors"
	"fmt"

	"stocklock/internal/lab/catalog"
)

// shopSettings say which shop is started, and asked for its strategies.
type shopSettings struct {
	ShopBinary string `env:"LOADTEST_SHOP_BINARY" placeholder:"FILE" help:"The shop to start, built with the tag lab and strategies of its own. Without it the one of this checkout, or the program shop beside this one."`
}

// catalog asks a shop that can be started in the lab for its strategies. The caller closes the
// catalog after the last use of its program.
func (o shopSettings) catalog(ctx context.Context, s streams) (*catalog.Catalog, error) {
	c, err := o.ask(ctx, s)
	if err == nil && !c.ForLab() {
		err = errors.Join(usage("--shop-binary (LOADTEST_SHOP_BINARY): %s was built without the lab: build it with go build -tags lab ./cmd/shop", c.Program), c.Close())
	}
	return c, err
}

// ask asks any shop for its strategies.
func (o shopSettings) ask(ctx context.Context, s streams) (*catalog.Catalog, error) {
	if o.ShopBinary == "" && isTerminal(s.err) {
		fmt.Fprint(s.err, "building the shop …")
		defer fmt.Fprint(s.err, "\r\x1b[2K")
	}
	c, err := catalog.Open(ctx, o.ShopBinary)
	if err != nil && o.ShopBinary != "" && ctx.Err() == nil {
		err = usage("--shop-binary (LOADTEST_SHOP_BINARY): %w", err)
	}
	return c, err
}
