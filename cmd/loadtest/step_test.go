package main

import (
	"bytes"
	"strings"
	"testing"

	"stocklock/internal/testserver"
)

func TestSchedulesThatCannotBeAreOneLine(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"step", "none", "D.select"}, `there is no customer "D": want A to C`},
		{[]string{"step", "none", "A.select sleep"}, `"sleep" is neither a step, such as A.set, nor an event`},
		{[]string{"step", "none", "pause"}, "pause hits one customer: want pause:A"},
		{[]string{"step", "none", "--customers", "1"}, "--customers is 1: want 2 or 3"},
		{[]string{"step", "none", "A.select C.select", "--customers", "2"}, "the schedule needs 3 customers, and --customers is 2"},
		{[]string{"explore", "none", "--events", "sleep"}, `--events: no event "sleep": want some of wait`},
		{[]string{"explore", "none", "--customers", "4"}, "--customers is 4: want 2 to 3"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), tt.args, &stdout, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), tt.want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d, %q, want %d and one line with %q", tt.args, code, stderr.String(), exitUsage, tt.want)
		}
	}
}

// TestAnOrderThatCannotBe: what a schedule asks for is known only when it is played.
func TestAnOrderThatCannotBe(t *testing.T) {
	testserver.NeedsServers(t)
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"step", "none", "A.select", "A.release"}, &stdout, &stderr)
	if want := "loadtest: A.release cannot be here: A's next step is A.update\n"; code != exitUsage || stderr.String() != want {
		t.Errorf("exit code %d, %q, want %d and %q", code, stderr.String(), exitUsage, want)
	}
}
