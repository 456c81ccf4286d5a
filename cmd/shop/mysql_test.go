package main

import (
	"net/http"
	"strings"
	"testing"

	"stocklock/internal/rig"
	"stocklock/internal/rig/rigtest"
	"stocklock/internal/stock"
)

// tlsMySQL refuses whoever comes over TCP without TLS.
func tlsMySQL(t *testing.T) (server *rig.MySQL, certFile string) {
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
		"SHOP_MYSQL": server.DSN() + "?tls=true", "SHOP_REDIS": "redis://" + rigtest.Redis(t), "SSL_CERT_FILE": cert,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.Stop() })
	store, err := stock.Open(server.DSN() + "?tls=skip-verify")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	item, err := store.CreateItem(t.Context(), "book", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{201, 409} {
		if got := buy(t.Context(), shop, item, ""); got != want {
			t.Errorf("answered %d, want %d; the log: %s", got, want, shop.LogTail())
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestMySQLThatCannotBeTrustedIsOneLineAndExitCode1(t *testing.T) {
	server, _ := tlsMySQL(t)
	another, _ := certificate(t)
	for _, test := range []struct{ name, how, says string }{
		{"signed by another authority", "?tls=true", "signed by unknown authority"},
		{"without TLS", "", "Error "}, // in the words of the server,
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("SSL_CERT_FILE", another)
			t.Setenv("SHOP_MYSQL", server.DSN()+test.how)
			t.Setenv("SHOP_REDIS", "redis://"+rigtest.Redis(t))
			code, _, stderr := command(t.Context(), "--addr=127.0.0.1:0", "--startup-timeout=1s")
			var plain []string // what is not the log
			for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
				if !strings.HasPrefix(line, "{") {
					plain = append(plain, line)
				}
			}
			if code != 1 || len(plain) != 1 || !strings.Contains(plain[0], "mysql at "+server.Addr) || !strings.Contains(plain[0], test.says) {
				t.Errorf("exit code %d, said %q, want 1 and one line with %q", code, stderr, test.says)
			}
			password, _, _ := strings.Cut(strings.TrimPrefix(server.DSN(), "stocklock:"), "@")
			if strings.Contains(stderr, password) {
				t.Errorf("the password was printed: %s", stderr)
			}
		})
	}
}
