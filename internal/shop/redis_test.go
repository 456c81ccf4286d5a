package shop

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"stocklock/internal/redislock"
	"stocklock/internal/stock"
)

func TestAServerHasOneVote(t *testing.T) {
	for _, test := range []struct {
		urls     []string
		accepted bool
	}{
		{[]string{"redis://a", "redis://b", "redis://c"}, true},
		{[]string{"redis://a:1", "redis://a:2", "redis://a:3"}, true},
		{[]string{"redis://s:26379?master_name=a", "redis://s:26379?master_name=b"}, true},
		{[]string{"redis://s:26379?master_name=a", "redis://s:26379?master_name=a"}, false},
		{[]string{"redis://a", "redis://b", "redis://a:6379/0"}, false},
		{[]string{"redis://:one@a/1", "rediss://:two@a/2"}, false},
	} {
		if err := CheckQuorum(test.urls); (err == nil) != test.accepted {
			t.Errorf("%s: %v", test.urls, err)
		}
	}
}

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

// TestHooksOfTheLockAreCalled, which the caller has set: the shop counts the same events.
func TestHooksOfTheLockAreCalled(t *testing.T) {
	var acquired atomic.Int64
	r := open(t, func(cfg *Config) {
		cfg.Deps.Hooks.Acquired = func(context.Context, redislock.Event) { acquired.Add(1) }
	})
	if got := r.buy(r.item(1)); got.status != http.StatusCreated || acquired.Load() != 1 {
		t.Errorf("%d %s, and the hook was called %d times", got.status, got.body, acquired.Load())
	}
}
