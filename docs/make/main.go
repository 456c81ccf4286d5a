// Command make writes the generated parts of docs/mistakes, docs/is-it-mine.md, docs/measurements.md and
// docs/operate.md, as `make docs` does:
//
//	go run ./docs/make [-play=false] [CELL...]
//
// What is written by hand is left alone. Each chapter shows one schedule or one cell. The schedules of all
// strategies are played each time, which takes a minute, unless -play=false keeps what the chapters show. The
// results of the cells are kept in cells.json, and what loadtest says of them is made from there: a cell is run
// only if it is not kept yet, or is named, such as cached-read:page-view. With all, every cell is. The tables of
// measurements are made from bench/results, which scripts/measure.sh writes.
//
// The tests hold the pages to this: everything that follows from the code, and what a kept cell
// and a played schedule print, byte for byte; the verdict of each to what is declared. They do not
// run the cells: that the code still gives their verdicts and causes is held by the tests of
// cmd/loadtest.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"stocklock/internal/lab/catalog"
)

func main() {
	play := flag.Bool("play", true, "play the schedules of the pages again")
	flag.Parse()
	logging.Disable() // go-redis logs failed connections beside returning them
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *play, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "docs/make:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, play bool, anew []string) error {
	shop, err := catalog.Open(ctx, "")
	if err != nil {
		return err
	}
	defer shop.Close()
	measured, err := measuredPages("bench/results")
	if err != nil {
		return err
	}
	all := append(pages(languages(), shop.Strategies), measured...)
	for _, name := range anew {
		if name != "all" && !slices.ContainsFunc(all, func(p page) bool { return p.shows.cell == name }) {
			return fmt.Errorf("no page shows the cell %s", name)
		}
	}
	cells, err := results(ctx, shop, all, "docs/make/cells.json", anew)
	if err != nil {
		return err
	}
	played := map[string]string{}
	if play {
		if played, err = playAll(ctx, shop); err != nil {
			return err
		}
	}
	written := 0
	for _, p := range all {
		old, err := os.ReadFile("docs/" + p.path)
		if err != nil {
			return err
		}
		text := p.render(string(old), p.output(string(old), played, cells))
		if text == string(old) {
			continue
		}
		if err := os.WriteFile("docs/"+p.path, []byte(text), 0o644); err != nil {
			return err
		}
		fmt.Println("wrote docs/" + p.path)
		written++
	}
	fmt.Printf("%d of %d pages changed\n", written, len(all))
	return nil
}
