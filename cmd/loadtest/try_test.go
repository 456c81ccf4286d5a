package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/testserver"
)

const examples = "../../examples"

// tryOf calls the command, and returns its exit code and all that it said.
func tryOf(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"try"}, args...), &out, &errs)
	return code, out.String() + errs.String()
}

// TestTryInit: the file that is written is a description, and one that is there stays.
func TestTryInit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "service.yaml")
	if code, said := tryOf(t, "--init", path); code != exitExpected || !strings.Contains(said, "is written") {
		t.Errorf("%d %s", code, said)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := tryOf(t, "--init", path); code != exitUsage || !strings.Contains(said, "is there already") {
		t.Errorf("%d %s", code, said)
	}
	if content, _ := os.ReadFile(path); string(content) != "mine" {
		t.Errorf("the file was overwritten: %s", content)
	}
}

// TestTryMistakes: one line, and exit code 2.
func TestTryMistakes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for says, args := range map[string][]string{
		"--init":                 {filepath.Join(dir, "none.yaml")},
		"unknown field":          {file("unknown.yaml", "start:\n  comand: [x]\n")},
		"no part \"everything\"": {file("part.yaml", ""), "--only", "everything"},
		"--allow-host":           {file("host.yaml", "url: http://192.0.2.1\nbuy: {path: /}\nstock:\n  left_request: {path: /, value: n}\n  orders_request: {path: /, value: n}\n  set_request: {path: /}\n")},
		"--out: ":                {file("html.yaml", ""), "--out", file("html", "") + "/x.html"},
		"begins with /, of ":     {file("path.yaml", "url: http://127.0.0.1:1\nbuy: {path: 'http://192.0.2.1/'}\n")},
	} {
		code, said := tryOf(t, args...)
		if code != exitUsage || !strings.Contains(said, says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%q: exit code %d, %q: want one line with %q", args, code, said, says)
		}
	}
}

// TestTriedIsServed: what is no result of a try is refused before anything starts.
func TestTriedIsServed(t *testing.T) {
	needsShop(t)
	path := filepath.Join(t.TempDir(), "tried.json")
	if err := os.WriteFile(path, []byte(`{"version": 9}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"serve", "--tried", path}, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "--tried: "+path+" is no result of loadtest try --out") {
		t.Errorf("exit code %d: %s", code, &errs)
	}
}

// TestTryNothingCanBeSaid of a service that does not run.
func TestTryNothingCanBeSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "service.yaml")
	text := "url: http://127.0.0.1:9\nbuy: {path: /}\nstock:\n  left_request: {path: /, value: n}\n  orders_request: {path: /, value: n}\n  set_request: {path: /}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := tryOf(t, path); code != exitFailed || !strings.Contains(said, "does not answer") {
		t.Errorf("%d %s", code, said)
	}
}

// TestTryWhatStartingShows: what is wrong with a description, and is seen only on real servers, has its line,
// too.
func TestTryWhatStartingShows(t *testing.T) {
	t.Parallel()
	testserver.NeedsServers(t)
	description, err := os.ReadFile(examples + "/python/conditional.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ from, to, says string }{
		{"tables_file: ../tables.sql", "tables: CREATE TABEL items", "service.yaml:14: the tables cannot be made: Error 1064"},
		{"[python3, shop.py]", "[no-such-program]", "service.yaml:4: the service cannot be started"},
	} {
		path := filepath.Join(t.TempDir(), "service.yaml")
		text := strings.Replace(string(description), tt.from, tt.to, 1)
		text = strings.Replace(text, "tables_file: ../tables.sql", "tables: DO 1", 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, said := tryOf(t, path); code != exitUsage || !strings.Contains(said, tt.says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q: want one line with %q", tt.to, code, said, tt.says)
		}
	}
}

// TestASearchThatIsCutShort is held only of three customers, and only where a run decided.
func TestASearchThatIsCutShort(t *testing.T) {
	for b, heldOfThree := range map[string]verdict.Kind{"sold_out": verdict.Held, "500": verdict.Invalid} {
		found, err := explore.Explore(t.Context(), func(_ context.Context, choose func() explore.Chooser) (schedule.Record, error) {
			_, err := choose()(explore.Next{Options: []explore.Option{{Choice: schedule.Choice{Customer: 'A', Step: "x"}}, {Choice: schedule.Choice{Customer: 'B', Step: "x"}}}})
			return schedule.Record{Wire: true, Customers: 2, Outcome: schedule.Outcome{Verdict: verdict.Held, Answers: map[string]string{"A": "sold", "B": b}}}, err
		}, explore.Search{Limit: 1, Unpruned: true}, nil)
		if err != nil || !found.Limited() {
			t.Fatalf("%+v, %v", found, err)
		}
		two, _ := withoutFinding(found, 2, "", "")
		if three, why := withoutFinding(found, 3, "", ""); two != verdict.Invalid || three != heldOfThree || !strings.Contains(why, "since time was up") {
			t.Errorf("%s: of two %s, of three %s: %s", b, two, three, why)
		}
	}
}

// TestTryExamples: the broken ways are found by contention and by exploring, with their cause and in their own
// words, and the mended way holds.
func TestTryExamples(t *testing.T) {
	testserver.NeedsServers(t)
	for _, shop := range []struct{ name, locked, step, cause, next string }{
		{"python", "lease", "A.set wait B.set B.select", "the lease ended while its holder worked", "B.set"},
		{"node", "lease", "A.set wait B.set B.select", "the lease ended while its holder worked", "B.set"},
		{"java", "watchdog", "A.eval A.select pause:A B.eval B.select", "the lease ended while its holder's process was stopped", "B.eval"},
	} {
		t.Run(shop.name, func(t *testing.T) {
			t.Parallel()
			needs(t, shop.name)
			for _, tt := range []struct {
				way  string
				code int
				says []string
			}{
				{"read-then-write", exitSurprised, []string{"contention: oversold", "nothing kept the second customer out", "--step 'A.select B.select'", "SELECT stock FROM items WHERE id =", "docs/mistakes/holds.md#conditional"}},
				{"conditional", exitExpected, []string{"contention: held", "explore:    held", "kill -9 of a process: 2 places, 0 bad", "cut before the answer: 3 places, 0 bad"}},
			} {
				html := filepath.Join(t.TempDir(), "tried.html")
				args := []string{fmt.Sprintf("%s/%s/%s.yaml", examples, shop.name, tt.way), "--for", "1m", "--out", html}
				if shop.name != "python" && tt.code == exitSurprised { // of faults, nothing is asked of these
					args = append(args, "--only", "contention,explore")
				}
				code, said := tryOf(t, args...)
				if page := browsertest.Unpacked(t, html); !strings.Contains(page, "INSERT INTO orders") || tt.code == exitSurprised && !strings.Contains(page, `"cause":"no-lock"`) {
					t.Errorf("%s: the page lacks the story, or the cause: %s", tt.way, page)
				}
				if code != tt.code {
					t.Errorf("%s: exit code %d, want %d", tt.way, code, tt.code)
				}
				for _, words := range tt.says {
					if !strings.Contains(said, words) {
						t.Errorf("%s: nothing says %q:\n%s", tt.way, words, said)
					}
				}
			}
			path := fmt.Sprintf("%s/%s/%s.yaml", examples, shop.name, shop.locked)
			if code, said := tryOf(t, path, "--step", shop.step); code != exitSurprised || !strings.Contains(said, shop.cause) {
				t.Errorf("%s: exit code %d:\n%s", shop.locked, code, said)
			}
			if code, said := tryOf(t, path, "--step", "B.update"); code != exitUsage || !strings.Contains(said, "B's next step is "+shop.next) {
				t.Errorf("a schedule that cannot be: exit code %d:\n%s", code, said)
			}
		})
	}
}

// TestTheNodeShopOutlivesAClient who leaves in the middle of a body.
func TestTheNodeShopOutlivesAClient(t *testing.T) {
	t.Parallel()
	needs(t, "node")
	port, err := testserver.Start(t).FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	ask := func(request string) (answer []byte, err error) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		fmt.Fprint(conn, request)
		err = conn.(*net.TCPConn).CloseWrite()
		answer, _ = io.ReadAll(conn) // until the shop has noticed
		return answer, err
	}
	ready := func(context.Context) error {
		answer, err := ask("GET / HTTP/1.1\r\nHost: shop\r\n\r\n")
		if err == nil && !bytes.Contains(answer, []byte("ready")) {
			err = fmt.Errorf("answered with %q", answer)
		}
		return err
	}
	shop := &testserver.Process{Program: testserver.Program{Name: "the shop", Args: []string{"node", "shop.js"}, Env: []string{"PORT=" + strconv.Itoa(port)},
		Dir: t.TempDir(), Cwd: examples + "/node", Ready: ready}}
	if err := testserver.Start(t).Launch(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	if _, err := ask("POST /items/1/orders HTTP/1.1\r\nHost: shop\r\nContent-Length: 99\r\n\r\n{"); err != nil {
		t.Errorf("half a body: %v", err)
	}
	if err := ready(t.Context()); err != nil {
		t.Errorf("after half a body: %v", err)
	}
}

// needs skips the test of an example whose program or packages are missing.
func needs(t *testing.T, shop string) {
	t.Helper()
	of := map[string]struct {
		program string
		check   []string // ends well where the packages are there
		install string
	}{
		"python": {"python3", []string{"-c", "import pymysql, redis"}, "examples/install.sh"},
		"node":   {"node", []string{"-e", "require('mysql2'); require('ioredis')"}, "examples/install.sh"},
		"java":   {"java", nil, "examples/install.sh java"},
	}[shop]
	path, err := exec.LookPath(of.program)
	if err != nil {
		t.Skipf("%s is not installed", of.program)
	}
	if of.check == nil {
		if _, err := os.Stat(examples + "/java/target/shop.jar"); err != nil {
			t.Skipf("the shop is not built: run %s", of.install)
		}
		return
	}
	check := exec.Command(path, of.check...)
	check.Dir = filepath.Join(examples, shop)
	if out, err := check.CombinedOutput(); err != nil {
		t.Skipf("the packages of the shop are missing: run %s: %s", of.install, bytes.TrimSpace(out))
	}
}
