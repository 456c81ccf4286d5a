package rig

import (
	"bufio"
	"net"
	"testing"
)

// TestAFrontLeadsNewConnections: those that are open stay at their server until they are severed.
func TestAFrontLeadsNewConnections(t *testing.T) {
	r, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	first, second := named(t, "first"), named(t, "second")
	front, err := r.Front(first)
	if err != nil {
		t.Fatal(err)
	}
	asks := func() func() string {
		conn, err := net.Dial("tcp", front.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		answers := bufio.NewScanner(conn)
		return func() string {
			if _, err := conn.Write([]byte("who?\n")); err != nil || !answers.Scan() {
				return "closed"
			}
			return answers.Text()
		}
	}
	check := func(what string, ask func() string, want string) {
		t.Helper()
		if got := ask(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	old := asks()
	check("the first connection", old, "first")
	front.LeadNew(second)
	check("a connection from before", old, "first")
	check("a new connection", asks(), "second")
	front.Lead(first)
	check("a connection that was severed", old, "closed")
	check("a connection after that", asks(), "first")
}

// named starts a server that answers each line with its name.
func named(t *testing.T, name string) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					_, _ = conn.Write([]byte(name + "\n"))
				}
			}()
		}
	}()
	return listener.Addr().String()
}
