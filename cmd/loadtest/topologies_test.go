package main

import (
	"bytes"
	"strings"
	"testing"

	"stocklock/internal/testserver"
)

// TestTopologies: each property and the fact of the topology decide in both directions. `run --topology all`
// runs all strategies.
func TestTopologies(t *testing.T) {
	testserver.NeedsServers(t)
	const telling = "reentrant,redis-async,fenced,conditional"
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"run", "--topology", "all", "--strategies", telling}, &out, &errs); code != exitExpected {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
}

func TestTopologyMistakes(t *testing.T) {
	for flags, want := range map[string]string{
		"--topology pair":                    "want one of single, async",
		"--topology async --cells none:late": "choose with --strategies",
		"--topology async --strategies lock": "no strategy",
		"--topology async --redis redis://x": "starts all servers itself",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"run"}, strings.Fields(flags)...), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("run %s: exit code %d, want %d\n%s", flags, code, exitUsage, errs.String())
		}
	}
}
