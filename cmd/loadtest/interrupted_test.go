package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/report"
	"stocklock/internal/strategy/ladder"
)

// TestInterruptedRunReportsWhatThereIs ends a run after its first cell.
func TestInterruptedRunReportsWhatThereIs(t *testing.T) {
	all := len(ladder.All())
	dir := t.TempDir()
	json, html := filepath.Join(dir, "out.json"), filepath.Join(dir, "out.html")
	cmd := exec.CommandContext(t.Context(), ownProgram(t), "run", "contention", "--stock", "20", "--out", json, "--out", html)
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() }).Stop()
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), fmt.Sprintf("1/%d ", all)) {
			cmd.Process.Signal(os.Interrupt)
		}
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
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
