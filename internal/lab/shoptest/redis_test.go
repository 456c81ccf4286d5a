package shoptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// TestTheShopSellsOnEveryKindOfRedis starts a shop on each, from nothing but its URL.
func TestTheShopSellsOnEveryKindOfRedis(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		setUp func(t *testing.T) (url string, env map[string]string)
	}{
		{"a user with an access list", userRedis},
		{"TLS", tlsRedis},
		{"Cluster", clusterRedis},
		{"Sentinel", sentinelRedis},
	} {
		t.Run(test.name, func(t *testing.T) {
			url, env := test.setUp(t)
			dsn := testserver.Database(t)
			settings := map[string]string{"SHOP_MYSQL": dsn, "SHOP_REDIS": url}
			for name, value := range env {
				settings[name] = value
			}
			shop, err := processes.Shop(t.Context(), rig.ShopOptions{Name: "shop", Env: settings})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = shop.Stop() })
			store := stocktest.OpenAt(t, dsn)
			item := stocktest.Item(t, store, 2)
			for _, want := range []int{201, 201, 409} {
				if got := buy(t.Context(), shop, item, ""); got != want {
					t.Errorf("answered %d, want %d; the log: %s", got, want, shop.LogTail())
				}
			}
			if strings.Contains(shop.LogTail(), "geheim") {
				t.Errorf("a password was logged: %s", shop.LogTail())
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

func redis(t *testing.T, o testserver.RedisOptions) *testserver.Redis {
	t.Helper()
	server, err := processes.Redis(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Kill() })
	return server
}

func order(t *testing.T, server *testserver.Redis, args ...any) {
	t.Helper()
	if err := server.Client.Do(t.Context(), args...).Err; err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func userRedis(t *testing.T) (string, map[string]string) {
	server := redis(t, testserver.RedisOptions{})
	order(t, server, "ACL", "SETUSER", "shop", "on", ">geheim", "~stock:*", "~{stock:*", "&redislock:*", "+@all", "-@dangerous", "-@admin")
	order(t, server, "ACL", "SETUSER", "default", "off")
	return "redis://shop:geheim@" + server.Addr, nil
}

func clusterRedis(t *testing.T) (string, map[string]string) {
	masters, err := processes.RedisCluster(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, master := range masters {
			_ = master.Kill()
		}
	})
	return masters.URL(), nil
}

func sentinelRedis(t *testing.T) (string, map[string]string) {
	primary := redis(t, testserver.RedisOptions{})
	host, port, _ := net.SplitHostPort(primary.Addr)
	addr := freeAddr(t)
	_, sentinelPort, _ := net.SplitHostPort(addr)
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, "port %s\nbind 127.0.0.1\nsentinel monitor main %s %s 1\n", sentinelPort, host, port), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		program = "valkey-server"
	}
	sentinel := exec.Command(program, config, "--sentinel")
	if err := sentinel.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sentinel.Process.Kill()
		_ = sentinel.Wait()
	})
	return "redis://" + addr + "?master_name=main", nil // the shop waits for it
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// tlsRedis has a certificate that the shop trusts because its environment says so.
func tlsRedis(t *testing.T) (string, map[string]string) {
	cert, key := certificate(t)
	secure := freeAddr(t)
	_, port, _ := net.SplitHostPort(secure)
	redis(t, testserver.RedisOptions{Args: []string{
		"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no"}})
	return "rediss://" + secure, map[string]string{"SSL_CERT_FILE": cert}
}

// certificate writes a self-signed one for 127.0.0.1.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", private)
}
