package testserver

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"
)

// TestGaleraHoldsWhatANodeApplies: its reader sees the row of before, and its writer waits and overwrites.
func TestGaleraHoldsWhatANodeApplies(t *testing.T) {
	if err := HasGalera(); err != nil {
		t.Skip(err)
	}
	g := Start(t)
	c, err := g.Galera(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	db := make([]*sql.DB, 3)
	for i := range c {
		if db[i], err = sql.Open("mysql", c[i].ShopDSN()); err != nil {
			t.Fatal(err)
		}
		defer db[i].Close()
	}
	exec := func(i int, s string) {
		t.Helper()
		if _, err := db[i].Exec(s); err != nil {
			t.Fatalf("node %d: %s: %v", i+1, s, err)
		}
	}
	read := func(i int) (v int) {
		t.Helper()
		if err := db[i].QueryRow("SELECT stock FROM s WHERE id = 1").Scan(&v); err != nil {
			return -1 // a node that joins has no table yet
		}
		return v
	}
	exec(0, "CREATE TABLE s (id INT PRIMARY KEY, stock INT)")
	exec(0, "INSERT INTO s VALUES (1, 30)")
	Await(t, "the row on node 2", func() bool { return read(1) == 30 })
	release, err := c[1].HoldApplying(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(0, "UPDATE s SET stock = 29 WHERE id = 1")
	Await(t, "the row on node 3", func() bool { return read(2) == 29 })
	if got := read(1); got != 30 {
		t.Errorf("node 2 reads %d while it applies nothing, want 30", got)
	}
	done := make(chan error, 1)
	go func() {
		_, err := db[1].Exec("UPDATE s SET stock = 28 WHERE id = 1")
		done <- err
	}()
	Await(t, "the write at node 2 to wait", func() bool {
		time.Sleep(150 * time.Millisecond) // MariaDB keeps this table from one question to the next that comes sooner
		waits, err := c[1].Value(t.Context(), "(SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT')"+
			" + (SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Waiting for certification')")
		select {
		case err := <-done:
			t.Fatalf("a write at node 2 did not wait: %v", err)
		default:
		}
		return err == nil && waits == "1"
	})
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the write at node 2: %v", err)
	}
	Await(t, "28 everywhere", func() bool { return read(0) == 28 && read(1) == 28 && read(2) == 28 })
}

// TestANodeOutOfSyncIsDescribed, without a cluster: a server alone is no member of one either.
func TestANodeOutOfSyncIsDescribed(t *testing.T) {
	NeedsServers(t)
	server, err := sharedMySQL()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err = server.AwaitMembers(ctx, 3)
	if err == nil || !strings.Contains(err.Error(), "not one of 3 nodes in sync: wsrep_") || strings.Contains(err.Error(), "%!") {
		t.Errorf("a server alone is a member of three: %v", err)
	}
}
