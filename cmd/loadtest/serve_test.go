package main

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/lab/live"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// TestServeLeavesNothing ends the page while a cell runs, with Ctrl-C and with kill -9. Neither
// leaves a process; Ctrl-C leaves no file either.
func TestServeLeavesNothing(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			cmd := ownProgram(t, "serve", "--addr", "127.0.0.1:0", "--keep", "")
			cmd.Env = append(cmd.Env, "TMPDIR="+folder)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			home, token, ok := strings.Cut(strings.TrimSpace(line), "/#token=")
			if !ok {
				t.Fatalf("it prints %q, want a link with a token", line)
			}
			ask := func(method, path, body string) string {
				r, err := http.NewRequestWithContext(t.Context(), method, home+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+token)
				r.Header.Set("Content-Type", "application/json")
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				var text bytes.Buffer
				if _, err := text.ReadFrom(answer.Body); err != nil {
					t.Fatal(err)
				}
				return text.String()
			}
			ask("POST", "/api/runs", `{"cells":[{"strategy":"set-ex-nx","scenario":"pause","seed":1},{"strategy":"none","scenario":"pause","seed":1}]}`)
			for giveUp := time.Now().Add(2 * time.Minute); !strings.Contains(ask("GET", "/api/runs/1", ""), `"state":"ended"`); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(giveUp) {
					t.Fatalf("the first cell has not ended: %s", ask("GET", "/api/runs/1", ""))
				}
			}
			if again, want := ask("GET", "/api/runs/1", ""), `"again":"loadtest run set-ex-nx:pause --seed 1 --shop-binary `+os.Getenv("LOADTEST_SHOP_BINARY"); !strings.Contains(again, want) {
				t.Errorf("the page does not say %s", want)
			}
			if len(processesOf(t, folder)) < 5 {
				t.Fatal("the servers and shops are not found: the test looks in another place")
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			for giveUp := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				processes := processesOf(t, folder)
				files, err := filepath.Glob(filepath.Join(folder, "*"))
				if err != nil {
					t.Fatal(err)
				}
				if len(processes) == 0 && (signal == syscall.SIGKILL || len(files) == 0) {
					return
				}
				if time.Now().After(giveUp) {
					t.Fatalf("processes %q and files %q are left", processes, files)
				}
			}
		})
	}
}

// processesOf are the processes whose command or environment names a folder.
func processesOf(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		command, _ := os.ReadFile(path) // it may have ended meanwhile
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		if bytes.Contains(command, []byte(folder)) || bytes.Contains(environment, []byte("TMPDIR="+folder)) {
			found = append(found, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

// TestADemoThatWasStopped says of its report that cells are missing, and writes none of no cells. What it says to type is
// quoted.
func TestADemoThatWasStopped(t *testing.T) {
	var said bytes.Buffer
	c := &serveCommand{Demo: filepath.Join(t.TempDir(), "the results")}
	o, err := c.withDemo(live.Options{Shop: catalogtest.Shop(t)}, streams{out: &said, err: &said})
	if err != nil {
		t.Fatal(err)
	}
	o.FirstDone(nil, report.Environment{Time: "2026-11-29T05:00:00Z", Shops: 3, Testbeds: 1})
	files, _ := filepath.Glob(filepath.Join(c.Demo, "*"))
	if len(files) > 0 || !strings.Contains(said.String(), "No cell") {
		t.Errorf("of no cell there are %q: %s", files, &said)
	}
	cells := []trial.Result{{Strategy: "none", Scenario: trial.Contention, Verdict: verdict.Oversold, Expected: verdict.Oversold, Oversold: 1, Sold: 1, Requests: 1},
		{Strategy: "locks-unsorted", Scenario: "crossed", Group: trial.Baskets, Verdict: verdict.Left, Expected: verdict.Left, Left: 1, Requests: 2}}
	o.FirstDone(cells, report.Environment{Time: "2026-11-29T05:00:00Z", Shops: 3, Testbeds: 1})
	r, err := report.Read(filepath.Join(c.Demo, "result.json"))
	if err != nil || len(r.Cells) != len(cells) || !r.Interrupted || !strings.Contains(said.String(), "interrupted") || !strings.Contains(said.String(), "--from '") {
		t.Errorf("%d cells, interrupted %v, %v: %s", len(r.Cells), r.Interrupted, err, &said)
	}
	for _, c := range cells {
		if !slices.ContainsFunc(r.Strategies, func(s declared.Strategy) bool { return s.Name == c.Strategy && s.Doc != "" }) {
			t.Errorf("the result does not say what %s is", c.Strategy)
		}
	}
}

// TestPhonesNeedAnAddress: a page that listens on loopback alone is out of their reach.
func TestPhonesNeedAnAddress(t *testing.T) {
	for _, tt := range []struct {
		at, host string
		want     bool
	}{{"127.0.0.1:8080", "192.168.1.20", true}, {"127.0.0.1:8080", "localhost", false}, {"0.0.0.0:8080", "192.168.1.20", false}} {
		addr, err := net.ResolveTCPAddr("tcp", tt.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := unreached(addr, tt.host); got != tt.want {
			t.Errorf("%s and %s: %t, want %t", tt.at, tt.host, got, tt.want)
		}
	}
}
