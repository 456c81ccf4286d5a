package testserver_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stocklock/internal/testserver"
)

func startRedis(t *testing.T, g *testserver.Group, o testserver.RedisOptions) *testserver.Redis {
	t.Helper()
	server, err := g.Redis(t.Context(), o)
	if err != nil {
		t.Fatalf("Redis: %v", err)
	}
	return server
}

func TestRedisKilledForgetsAndRestartsAtItsAddress(t *testing.T) {
	server := startRedis(t, testserver.Start(t), testserver.RedisOptions{})
	if err := server.Client.Do(t.Context(), "SET", "k", "v").Err; err != nil {
		t.Fatalf("SET: %v", err)
	}
	if err := server.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if server.Alive() || server.Ready(t.Context()) == nil {
		t.Error("a killed server counts as alive")
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatalf("Restart: %v", err)
	}
	if got := server.Client.Do(t.Context(), "GET", "k"); got.Value != nil || got.Err != nil {
		t.Errorf("GET after kill and restart = %v, want nothing: it has no persistence", got)
	}
}

func TestPauseAndResume(t *testing.T) {
	server := startRedis(t, testserver.Start(t), testserver.RedisOptions{})
	if err := server.Pause(); err != nil {
		t.Fatalf("Pause: %v", err)
	}
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.PID())); err == nil && !strings.Contains(string(stat), ") T ") {
		t.Errorf("after Pause the process is in the state %q, want stopped", stat)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := server.Client.Do(short, "PING").Err; err == nil {
		t.Error("a paused server answered")
	}
	if err := server.Resume(); err != nil {
		t.Fatalf("Resume: %v", err)
	}
	if err := server.Client.Do(t.Context(), "PING").Err; err != nil {
		t.Errorf("PING after Resume: %v", err)
	}
}

// TestNothingIsLeft ends a process that has a rig with servers, one of them
// paused, in every way a process can end. MySQL, which takes long, is there where its end differs.
func TestNothingIsLeft(t *testing.T) {
	for _, how := range []string{"close", "return", "panic", "interrupt", "kill"} {
		t.Run(how, func(t *testing.T) {
			parent, said := startParent(t, how)
			dir, pids := said[0], said[1:]
			if len(pids) != 4+databases[how] {
				t.Fatalf("the parent said %q, want a folder and processes", said)
			}
			switch how {
			case "interrupt":
				parent.Process.Signal(os.Interrupt)
			case "kill":
				parent.Process.Kill()
			}
			parent.Wait()
			var left []string
			defer func() { t.Logf("left behind: %v", left) }()
			testserver.Await(t, "the end of all", func() bool { left = leftovers(dir, pids); return len(left) == 0 })
		})
	}
}

// TestKilledWhileItInstallsLeavesNothing kills the parent while a program works that is neither
// server nor shop.
func TestKilledWhileItInstallsLeavesNothing(t *testing.T) {
	cache := emptyCache(t)
	parent, said := startParent(t, "install")
	dir := said[0]
	installing := func() bool { return exec.Command("pgrep", "-f", "datadir="+dir).Run() == nil }
	testserver.Await(t, "the installation", installing)
	parent.Process.Kill()
	parent.Wait()
	testserver.Await(t, "the end of the installation", func() bool { return !installing() && len(leftovers(dir, nil)) == 0 })
	time.Sleep(300 * time.Millisecond)
	if left := leftovers(dir, nil); len(left) > 0 {
		t.Errorf("came back: %v", left)
	}
	if left := cached(t, cache); len(left) > 0 {
		t.Errorf("templates = %v, want none: it was killed before there was one", left)
	}
}

// startParent starts this binary as a parent of servers, and returns the words of its first line.
func startParent(t *testing.T, how string) (*exec.Cmd, []string) {
	t.Helper()
	testserver.NeedsServers(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TESTSERVER_TEST_PARENT="+how)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the parent said nothing")
	}
	return cmd, strings.Fields(lines.Text())
}

func leftovers(dir string, pids []string) (left []string) {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		left = append(left, dir)
	}
	for _, s := range pids {
		pid, _ := strconv.Atoi(s)
		if syscall.Kill(pid, 0) == nil {
			left = append(left, "process "+s)
		}
	}
	return left
}

// startFamily starts a process apart that has a worker, and returns the number of that.
func startFamily(g *testserver.Group) (p *testserver.Process, worker func() int) {
	folder, err := g.Folder("family")
	if err != nil {
		panic(err)
	}
	worker = func() (pid int) {
		said, _ := os.ReadFile(folder + "/worker")
		if of, worker, _ := strings.Cut(strings.TrimSpace(string(said)), " "); of == strconv.Itoa(p.PID()) {
			pid, _ = strconv.Atoi(worker)
		}
		return pid
	}
	p = &testserver.Process{Program: testserver.Program{
		Name: "a family", Args: []string{"/bin/sh", "-c", "sleep 1000 & echo $$ $! > worker; wait"}, Dir: folder, Apart: true,
		Ready: func(context.Context) error {
			if worker() == 0 {
				return errors.New("no worker")
			}
			return nil
		},
	}}
	if err := g.Launch(context.Background(), p); err != nil {
		panic(err)
	}
	return p, worker
}

// TestAProcessApart is stopped, killed and started again with its workers, and nobody else is.
func TestAProcessApart(t *testing.T) {
	g := testserver.Start(t)
	p, worker := startFamily(g)
	other, otherWorker := startFamily(g)
	state := func(pid int) string {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return "gone"
		}
		return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[0]
	}
	if state(os.Getpid()) == "gone" {
		t.Skip("there is no /proc")
	}
	const runs = "R S D"
	first := worker()
	for _, tt := range []struct {
		what string
		do   func() error
		want string // one of these states
	}{{"Pause", p.Pause, "T"}, {"Resume", p.Resume, runs}, {"Kill", p.Kill, "gone Z"}} {
		if err := tt.do(); err != nil {
			t.Fatalf("%s: %v", tt.what, err)
		}
		if got := state(first); !strings.Contains(tt.want, got) {
			t.Errorf("after %s the worker is in the state %s, want one of %s", tt.what, got, tt.want)
		}
	}
	if err := p.Restart(t.Context()); err != nil || !strings.Contains(runs, state(worker())) || worker() == first {
		t.Errorf("Restart: %v, the worker is in the state %s", err, state(worker()))
	}
	if !other.Alive() || !strings.Contains(runs, state(otherWorker())) {
		t.Error("another process was hit")
	}
}

// databases says how many MySQL servers a parent has that ends so.
var databases = map[string]int{"interrupt": 1, "kill": 1}

// parent is what TestNothingIsLeft starts.
func parent(how string) {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	r, err := testserver.New()
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if how == "install" {
		fmt.Println(r.Dir())
		r.MySQL(ctx)
		return
	}
	var pids []int
	for range 2 {
		server, err := r.Redis(ctx, testserver.RedisOptions{})
		if err != nil {
			panic(err)
		}
		pids = append(pids, server.PID())
		if len(pids) == 1 {
			if err := server.Pause(); err != nil {
				panic(err)
			}
		}
	}
	for range databases[how] {
		db, err := r.MySQL(ctx)
		if err != nil {
			panic(err)
		}
		pids = append(pids, db.PID())
	}
	family, worker := startFamily(r)
	fmt.Println(r.Dir(), strings.Trim(fmt.Sprint(pids), "[]"), family.PID(), worker())
	switch how {
	case "close":
		if err := r.Close(); err != nil {
			panic(err)
		}
	case "panic":
		panic("on purpose")
	case "interrupt":
		<-interrupted
		r.Close()
	case "kill":
		select {}
	}
}

func TestEachServerHasAnAddressOfItsOwn(t *testing.T) {
	r := testserver.Start(t)
	a, b := startRedis(t, r, testserver.RedisOptions{}), startRedis(t, r, testserver.RedisOptions{})
	for _, addr := range []string{a.Addr, b.Addr} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	if a.Addr == b.Addr {
		t.Errorf("both at %s", a.Addr)
	}
}

// TestAStartIsInterrupted: the error is the interruption, and not what the process lacked by then.
func TestAStartIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	err := testserver.Start(t).Launch(ctx, &testserver.Process{Program: testserver.Program{
		Name: "one that never is", Args: []string{"/bin/sleep", "1000"},
		Ready: func(context.Context) error {
			interrupt()
			return errors.New("not yet")
		},
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
