package rig_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/redisconn"
	"stocklock/internal/testserver"
)

func newRig(t *testing.T) *rig.Rig {
	t.Helper()
	testserver.NeedsServers(t)
	r, err := rig.New("")
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

func startRedis(t *testing.T, r *rig.Rig, o testserver.RedisOptions) *testserver.Redis {
	t.Helper()
	server, err := r.Redis(t.Context(), o)
	if err != nil {
		t.Fatalf("Redis: %v", err)
	}
	return server
}

func connect(t *testing.T, addr string) redisconn.Client {
	t.Helper()
	client, err := redisconn.Open("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestReplicaIsPromotedWithWhatItHas(t *testing.T) {
	r := newRig(t)
	primary := startRedis(t, r, testserver.RedisOptions{})
	proxy, err := r.Proxy(primary.Addr)
	if err != nil {
		t.Fatalf("Proxy: %v", err)
	}
	replica := startRedis(t, r, testserver.RedisOptions{ReplicaOf: &testserver.Redis{Addr: proxy.Addr}})
	client := connect(t, primary.Addr)
	if err := client.Do(t.Context(), "SET", "before", 1).Err; err != nil {
		t.Fatalf("SET: %v", err)
	}
	if n, err := client.Do(t.Context(), "WAIT", 1, 5000).Int64(); n != 1 || err != nil {
		t.Fatalf("WAIT = %d, %v, want the one replica", n, err)
	}
	if err := proxy.Cut(); err != nil {
		t.Fatalf("Cut: %v", err)
	}
	if err := client.Do(t.Context(), "SET", "after", 1).Err; err != nil {
		t.Fatalf("SET: %v", err)
	}
	if err := primary.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if err := replica.Promote(t.Context()); err != nil {
		t.Fatalf("Promote: %v", err)
	}
	promoted := connect(t, replica.Addr)
	if n, err := promoted.Do(t.Context(), "EXISTS", "before", "after").Int64(); n != 1 || err != nil {
		t.Errorf("the promoted replica has %d of the two keys, %v, want only the replicated one", n, err)
	}
	if err := promoted.Do(t.Context(), "SET", "k", 1).Err; err != nil {
		t.Errorf("the promoted replica takes no writes: %v", err)
	}
}

func TestCutSilencesLiveConnectionsBothWaysAndHealEndsIt(t *testing.T) {
	r := newRig(t)
	server := startRedis(t, r, testserver.RedisOptions{})
	proxy, err := r.Proxy(server.Addr)
	if err != nil {
		t.Fatalf("Proxy: %v", err)
	}
	through, direct := connect(t, proxy.Addr), connect(t, server.Addr)
	messages, err := through.Subscribe(t.Context(), "news")
	if err != nil {
		t.Fatalf("SUBSCRIBE: %v", err)
	}
	if err := through.Do(t.Context(), "SET", "k", "before").Err; err != nil {
		t.Fatalf("SET: %v", err)
	}
	if err := proxy.Cut(); err != nil {
		t.Fatalf("Cut: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := through.Do(short, "SET", "k", "cut").Err; !os.IsTimeout(err) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("SET through a cut = %v, want silence", err)
	}
	if got := direct.Do(t.Context(), "GET", "k").Value; got != "before" {
		t.Errorf("k = %v, want %q: the cut let a command through", got, "before")
	}
	if n, err := direct.Do(t.Context(), "PUBLISH", "news", "x").Int64(); n != 1 || err != nil {
		t.Fatalf("PUBLISH = %d, %v: the server must still count the subscriber", n, err)
	}
	select {
	case m := <-messages:
		t.Errorf("the cut let a message through: %v", m)
	case <-time.After(200 * time.Millisecond):
	}
	proxy.Heal()
	for deadline := time.Now().Add(5 * time.Second); ; {
		if err = through.Do(t.Context(), "SET", "k", "healed").Err; err == nil || time.Now().After(deadline) {
			break
		}
	}
	if got := direct.Do(t.Context(), "GET", "k").Value; err != nil || got != "healed" {
		t.Errorf("after Heal: %v, k = %v", err, got)
	}
}

func TestLead(t *testing.T) {
	r := newRig(t)
	one, two := startRedis(t, r, testserver.RedisOptions{}), startRedis(t, r, testserver.RedisOptions{})
	proxy, err := r.Proxy(one.Addr)
	if err != nil {
		t.Fatalf("Proxy: %v", err)
	}
	client := connect(t, proxy.Addr)
	if err := client.Do(t.Context(), "PING").Err; err != nil {
		t.Fatal(err)
	}
	if err := two.Client.Do(t.Context(), "SET", "who", "two").Err; err != nil {
		t.Fatal(err)
	}
	if err := proxy.Lead(two.Addr); err != nil {
		t.Fatalf("Lead: %v", err)
	}
	var who any
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline) && who == nil; {
		who = client.Do(t.Context(), "GET", "who").Value
	}
	if who != "two" {
		t.Errorf("after Lead the proxy reaches %v, want two", who)
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
		"SHOP_MYSQL": db.DSN(), "SHOP_REDIS": startRedis(t, r, testserver.RedisOptions{}).URL(),
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

// TestPanicked: Go ends a process by a panic that nobody recovers, and by errors that nobody can.
func TestPanicked(t *testing.T) {
	for log, want := range map[string]string{
		"":                                    "",
		"{\"msg\":\"ready\"}\n":               "",
		"panic: one\n\ngoroutine 7\n":         "panic: one",
		`{"error":"panic: two\ngoroutine 7"}`: "panic: two",
		"panic: one\nfatal error: concurrent map writes\n\ngoroutine 7": "fatal error: concurrent map writes",
	} {
		if got := rig.Panicked(log); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}

func TestShopThatCannotStartSaysWhy(t *testing.T) {
	env := map[string]string{"SHOP_MYSQL": "shop:secret@tcp(127.0.0.1:3306)/stocklock", "SHOP_STRATEGY": "hope"}
	_, err := newRig(t).Shop(t.Context(), rig.ShopOptions{Name: "one", Env: env})
	if err == nil || !strings.Contains(err.Error(), "hope") {
		t.Errorf("Shop with a strategy that does not exist = %v, want the shop's own words", err)
	}
}
