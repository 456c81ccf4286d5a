package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/schedule"
)

const (
	playedBegin   = "<!-- played by `make docs-schedules`: do not edit -->\n"
	playedHeading = "\n## Its shortest bad schedules\n\n"
)

// writeSchedules plays the schedules that are kept, and puts them into the pages of their
// strategies.
func writeSchedules(ctx context.Context, shop *catalog.Catalog, folder string) error {
	kept, err := schedule.KeptSchedules()
	if err != nil {
		return err
	}
	stage, err := schedule.OpenStage(ctx, shop, schedule.StageOptions{Lease: 300 * time.Millisecond, Lanes: 1})
	if err != nil {
		return err
	}
	defer stage.Close()
	blocks := map[string]*strings.Builder{}
	for _, k := range kept {
		fmt.Fprintln(os.Stderr, "loadtest step", k.Strategy, k.Schedule)
		record, err := stage.PlaySchedule(ctx, k.Strategy, k.Schedule.Customers(), k.Schedule)
		if err != nil {
			return err
		}
		b := blocks[k.Strategy]
		if b == nil {
			b = &strings.Builder{}
			b.WriteString("Found by `loadtest explore`; [what the columns and events mean](../schedules.md).\n")
			blocks[k.Strategy] = b
		}
		describe(b, record, stage)
	}
	for strategy, block := range blocks {
		file := fmt.Sprintf("%s/strategies/%s.md", folder, strategy)
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text := string(old)
		if !strings.Contains(text, playedBegin) {
			text = strings.TrimRight(text, "\n") + "\n" + playedHeading + playedBegin + madeEnd
		}
		if err := os.WriteFile(file, []byte(replaceBlock(text, playedBegin, block.String())), 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", file)
	}
	return nil
}

// describe draws a record, and folds its transcript up.
func describe(b *strings.Builder, r schedule.Record, stage *schedule.Stage) {
	fmt.Fprintf(b, "\n### %s\n\n```console\n$ loadtest step %s %s --draw\n", r.Outcome.Cause, r.Strategy, r.Listed)
	schedule.Draw(b, r, 0)
	fmt.Fprintf(b, "%s\n```\n\n<details><summary>As redis-cli and mysql</summary>\n\n```\n", r.Sentence())
	var transcript strings.Builder
	schedule.Transcript(&transcript, r, stage.Script)
	fmt.Fprintf(b, "%s\n```\n\n</details>\n", strings.TrimSpace(transcript.String()))
}
