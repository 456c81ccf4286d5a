package main

import (
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/strategy/ladder"
)

var shownCommand = regexp.MustCompile("(?m)(?:`|^\\$ )loadtest ([^`\n#]+)")

// explainedCells are those of the commands of docs/mistakes. Each command of a chapter is read by the program as it
// stands, and each schedule has a strategy. docs/make and package explore play the schedules.
func explainedCells(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/mistakes/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("found %d chapters: %v", len(pages), err)
	}
	var cells []string
	for _, page := range pages {
		for _, m := range shownCommand.FindAllStringSubmatch(readPage(t, page), -1) {
			command, _, _ := strings.Cut(m[1], " --redis-server ") // it is elsewhere on each machine
			args := strings.Fields(command)
			if len(args) < 2 { // the name of a command, and no command
				continue
			}
			var c commands
			if _, _, err := c.parse(t.Context(), streams{io.Discard, io.Discard, args}); err != nil {
				t.Errorf("%s: loadtest %s: %v", page, m[1], err)
			}
			switch args[0] {
			case "explain":
				cells = append(cells, args[1])
			case "step":
				if _, err := ladder.ByName(args[1]); err != nil {
					t.Errorf("%s: loadtest %s: %v", page, m[1], err)
				}
				if _, err := schedule.Parse(strings.Join(c.Step.Schedule, " ")); err != nil {
					t.Errorf("%s: loadtest %s: %v", page, m[1], err)
				}
			}
		}
	}
	slices.Sort(cells)
	return slices.Compact(cells)
}

func TestTheProgramReadsTheCommandsOfTheMistakes(t *testing.T) {
	if cells := explainedCells(t); len(cells) < 30 {
		t.Errorf("the chapters explain %v", cells)
	}
}
