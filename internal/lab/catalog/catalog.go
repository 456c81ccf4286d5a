// Package catalog asks a shop for its strategies. The lab has no other source of strategies. So a
// strategy of a pupil, or of another library, works by its name like those of this repository.
//
// # Decisions
//
// The lab asks the shop for its strategies. shop strategies --json prints what each strategy
// declares, what state it keeps for an item (as SQL and as keys), and what it needs. Nothing in the
// lab imports the ladder; arch_test.go checks this. The lab can therefore measure, explore and
// judge a pupil's strategy by its name, without a change. The price is that even a command that
// only lists strategies must build or find a shop.
package catalog

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

// Catalog is a shop program with its strategies.
type Catalog struct {
	Program    string              // the path of the program
	Given      string              // the path that Open was given
	Strategies []declared.Strategy // in the order in which the shop lists them
	Baskets    []declared.Strategy // those that sell several items in one sale, the ones that only do that first
	// Reservations are those that reserve. The ones that only do that come last.
	Reservations []declared.Strategy

	AsBuilt bool // the program is that of the checkout as it was built last

	rig *rig.Rig // has the folder that the program was built in, nil where it was given
}

// Open asks the shop program at a path for its strategies. For an empty path that is the shop of
// the checkout, which it builds, or the program shop beside this one. The caller closes the catalog
// after the last use of the program.
func Open(ctx context.Context, path string) (_ *Catalog, err error) {
	c := &Catalog{Given: path}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if path != "" {
		c.Program, err = rig.ShopAt(path)
	} else {
		c.Program, err = rig.ShopBeside()
	}
	if err == nil && c.Program == "" {
		err = c.build(ctx)
	}
	if err != nil {
		return nil, err
	}
	if !forLab(c.Program) {
		return nil, fmt.Errorf("%s was built without the lab: build it with go build -tags lab ./cmd/shop", c.Program)
	}
	return c, c.ask(ctx)
}

// Built asks the shop of the checkout for its strategies, as it was built last. It returns nil where
// none was built for the lab.
func Built(ctx context.Context) *Catalog {
	c := &Catalog{Program: rig.ShopBuilt(), AsBuilt: true}
	if c.Program == "" || !forLab(c.Program) || c.ask(ctx) != nil {
		return nil
	}
	return c
}

func (c *Catalog) ask(ctx context.Context) error {
	all, err := ask(ctx, c.Program)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: where nothing may be started in %s, give TMPDIR another folder", err, os.TempDir())
	}
	if err != nil {
		return fmt.Errorf("ask %s for its strategies: %w", c.Program, err)
	}
	for _, s := range all {
		switch {
		case s.OnlyBaskets:
			c.Baskets = append(c.Baskets, s)
		case !s.Special():
			c.Strategies = append(c.Strategies, s)
		}
		if s.Reservations != nil {
			c.Reservations = append(c.Reservations, s)
		}
	}
	for _, s := range c.Strategies {
		if s.Baskets != nil {
			c.Baskets = append(c.Baskets, s)
		}
	}
	return nil
}

func (c *Catalog) build(ctx context.Context) (err error) {
	if c.rig, err = rig.New(""); err != nil {
		return err
	}
	c.Program, err = c.rig.ShopBinary(ctx)
	return err
}

// forLab says whether a program can do what a shop does in the lab. Of a program that is not this
// module's shop that is not known before it is started.
func forLab(program string) bool {
	info, err := buildinfo.ReadFile(program)
	if err != nil || info.Path != "stocklock/cmd/shop" {
		return true
	}
	return slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), "lab")
	})
}

// Close removes the program if Open built it.
func (c *Catalog) Close() error {
	if c.rig == nil {
		return nil
	}
	return c.rig.Close()
}

func ask(ctx context.Context, program string) ([]declared.Strategy, error) {
	out, err := exec.CommandContext(ctx, program, "strategies", "--json").Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(exited.Stderr))
	} else if err != nil {
		return nil, err
	}
	var all []declared.Strategy
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("strategies --json: %w", err)
	}
	if len(all) == 0 {
		return nil, errors.New("it has none")
	}
	for _, s := range all {
		if s.Special() {
			continue
		}
		if _, err := scenario.ByName(s.Telling); err != nil {
			return nil, fmt.Errorf("the telling scenario of %s: %w", s.Name, err)
		}
	}
	return all, nil
}

// All are all strategies, the ones that only sell several items first, and the ones that only reserve last.
func (c *Catalog) All() []declared.Strategy {
	return slices.Concat(special(c.Baskets), c.Strategies, special(c.Reservations))
}

func special(among []declared.Strategy) []declared.Strategy {
	return slices.DeleteFunc(slices.Clone(among), func(s declared.Strategy) bool { return !s.Special() })
}

// Names lists the names of the strategies.
func (c *Catalog) Names() (names []string) {
	for _, s := range c.Strategies {
		names = append(names, s.Name)
	}
	return names
}

// ByName finds a strategy. The error lists the names that there are, or says that a way only sells several
// items, or only reserves.
func (c *Catalog) ByName(name string) (declared.Strategy, error) {
	if way, err := find(name, c.All()); err == nil && way.Special() {
		only := "only reserves: see loadtest list reservations"
		if way.OnlyBaskets {
			only = "only sells several items at once: see loadtest list baskets"
		}
		return declared.Strategy{}, fmt.Errorf("%s %s; want one of %s", name, only, strings.Join(c.Names(), ", "))
	}
	return find(name, c.Strategies)
}

// Under returns the strategies that a scenario can be a cell of, and how one of them is found by its name.
func (c *Catalog) Under(sc trial.Scenario) (all []declared.Strategy, byName func(string) (declared.Strategy, error)) {
	switch {
	case sc.OfBaskets():
		return c.Baskets, func(name string) (declared.Strategy, error) { return find(name, c.Baskets) }
	case sc.OfReservations():
		return c.Reservations, func(name string) (declared.Strategy, error) { return find(name, c.Reservations) }
	}
	return c.Strategies, c.ByName
}

// Any finds a strategy of any kind. The error lists the names that there are.
func (c *Catalog) Any(name string) (declared.Strategy, error) {
	return find(name, slices.Concat(c.Strategies, special(c.Baskets), special(c.Reservations))) // the names of the ladder first
}

func find(name string, among []declared.Strategy) (declared.Strategy, error) {
	return scenario.Named("strategy", name, among, func(s declared.Strategy) string { return s.Name })
}
