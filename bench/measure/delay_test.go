package measure

import (
	"io"
	"net"
	"testing"
	"time"
)

// TestDelayedRoundTrip sends bytes to an echo server through the proxy. None may return early.
func TestDelayedRoundTrip(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	const roundTrip = 20 * time.Millisecond
	proxy, err := delayed(echo.Addr().String(), roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	conn, err := net.Dial("tcp", proxy.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, said := range []string{"first", "second"} {
		begun := time.Now()
		if _, err := conn.Write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		heard := make([]byte, len(said))
		if _, err := io.ReadFull(conn, heard); err != nil || string(heard) != said {
			t.Fatalf("heard %q, %v; want %q", heard, err, said)
		}
		if took := time.Since(begun); took < roundTrip {
			t.Errorf("%s: the round trip took %s, want at least %s", said, took, roundTrip)
		}
	}
}
