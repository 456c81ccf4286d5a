// Command make writes the generated parts of the pages of the strategies and the scenarios, as
// `make docs` does:
//
//	go run ./docs/make [-show] [-schedules]
//
// The explanation on a page is written by hand, in the page itself, and left alone. The block of
// fields comes from the code. The cells of a page whose command is another one now are run again, with
// -show those of all pages, and what loadtest prints of them is put into the page.
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
	"stocklock/internal/lab/trial"
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

// write brings all pages under a folder up to date. What a command prints is the same on the pages of
// all languages.
func write(ctx context.Context, shop *catalog.Catalog, folder string, show bool) error {
	in, err := languages()
	if err != nil {
		return err
	}
	var all [][]page // by language
	for _, l := range in {
		all = append(all, l.pages(shop.Strategies))
	}
	written := 0
	for i := range all[0] {
		old, again := make([]string, len(in)), show
		for j := range in {
			content, err := os.ReadFile(folder + "/" + all[j][i].path)
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			old[j] = string(content)
			again = again || !strings.Contains(old[j], "$ "+all[j][i].command+"\n")
		}
		var printed string
		var cells []trial.Result
		if again = again && all[0][i].command != ""; again {
			fmt.Fprintln(os.Stderr, all[0][i].command)
			if printed, cells, err = shown(ctx, shop, all[0][i].pairs); err != nil {
				return fmt.Errorf("%s: %w", all[0][i].command, err)
			}
		}
		for j, l := range in {
			p, block := all[j][i], shownIn(old[j])
			if again {
				block = p.console(printed) + l.explained(cells)
			}
			text := p.render(old[j], block)
			if text == old[j] {
				continue
			}
			if err := os.WriteFile(folder+"/"+p.path, []byte(text), 0o644); err != nil {
				return err
			}
			fmt.Println("wrote", folder+"/"+p.path)
			written++
		}
	}
	fmt.Printf("%d of %d pages changed\n", written, len(in)*len(all[0]))
	return nil
}

// shown runs cells and returns what loadtest prints of them: of one its explanation, of several the
// report after the explanations.
func shown(ctx context.Context, shop *catalog.Catalog, pairs []matrix.Pair) (string, []trial.Result, error) {
	status := matrix.NewStatus(os.Stderr, false)
	defer status.Close()
	plan := matrix.Plan{Pairs: pairs, Shop: shop.Program, Seed: 1, Work: matrix.DefaultWork, Trace: true}
	r, err := matrix.Run(ctx, plan, status)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", nil, err
	}
	var out bytes.Buffer
	terminal := report.Terminal{Out: &out}
	if len(r.Cells) == 1 {
		terminal.Explain(r.Cells[0])
	} else {
		terminal.Drawings(r)
		terminal.Report(r)
	}
	if n := len(r.Surprises()); n > 0 {
		return "", nil, fmt.Errorf("%d surprises\n%s", n, out.String())
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n"), r.Cells, nil
}
