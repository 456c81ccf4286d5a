// Command make writes the generated parts of the pages of the strategies and the scenarios, as
// `make docs` does:
//
//	go run ./docs/make [-show] [-schedules]
//
// The explanation on a page is written by hand, in the page itself, and left alone. The block of
// fields comes from the code. With -show each page's cells are run again, and what loadtest prints
// of them is put into the page.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
)

func main() {
	show := flag.Bool("show", false, "run each page's command again and keep what it prints; takes minutes")
	schedules := flag.Bool("schedules", false, "play the schedules that are kept, and keep what was seen; takes half a minute")
	flag.Parse()
	logging.Disable() // go-redis logs failed connections beside returning them
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *show, *schedules); err != nil {
		fmt.Fprintln(os.Stderr, "docs/make:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, show, schedules bool) error {
	shop, err := catalog.Open(ctx, "")
	if err != nil {
		return err
	}
	defer shop.Close()
	if err := write(ctx, shop, "docs", show); err != nil || !schedules {
		return err
	}
	return writeSchedules(ctx, shop, "docs")
}

// write brings all pages under a folder up to date.
func write(ctx context.Context, shop *catalog.Catalog, folder string, show bool) error {
	written, all := 0, pages(shop.Strategies)
	for _, p := range all {
		file := folder + "/" + p.path
		old, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		printed := shownIn(string(old))
		if p.command != "" && (show || printed == "") {
			fmt.Fprintln(os.Stderr, p.command)
			if printed, err = shown(ctx, shop, p.pairs); err != nil {
				return fmt.Errorf("%s: %w", p.command, err)
			}
		}
		text := p.render(string(old), printed)
		if text == string(old) {
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", file)
		written++
	}
	fmt.Printf("%d of %d pages changed\n", written, len(all))
	return nil
}

// shown runs cells and returns what loadtest run prints of them.
func shown(ctx context.Context, shop *catalog.Catalog, pairs []matrix.Pair) (string, error) {
	status := matrix.NewStatus(os.Stderr, false)
	defer status.Close()
	plan := matrix.Plan{Pairs: pairs, Shop: shop.Program, Seed: 1, Work: matrix.DefaultWork, Trace: true}
	r, err := matrix.Run(ctx, plan, status)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	report.Terminal{Out: &out}.Report(r)
	if n := len(r.Surprises()); n > 0 {
		return "", fmt.Errorf("%d surprises\n%s", n, out.String())
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n"), nil
}
