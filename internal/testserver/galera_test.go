package testserver

import (
	"database/sql"
	"testing"
	"time"
)

func TestGaleraHoldsWhatANodeApplies(t *testing.T) {
	if err := HasGalera(); err != nil {
		t.Skip(err)
	}
	g := Start(t)
	began := time.Now()
	c, err := g.Galera(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(began))
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
			t.Logf("node %d: %v", i+1, err)
			return -1
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
	t.Log("node 1 has", read(0))
	Await(t, "the row on node 3", func() bool { return read(2) == 29 })
	if got := read(1); got != 30 {
		t.Errorf("node 2 reads %d while it applies nothing, want 30", got)
	}
	done := make(chan error, 1)
	go func() {
		_, err := db[1].Exec("UPDATE s SET stock = 28 WHERE id = 1")
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a write at node 2 did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	t.Log("the write at node 2:", <-done)
	Await(t, "28 everywhere", func() bool { return read(0) == 28 && read(1) == 28 && read(2) == 28 })
}
