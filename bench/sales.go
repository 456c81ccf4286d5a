package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/perf/benchfmt"

	"stocklock/bench/measure"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
)

// oursInShop is the strategy that sells under this repository's lock.
const oursInShop = "reentrant"

// sell runs the load test, in one shop also with a mutex: the upper bound for any lock around the same
// section.
func (p plan) sell(ctx context.Context, config []benchfmt.Config, stderr io.Writer) (results []*benchfmt.Result, err error) {
	for repetition := range p.Repeat {
		for _, run := range []struct {
			shops      int
			strategies string
		}{{3, oursInShop + ",for-update"}, {1, "mutex," + oursInShop + ",for-update"}} {
			fmt.Fprintf(stderr, "%d/%d  %d shops: %s\n", repetition+1, p.Repeat, run.shops, run.strategies)
			cells, err := loadtest(ctx, p.Loadtest, run.strategies, run.shops)
			if err != nil {
				return results, err
			}
			var same []*benchfmt.Result
			for _, c := range cells {
				s := measure.Sample{Operations: int(c.Sold), Values: []benchfmt.Value{
					{Value: c.SalesPerSecond, Unit: measure.Sales}, {Value: c.Latency.P99 / 1000, Unit: "p99-sec"}}}
				same = append(same, measure.NewResult(fmt.Sprintf("Sale/shops=%d", run.shops), c.Strategy, config, s))
			}
			measure.Relate(same, measure.Sales)
			results = append(results, same...)
		}
	}
	return results, nil
}

// loadtest returns what the load test found of each strategy.
func loadtest(ctx context.Context, program, strategies string, shops int) ([]trial.Result, error) {
	dir, err := os.MkdirTemp("", "stocklock-bench-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "result.json")
	cmd := exec.CommandContext(ctx, program, "run", strategies, "--shops", strconv.Itoa(shops), "--out", out)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// On SIGTERM the load test stops the processes that it started.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	// The exit code is no failure by itself: it is nonzero when a mutex does not oversell, which is
	// correct in a single shop.
	runErr := cmd.Run()
	result, err := report.Read(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w:\n%s", cmd, cmp.Or(runErr, err), strings.TrimSpace(said.String()))
	}
	for _, c := range result.Cells {
		if c.Verdict != verdict.Held || c.SalesPerSecond <= 0 {
			return nil, errors.New("the shop did not sell its stock: " + said.String())
		}
	}
	return result.Cells, nil
}
