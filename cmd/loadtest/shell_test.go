package main

import (
	"bytes"
	"strings"
	"testing"

	"stocklock/internal/testserver"
)

// TestTheShellReachesItsServers types two commands into the shell, and looks at what both clients answer.
func TestTheShellReachesItsServers(t *testing.T) {
	t.Parallel()
	testserver.NeedsServers(t)
	shell := ownProgram(t, "exercise", "--shell")
	shell.Env = append(shell.Environ(), "SHELL=/bin/sh", "TMPDIR="+t.TempDir())
	shell.Stdin = strings.NewReader("redis-cli SET stock:lily 1 PX 60000 NX\nmysql --execute 'SELECT 40 + 2' && redis-cli GET stock:lily\nfalse\n")
	var out, errs bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &errs
	if err := shell.Run(); err != nil {
		t.Errorf("the shell ended with %v: %s", err, errs.String())
	}
	if got := strings.Join(strings.Fields(out.String()), " "); got != "OK 40 + 2 42 1" {
		t.Errorf("the clients answer %q, %s", got, errs.String())
	}
}
