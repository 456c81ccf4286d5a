package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// shopRatio compares the shop under one strategy with the shop under another one. Each slice has
// one number per repetition.
type shopRatio struct {
	Strategy  string
	Against   string
	Shops     int
	PerSecond []float64 // sales per second under Strategy
	Sales     []float64 // PerSecond, divided by that under Against
	P99       []float64 // the p99 latency under Strategy, divided by that under Against
}

// sell runs the load test under both strategies of every ratio.
func (p plan) sell(ctx context.Context, stderr io.Writer) ([]shopRatio, error) {
	ratios := []shopRatio{
		{Strategy: "reentrant", Against: "for-update", Shops: 3},
		{Strategy: "reentrant", Against: "mutex", Shops: 1},
		// The upper bound for any lock around the same section.
		{Strategy: "mutex", Against: "for-update", Shops: 1},
	}
	for repetition := range p.repeat {
		for i := range ratios {
			r := &ratios[i]
			fmt.Fprintf(stderr, "%d/%d  shop %s\n", repetition+1, p.repeat, r.Strategy+" and "+r.Against)
			cells, err := loadtest(ctx, p.loadtest, r.Strategy+","+r.Against, r.Shops)
			if err != nil {
				return nil, err
			}
			mine, theirs := cells[r.Strategy], cells[r.Against]
			r.PerSecond = append(r.PerSecond, mine.SalesPerSecond)
			r.Sales = append(r.Sales, mine.SalesPerSecond/theirs.SalesPerSecond)
			r.P99 = append(r.P99, mine.Latency.P99/theirs.Latency.P99)
		}
	}
	return ratios, nil
}

// sold is the load test's result of one strategy.
type sold struct {
	Strategy       string  `json:"strategy"`
	Verdict        string  `json:"verdict"`
	SalesPerSecond float64 `json:"sales_per_second"`
	Latency        struct {
		P99 float64 `json:"p99"`
	} `json:"latency_ms"`
}

func loadtest(ctx context.Context, program, strategies string, shops int) (map[string]sold, error) {
	dir, err := os.MkdirTemp("", "stocklock-bench-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "result.json")
	cmd := exec.CommandContext(ctx, program, "run", "--strategies", strategies, "--shops", strconv.Itoa(shops), "--json", out)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// On SIGTERM the load test stops the processes that it started.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	// The exit code is no failure by itself: it is nonzero when a mutex does not oversell, which is
	// correct in a single shop.
	runErr := cmd.Run()
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w:\n%s", cmd, cmp.Or(runErr, err), said.Bytes())
	}
	var result struct{ Cells []sold }
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("%s: %w", out, err)
	}
	cells := map[string]sold{}
	for _, c := range result.Cells {
		if c.Verdict != "held" || c.SalesPerSecond <= 0 {
			return nil, errors.New("the shop did not sell its stock: " + said.String())
		}
		cells[c.Strategy] = c
	}
	return cells, nil
}
