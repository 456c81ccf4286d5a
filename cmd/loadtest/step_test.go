package main

import (
	"bytes"
	"strings"
	"testing"
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
