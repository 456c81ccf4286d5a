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

// shopRatio compares the shop under one strategy with the same under another. Each repetition has one number.
type shopRatio struct {
	Strategy  string
	Against   string
	Shops     int
	PerSecond []float64 // sales under the strategy
	Sales     []float64 // sales a second, as a ratio
	P99       []float64 // likewise
}

// sell has the load test sell the same stock both ways.
func (p plan) sell(ctx context.Context, stderr io.Writer) ([]shopRatio, error) {
	ratios := []shopRatio{
		{Strategy: "reentrant", Against: "for-update", Shops: 3},
		{Strategy: "reentrant", Against: "mutex", Shops: 1},
		// The most that any lock around the same section can do.
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

// sold is what the load test says of one strategy.
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
	// It ends what it started when it is asked to.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	// Its exit code also says whether a mutex oversold, as it is expected to: in a single shop it does not.
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
