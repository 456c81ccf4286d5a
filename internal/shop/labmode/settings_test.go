package labmode

import (
	"net"
	"strings"
	"testing"
)

// FuzzLabAddress: whatever the address is, a lab listens only where nobody else can reach it,
// unless that was asked for.
func FuzzLabAddress(f *testing.F) {
	for _, addr := range []string{"127.0.0.1:8080", ":8080", "localhost:0", "[::1]:80", "0.0.0.0:80", "[::ffff:127.0.0.1]:80", "127.1:80", "", "example.com:80", "[::1%eth0]:80", "::1:80"} {
		f.Add(addr)
	}
	f.Fuzz(func(t *testing.T, addr string) {
		if (Settings{Lab: true}).Check(addr) != nil {
			return
		}
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatalf("accepted the address %q: %v", addr, err)
		}
		host, _, _ = strings.Cut(host, "%")
		if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
			t.Errorf("a lab may listen on %q", addr)
		}
	})
}
