package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/report"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

// at calls a function at the first write of a text, and keeps what is written.
type at struct {
	text string
	call func()
	bytes.Buffer
}

func (a *at) Write(p []byte) (int, error) {
	if call := a.call; call != nil && bytes.Contains(p, []byte(a.text)) {
		a.call = nil
		call()
	}
	return a.Buffer.Write(p)
}

// TestWhatAnInterruptionLeavesOut: a file that could not be written is named, a result that was shown is not denied, and
// there is no ruling on some of the cells.
func TestWhatAnInterruptionLeavesOut(t *testing.T) {
	t.Parallel()
	needsShop(t)
	testserver.NeedsServers(t)
	for _, tt := range []struct {
		args, until string
		inTheWay    bool   // of the file
		says        string // last on standard error
		kept        bool   // the file
	}{
		{"run none optimistic --stock 5", "1/2 ", true, "loadtest: interrupted: cannot write ", false},
		{"run conditional:async-failover", "starting the servers of the topologies", false, "loadtest: interrupted, before there was a result\n", false},
		{"run locks-unsorted:crossed --draw", "locks-unsorted:crossed", false, "1/1 ", true},
		{"explore ack-first --judge", "1/", false, "loadtest: interrupted, before there was a result\n", false},
	} {
		file := filepath.Join(t.TempDir(), "out.json")
		ctx, cancel := context.WithCancel(t.Context())
		end := func() {
			if cancel(); tt.inTheWay {
				os.Mkdir(file, 0o755)
			}
		}
		out, errs := at{}, at{text: tt.until, call: end}
		if tt.kept { // the cell is shown
			out.text, out.call, errs.call = tt.until, end, nil
		}
		code := run(ctx, append(strings.Fields(tt.args), "--out", file), &out, &errs)
		cancel()
		lines := strings.SplitAfter(errs.String(), "\n")
		if said := strings.Join(lines[max(len(lines)-2, 0):], ""); code != exitInterrupted || !strings.HasPrefix(said, tt.says) {
			t.Errorf("loadtest %s: exit code %d, said %q", tt.args, code, said)
		}
		if info, err := os.Stat(file); (err == nil && !info.IsDir()) != tt.kept || tt.kept != strings.Contains(out.String(), tt.until) {
			t.Errorf("loadtest %s: the file: %v; shown:\n%s", tt.args, err, &out.Buffer)
		}
	}
}

// interrupt interrupts a program when it has said something on standard error.
func interrupt(t *testing.T, cmd *exec.Cmd, until string) {
	t.Helper()
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(3*time.Minute, func() { cmd.Process.Kill() }).Stop()
	said := false
	for lines := bufio.NewScanner(errs); !said && lines.Scan(); {
		said = strings.Contains(lines.Text(), until)
	}
	cmd.Process.Signal(os.Interrupt)
	go io.Copy(io.Discard, errs)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); !said || code != exitInterrupted {
		t.Errorf("%s: exit code %d, want %d; it has said %q: %t", cmd, code, exitInterrupted, until, said)
	}
}

// TestInterruptedRunReportsWhatThereIs ends a run after its first cell.
func TestInterruptedRunReportsWhatThereIs(t *testing.T) {
	t.Parallel()
	all := len(ladder.All())
	dir := t.TempDir()
	json, html := filepath.Join(dir, "out.json"), filepath.Join(dir, "out.html")
	cmd := ownProgram(t, "run", "contention", "--stock", "20", "--out", json, "--out", html)
	var out bytes.Buffer
	cmd.Stdout = &out
	interrupt(t, cmd, fmt.Sprintf("1/%d ", all))
	r, err := report.Read(json)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Cells) == 0 || len(r.Cells) == all {
		t.Errorf("interrupted %v, %d cells, want what there was", r.Interrupted, len(r.Cells))
	}
	if page := browsertest.Unpacked(t, html); !strings.Contains(page, `"interrupted":true`) || !strings.Contains(page, `"strategy":"none","scenario":"contention"`) {
		t.Error("the page does not say that it was interrupted, or does not show what there is")
	}
	if !strings.Contains(out.String(), "interrupted: cells are missing") {
		t.Errorf("the terminal says %q", out.String())
	}
}
