package shop

import (
	"context"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"stocklock/internal/redislock"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// nowhere is a host and port at which nobody listens.
const nowhere = "127.0.0.1:1"

// FuzzSecrets: however broken a DSN or URL is, the error does not show the password.
func FuzzSecrets(f *testing.F) {
	f.Add("shop:", "@tcp(db:3306)/stocklock", "redis://:", "@cache:6379/0")
	f.Add("shop:", "/stocklock", "redis://shop:", "")
	f.Add("", "", "rediss://cache:6379/", "?master_name=main&password=")
	f.Add("mysql://shop:", "@db/stocklock", "redis://cache?cluster=true&addr=", "%zz")
	f.Add("a:b@tcp(", ")/x?tls=", "redis://x/", "/y")
	f.Fuzz(func(t *testing.T, beforeDSN, afterDSN, beforeURL, afterURL string) {
		const password = "g3h31m"
		if store, err := stock.Open(beforeDSN + password + afterDSN); err == nil {
			_ = store.Close()
		} else if strings.Contains(err.Error(), password) {
			t.Errorf("the error shows the password: %v", err)
		}
		for _, secret := range []string{password, url.QueryEscape("%" + password)} {
			if _, err := parseRedisURL(beforeURL + secret + afterURL); err == nil {
				continue // opening it would look the host up
			}
			if _, err := OpenRedis(beforeURL+secret+afterURL, RedisPoolSize); err == nil || strings.Contains(err.Error(), password) {
				t.Errorf("the error shows the password: %v", err)
			}
		}
	})
}

// TestHooksOfTheLockAreCalled, which the caller has set: the shop counts the same events. It does so without any.
func TestHooksOfTheLockAreCalled(t *testing.T) {
	locks, client := openLocks(t, "redis://"+nowhere)
	defer client.Close()
	called := map[string]int{}
	call := func(name string) func(context.Context, redislock.Event) {
		return func(context.Context, redislock.Event) { called[name]++ }
	}
	for times, own := range []redislock.Hooks{{}, {
		Acquired: call("acquired"), Renewed: call("renewed"), Lost: call("lost"), Released: call("released"),
		Evicts: func(string) { called["evicts"]++ }, ClockJumped: func(time.Duration) { called["jumped"]++ },
	}} {
		locks.Hooks = own
		deps, log := strategy.Deps{Locks: locks}, &logBuffer{}
		l := newLocks(&deps, slog.New(slog.NewJSONHandler(log, nil)))
		hooks, ctx := deps.Hooks, t.Context()
		for name, event := range map[string]struct {
			happen  func()
			counted prometheus.Counter
			says    string
		}{
			"acquired": {func() { hooks.Acquired(ctx, redislock.Event{From: redislock.Local}) }, l.handoffs.WithLabelValues("local"), ""},
			"renewed":  {func() { hooks.Renewed(ctx, redislock.Event{}) }, l.renewals, ""},
			"lost":     {func() { hooks.Lost(ctx, redislock.Event{}) }, l.losses, ""},
			"released": {func() { hooks.Released(ctx, redislock.Event{Err: redislock.ErrLost}) }, l.unreleased, ""},
			"evicts":   {func() { hooks.Evicts("allkeys-lru") }, nil, `"policy":"allkeys-lru"`},
			"jumped":   {func() { hooks.ClockJumped(1) }, l.jumps, `"by":"1ns"`},
		} {
			event.happen()
			counted := 1.0
			if event.counted != nil {
				counted = counterOf(t, event.counted)
			}
			if called[name] != times || counted != 1 || !strings.Contains(log.String(), event.says) {
				t.Errorf("%s was counted %v times, the hook of the caller was called %d times, want %d; the log has %s", name, counted, called[name], times, log)
			}
		}
		hooks.Released(ctx, redislock.Event{})
		if n := counterOf(t, l.unreleased); n != 1 || called["released"] != 2*times {
			t.Errorf("a release without an error: %v failures, and %d calls", n, called["released"])
		}
		_ = l.Close()
	}
}

func counterOf(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var got dto.Metric
	if err := c.Write(&got); err != nil {
		t.Fatal(err)
	}
	return got.Counter.GetValue()
}

// TestURLsOfRedis also has each with TLS, where every server but a single one is known by a name of its own.
func TestURLsOfRedis(t *testing.T) {
	for rest, want := range map[string]redis.UniversalOptions{
		"://u:p@a:1/2":                        {Addrs: []string{"a:1"}, DB: 2, Username: "u", Password: "p"},
		"://u:p@a:1?cluster=true&addr=b:2":    {Addrs: []string{"a:1", "b:2"}, IsClusterMode: true, Username: "u", Password: "p"},
		"://s:q@a:1/3?master_name=m&addr=b:2": {Addrs: []string{"a:1", "b:2"}, MasterName: "m", DB: 3, SentinelUsername: "s", SentinelPassword: "q"},
		"://s:q@a:1?master_name=m&username=u&password=p": {Addrs: []string{"a:1"}, MasterName: "m", SentinelUsername: "s", SentinelPassword: "q",
			Username: "u", Password: "p"},
	} {
		for scheme, tls := range map[string]bool{"redis": false, "rediss": true} {
			got, err := parseRedisURL(scheme + rest)
			if err != nil {
				t.Fatal(err)
			}
			if single := want.MasterName == "" && !want.IsClusterMode; (got.TLSConfig != nil) != tls || tls && (got.TLSConfig.ServerName == "a") != single {
				t.Errorf("%s%s: %+v", scheme, rest, got.TLSConfig)
			}
			if got.TLSConfig = nil; !reflect.DeepEqual(*got, want) {
				t.Errorf("%s%s: %+v, want %+v", scheme, rest, *got, want)
			}
		}
	}
}

// TestTheClientOfRedis repeats no command, and waits for none longer than its caller does.
func TestTheClientOfRedis(t *testing.T) {
	client, err := OpenRedis("redis://"+nowhere, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	o := client.(*redis.Client).Options()
	is := []any{o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled, o.PoolSize, o.PoolTimeout, o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaintNotificationsConfig.Mode}
	want := []any{0, 1, true, 7, redisPoolTimeout, redisDialTimeout, redisIOTimeout, redisIOTimeout, maintnotifications.ModeDisabled}
	if !reflect.DeepEqual(is, want) {
		t.Errorf("%v, want %v", is, want)
	}
	cluster, err := OpenRedis("redis://"+nowhere+"?cluster=true", 7)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	if o := cluster.(*redis.ClusterClient).Options(); o.PoolSize != 7 || !o.DisableRoutingPolicies {
		t.Errorf("of a Cluster: %+v", o)
	}
}
