package rig_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/rig"
)

func newRig(t *testing.T) *rig.Rig {
	t.Helper()
	r, err := rig.New()
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return r
}

func startRedis(t *testing.T, r *rig.Rig, o rig.RedisOptions) *rig.Redis {
	t.Helper()
	server, err := r.Redis(t.Context(), o)
	if err != nil {
		t.Fatalf("Redis: %v", err)
	}
	return server
}

func connect(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

func TestRedisKilledForgetsAndRestartsAtItsAddress(t *testing.T) {
	server := startRedis(t, newRig(t), rig.RedisOptions{})
	client := connect(t, server.Addr)
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	if err := server.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if server.Alive() || server.Check(t.Context()) == nil {
		t.Error("a killed server counts as alive")
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatalf("Restart: %v", err)
	}
	if err := client.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("GET after kill and restart = %v, want nothing: it has no persistence", err)
	}
}

func TestPauseAndResume(t *testing.T) {
	server := startRedis(t, newRig(t), rig.RedisOptions{})
	client := connect(t, server.Addr)
	if err := server.Pause(); err != nil {
		t.Fatalf("Pause: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := client.Ping(short).Err(); err == nil {
		t.Error("a paused server answered")
	}
	if err := server.Resume(); err != nil {
		t.Fatalf("Resume: %v", err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("PING after Resume: %v", err)
	}
}

func TestReplicaIsPromotedWithWhatItHas(t *testing.T) {
	r := newRig(t)
	primary := startRedis(t, r, rig.RedisOptions{})
	proxy, err := r.Proxy(primary.Addr)
	if err != nil {
		t.Fatalf("Proxy: %v", err)
	}
	replica := startRedis(t, r, rig.RedisOptions{ReplicaOf: &rig.Redis{Addr: proxy.Addr}})
	client := connect(t, primary.Addr)
	if err := client.Set(t.Context(), "before", 1, 0).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	if n, err := client.Wait(t.Context(), 1, 5*time.Second).Result(); n != 1 || err != nil {
		t.Fatalf("WAIT = %d, %v, want the one replica", n, err)
	}
	if err := proxy.Cut(); err != nil {
		t.Fatalf("Cut: %v", err)
	}
	if err := client.Set(t.Context(), "after", 1, 0).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	if err := primary.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if err := replica.Promote(t.Context()); err != nil {
		t.Fatalf("Promote: %v", err)
	}
	promoted := connect(t, replica.Addr)
	if n, err := promoted.Exists(t.Context(), "before", "after").Result(); n != 1 || err != nil {
		t.Errorf("the promoted replica has %d of the two keys, %v, want only the replicated one", n, err)
	}
	if err := promoted.Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Errorf("the promoted replica takes no writes: %v", err)
	}
}

func TestCutSilencesLiveConnectionsBothWaysAndHealEndsIt(t *testing.T) {
	r := newRig(t)
	server := startRedis(t, r, rig.RedisOptions{})
	proxy, err := r.Proxy(server.Addr)
	if err != nil {
		t.Fatalf("Proxy: %v", err)
	}
	through, direct := connect(t, proxy.Addr), connect(t, server.Addr)
	subscription := through.Subscribe(t.Context(), "news")
	defer subscription.Close()
	if _, err := subscription.Receive(t.Context()); err != nil {
		t.Fatalf("SUBSCRIBE: %v", err)
	}
	if err := through.Set(t.Context(), "k", "before", 0).Err(); err != nil {
		t.Fatalf("SET: %v", err)
	}
	if err := proxy.Cut(); err != nil {
		t.Fatalf("Cut: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := through.Set(short, "k", "cut", 0).Err(); !os.IsTimeout(err) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("SET through a cut = %v, want silence", err)
	}
	if got := direct.Get(t.Context(), "k").Val(); got != "before" {
		t.Errorf("k = %q, want %q: the cut let a command through", got, "before")
	}
	if n, err := direct.Publish(t.Context(), "news", "x").Result(); n != 1 || err != nil {
		t.Fatalf("PUBLISH = %d, %v: the server must still count the subscriber", n, err)
	}
	if m, err := subscription.ReceiveTimeout(t.Context(), 200*time.Millisecond); err == nil {
		t.Errorf("the cut let a message through: %v", m)
	}
	proxy.Heal()
	for deadline := time.Now().Add(5 * time.Second); ; {
		if err = through.Set(t.Context(), "k", "healed", 0).Err(); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if got := direct.Get(t.Context(), "k").Val(); err != nil || got != "healed" {
		t.Errorf("after Heal: %v, k = %q", err, got)
	}
}

func TestDelayAndLead(t *testing.T) {
	r := newRig(t)
	one, two := startRedis(t, r, rig.RedisOptions{}), startRedis(t, r, rig.RedisOptions{})
	proxy, err := r.Proxy(one.Addr)
	if err != nil {
		t.Fatalf("Proxy: %v", err)
	}
	client := connect(t, proxy.Addr)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := proxy.Delay(20 * time.Millisecond); err != nil {
		t.Fatalf("Delay: %v", err)
	}
	start := time.Now()
	client.Ping(t.Context())
	if took := time.Since(start); took < 40*time.Millisecond {
		t.Errorf("a round trip with 20 ms each way took %s", took)
	}
	proxy.Heal()
	if err := connect(t, two.Addr).Set(t.Context(), "who", "two", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := proxy.Lead(two.Addr); err != nil {
		t.Fatalf("Lead: %v", err)
	}
	var who string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline) && who == ""; {
		who = client.Get(t.Context(), "who").Val()
	}
	if who != "two" {
		t.Errorf("after Lead the proxy reaches %q, want two", who)
	}
}

func TestMissingProgramSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := exec.LookPath("/usr/sbin/redis-server"); err == nil {
		t.Fatal("this test needs redis-server not to be in /usr/sbin")
	}
	_, err := newRig(t).Redis(t.Context(), rig.RedisOptions{})
	if !errors.Is(err, rig.ErrMissing) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("Redis without a redis-server = %v, want what to install", err)
	}
}

// TestNothingIsLeft ends a process that has a rig with servers, one of them
// paused, in every way a process can end.
func TestNothingIsLeft(t *testing.T) {
	for _, how := range []string{"close", "return", "panic", "interrupt", "kill"} {
		t.Run(how, func(t *testing.T) {
			parent, said := startParent(t, how)
			dir, pids := said[0], said[1:]
			if len(pids) != 3 {
				t.Fatalf("the parent said %q, want a folder and three processes", said)
			}
			switch how {
			case "interrupt":
				parent.Process.Signal(os.Interrupt)
			case "kill":
				parent.Process.Kill()
			}
			parent.Wait()
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				left := leftovers(dir, pids)
				if len(left) == 0 {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("left behind: %v", left)
				}
			}
		})
	}
}

// TestKilledWhileItInstallsLeavesNothing kills the parent while a program works that is neither server nor shop.
func TestKilledWhileItInstallsLeavesNothing(t *testing.T) {
	parent, said := startParent(t, "install")
	dir := said[0]
	installing := func() bool { return exec.Command("pgrep", "-f", "datadir="+dir).Run() == nil }
	await(t, "the installation", installing)
	parent.Process.Kill()
	parent.Wait()
	await(t, "the end of the installation", func() bool { return !installing() && len(leftovers(dir, nil)) == 0 })
	time.Sleep(300 * time.Millisecond)
	if left := leftovers(dir, nil); len(left) > 0 {
		t.Errorf("came back: %v", left)
	}
}

// startParent starts this binary as a parent of servers, and returns the words of its first line.
func startParent(t *testing.T, how string) (*exec.Cmd, []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RIG_TEST_PARENT="+how)
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

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
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

// parent is what TestNothingIsLeft starts.
func parent(how string) {
	interrupted := make(chan os.Signal, 1)
	notify(interrupted)
	r, err := rig.New()
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
		server, err := r.Redis(ctx, rig.RedisOptions{})
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
	db, err := r.MySQL(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Dir(), pids[0], pids[1], db.PID())
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

// TestShop builds and starts the real shop.
func TestShop(t *testing.T) {
	r := newRig(t)
	db, err := r.MySQL(t.Context())
	if err != nil {
		t.Fatalf("MySQL: %v", err)
	}
	shop, err := r.Shop(t.Context(), rig.ShopOptions{Name: "one", Env: map[string]string{
		"SHOP_MYSQL": db.DSN(), "SHOP_REDIS": startRedis(t, r, rig.RedisOptions{}).URL(),
	}})
	if err != nil {
		t.Fatalf("Shop: %v", err)
	}
	if err := shop.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if err := rig.Ready(t.Context(), shop.URL); err == nil {
		t.Error("a killed shop is ready")
	}
	if err := shop.Restart(t.Context()); err != nil {
		t.Fatalf("Restart: %v", err)
	}
	if err := shop.Stop(); err != nil || shop.Alive() {
		t.Errorf("Stop: %v, alive: %v", err, shop.Alive())
	}
}

func TestShopThatCannotStartSaysWhy(t *testing.T) {
	env := map[string]string{"SHOP_MYSQL": "shop:secret@tcp(127.0.0.1:3306)/stocklock", "SHOP_STRATEGY": "hope"}
	_, err := newRig(t).Shop(t.Context(), rig.ShopOptions{Name: "one", Env: env})
	if err == nil || !strings.Contains(err.Error(), "hope") {
		t.Errorf("Shop with a strategy that does not exist = %v, want the shop's own words", err)
	}
}

func TestEachServerHasAnAddressOfItsOwn(t *testing.T) {
	r := newRig(t)
	a, b := startRedis(t, r, rig.RedisOptions{}), startRedis(t, r, rig.RedisOptions{})
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
