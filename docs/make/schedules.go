package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
)

const playedBegin = "<!-- played by `make docs-schedules`: do not edit -->\n"

// writeSchedules plays the schedules that are kept, and puts them into the pages of their
// strategies.
func writeSchedules(ctx context.Context, shop *catalog.Catalog, folder string) error {
	kept, err := schedule.KeptSchedules()
	if err != nil {
		return err
	}
	stage, err := stage.Open(ctx, shop, stage.Options{Lease: 300 * time.Millisecond, Slots: 1})
	if err != nil {
		return err
	}
	defer stage.Close()
	in, err := languages()
	if err != nil {
		return err
	}
	played := map[string][]schedule.Record{}
	for _, k := range kept {
		fmt.Fprintln(os.Stderr, "loadtest step", k.Strategy, k.Schedule)
		record, err := stage.PlaySchedule(ctx, k.Strategy, k.Schedule.Customers(), k.Schedule)
		if err != nil {
			return err
		}
		if record.Outcome.Cause != k.Cause {
			return fmt.Errorf("%s %s ended by %q, want %q", k.Strategy, k.Schedule, record.Outcome.Cause, k.Cause)
		}
		played[k.Strategy] = append(played[k.Strategy], record)
	}
	for strategy, records := range played {
		for _, l := range in {
			file := fmt.Sprintf("%s/strategies/%s%s", folder, strategy, l.file)
			old, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			var b strings.Builder
			b.WriteString(l.found + "\n")
			for _, r := range records {
				l.describe(&b, r)
			}
			if err := os.WriteFile(file, []byte(replaceBlock(l.withSchedules(string(old)), playedBegin, b.String())), 0o644); err != nil {
				return err
			}
			fmt.Println("wrote", file)
		}
	}
	return nil
}

// withSchedules is a page with a place for schedules, before what is expected.
func (l language) withSchedules(text string) string {
	if strings.Contains(text, playedBegin) {
		return text
	}
	before, after, _ := strings.Cut(text, "\n## "+l.expected+"\n")
	return before + "\n## " + l.shortest + "\n\n" + playedBegin + madeEnd + "\n## " + l.expected + "\n" + after
}

// describe draws a record.
func (l language) describe(b *strings.Builder, r schedule.Record) {
	fmt.Fprintf(b, "\n### %s\n\n", r.Outcome.Cause)
	if l.words != nil {
		fmt.Fprintf(b, "%s\n\n", l.sentence("cause."+string(r.Outcome.Cause), ""))
	}
	fmt.Fprintf(b, "```console\n$ loadtest step %s %s --draw\n", r.Strategy, r.Schedule)
	schedule.Draw(b, r, 0)
	fmt.Fprintf(b, "%s\n```\n", r.Sentence())
}
