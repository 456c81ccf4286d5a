package shoptest

import (
	"net/http"
	"strings"
	"testing"

	"stocklock/internal/lab/rig"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// tlsMySQL refuses whoever comes over TCP without TLS.
func tlsMySQL(t *testing.T) (server *testserver.MySQL, certFile string) {
	t.Helper()
	cert, key := certificate(t)
	server, err := processes.MySQL(t.Context(), "--ssl-cert="+cert, "--ssl-key="+key, "--require-secure-transport=ON")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Kill() })
	return server, cert
}

func TestTheShopSellsFromMySQLOverTLS(t *testing.T) {
	server, cert := tlsMySQL(t)
	shop, err := processes.Shop(t.Context(), rig.ShopOptions{Name: "shop", Env: map[string]string{
		"SHOP_MYSQL": server.DSN() + "?tls=true", "SHOP_REDIS": "redis://" + testserver.RedisAddr(t), "SSL_CERT_FILE": cert,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Stop() })
	store := stocktest.OpenAt(t, server.DSN()+"?tls=skip-verify")
	item := stocktest.Item(t, store, 1)
	for _, want := range []int{201, 409} {
		if got := buy(t.Context(), shop, item, ""); got != want {
			t.Errorf("answered %d, want %d; the log: %s", got, want, shop.LogTail())
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestServersThatCannotBeTrustedAreOneLineAndExitCode1(t *testing.T) {
	server, _ := tlsMySQL(t)
	another, _ := certificate(t)
	goodRedis := "redis://" + testserver.RedisAddr(t)
	strangeRedis, _ := tlsRedis(t)
	for _, test := range []struct{ name, mysql, redis, where, says string }{
		{"MySQL signed by another authority", server.DSN() + "?tls=true", goodRedis, "mysql at " + server.Addr, "signed by unknown authority"},
		{"MySQL without TLS", server.DSN(), goodRedis, "mysql at " + server.Addr, "Error "}, // in the server's words
		{"Redis signed by another authority", testserver.Database(t), strangeRedis, "redis at " + strings.TrimPrefix(strangeRedis, "rediss://"), "signed by unknown authority"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			env := []string{"SSL_CERT_FILE=" + another, "SHOP_MYSQL=" + test.mysql, "SHOP_REDIS=" + test.redis}
			code, stderr := command(t, env, "--addr=127.0.0.1:0", "--startup-timeout=4s")
			var plain []string // what is not the log
			for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
				if !strings.HasPrefix(line, "{") {
					plain = append(plain, line)
				}
			}
			if code != 1 || len(plain) != 1 || !strings.Contains(plain[0], test.where) || !strings.Contains(plain[0], test.says) {
				t.Errorf("exit code %d, said %q, want 1 and one line with %q and %q", code, stderr, test.where, test.says)
			}
			password, _, _ := strings.Cut(strings.TrimPrefix(test.mysql, "stocklock:"), "@")
			if strings.Contains(stderr, password) {
				t.Errorf("the password was printed: %s", stderr)
			}
		})
	}
}
