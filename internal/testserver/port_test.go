package testserver

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

const portEnv = "TESTSERVER_PORT_OF_ANOTHER"

// TestAPortBelongsToOneGroup: no other process is given it while nobody listens there, until the group is closed.
func TestAPortBelongsToOneGroup(t *testing.T) {
	if port := os.Getenv(portEnv); port != "" { // the other process
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reserve(n); err == nil {
			t.Errorf("port %d was given twice", n)
		}
		return
	}
	group, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	port, err := group.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	other.Env = append(os.Environ(), portEnv+"="+strconv.Itoa(port))
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	server, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatalf("its own server cannot listen: %v", err)
	}
	server.Close()
	if err := group.Close(); err != nil {
		t.Fatal(err)
	}
	for tries := 0; ; tries++ { // another program's test may have been given it
		mark, err := reserve(port)
		if err == nil {
			mark.Close()
			return
		}
		if tries == 10 {
			t.Fatalf("its group is closed, and nobody is given it: %v", err)
		}
		if group, err = New(); err == nil {
			port, err = group.FreePort()
		}
		if err = errors.Join(err, group.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
