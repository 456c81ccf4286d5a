package testserver

import (
	"database/sql"
	"os"
	"testing"
	"time"
)

// TestSemiSyncWaits: nobody sees a commit that the replica has not received. Killed then, the primary has
// promised nothing, and the promoted replica takes the shop's writes.
func TestSemiSyncWaits(t *testing.T) {
	g := Start(t)
	p, err := g.MySQLPair(t.Context(), PairOptions{SemiSync: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	exec := func(db *sql.DB, s string) {
		t.Helper()
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	open := func(m *MySQL) *sql.DB {
		db, err := sql.Open("mysql", m.ShopDSN())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	primary, replica := open(p.Primary), open(p.Replica)
	exec(primary, "CREATE TABLE s (id INT PRIMARY KEY)")
	exec(primary, "INSERT INTO s VALUES (1)")
	if err := p.Replica.AwaitApplied(t.Context()); err != nil {
		t.Fatal(err)
	}
	count := func(db *sql.DB) (n int) {
		if err := db.QueryRow("SELECT COUNT(*) FROM s").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := count(replica); got != 1 {
		t.Errorf("the replica has %d rows, want 1", got)
	}
	if _, err := replica.Exec("INSERT INTO s VALUES (9)"); err == nil {
		t.Error("the replica took a write of the shop")
	}
	if err := p.Replica.Pause(); err != nil {
		t.Fatal(err)
	}
	const commits = 3
	done := make(chan error, commits)
	for i := range commits {
		go func() {
			_, err := primary.Exec("INSERT INTO s VALUES (?)", 2+i)
			done <- err
		}()
	}
	Await(t, "commits that wait", func() bool {
		n, err := p.Primary.WaitingCommits(t.Context())
		return err == nil && n == commits
	})
	if got := count(primary); got != 1 {
		t.Errorf("others see %d rows while the commit waits, want 1", got)
	}
	if err := p.Primary.Kill(); err != nil {
		t.Fatal(err)
	}
	for range commits {
		if err := <-done; err == nil {
			t.Error("a commit was answered as done")
		}
	}
	if err := p.Replica.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := p.Replica.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(replica, "INSERT INTO s VALUES (10)")
}

// TestReplicaThatDoesNotApply: it has received and not applied.
func TestReplicaThatDoesNotApply(t *testing.T) {
	g := Start(t)
	p, err := g.MySQLPair(t.Context(), PairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Replica.StopApplying(t.Context()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", p.Primary.ShopDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE s (id INT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	Await(t, "the GTID at the replica", func() bool {
		r, err := p.Replica.Replication(t.Context())
		return err == nil && r.Received != "" && r.Received != r.Applied && !r.Applying && r.Receiving
	})
	if err := p.Replica.StartApplying(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Replica.AwaitApplied(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestAPairThatIsRenewedAgain has its data, although its replica could not follow before.
func TestAPairThatIsRenewedAgain(t *testing.T) {
	g := Start(t)
	p, err := g.MySQLPair(t.Context(), PairOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Primary.Kill(); err != nil {
		t.Fatal(err)
	}
	promoted := p.Replica
	if err := promoted.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Renew(t.Context(), "no address"); err == nil {
		t.Error("a replica follows no address")
	}
	if err := p.Renew(t.Context(), promoted.Addr); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(promoted.Dir); err != nil || p.Primary != promoted || !p.Replica.Alive() {
		t.Errorf("the promoted server is the primary: %t, its data: %v", p.Primary == promoted, err)
	}
}
