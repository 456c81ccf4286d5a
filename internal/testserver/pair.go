package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MySQLPair is a primary and a replica that follows it by GTIDs and takes no writes.
type MySQLPair struct {
	Primary, Replica *MySQL

	start   func(ctx context.Context, id int, options ...string) (*MySQL, error)
	servers int // that were started: the last one's id
}

// PairOptions is how the servers of a pair copy. The zero value copies asynchronously.
type PairOptions struct {
	// SemiSync is how long a commit waits for the replica to receive it, before others see it (AFTER_SYNC).
	// After that the primary goes on alone. 0 waits for nobody.
	SemiSync time.Duration
	// Options are more of mysqld's own, for both servers.
	Options []string
	// Through returns the address at which the replica finds the primary at addr. Nil leads to addr itself.
	Through func(addr string) (string, error)
}

// Forever is the patience of a primary that never goes on without its replica.
const Forever = 24 * time.Hour

// replicaUser may follow a primary.
const replicaUser = "replica"

// MySQLPair starts both servers and waits until the replica has what the primary has.
func (g *Group) MySQLPair(ctx context.Context, o PairOptions) (*MySQLPair, error) {
	program, err := findMySQL()
	if err != nil {
		return nil, err
	}
	words := wordsOf(isMySQL(program))
	password := RandomHex(12)
	p := &MySQLPair{servers: 2, start: func(ctx context.Context, id int, options ...string) (*MySQL, error) {
		options = slices.Concat(options, words.binlog, []string{"--log-bin=binlog", "--sync-binlog=1", "--binlog-format=ROW", "--server-id=" + strconv.Itoa(id)}, o.Options)
		alone := append([]string{"SET SESSION sql_log_bin=0"}, accounts(password)...)
		alone = append(alone, "CREATE USER IF NOT EXISTS '"+replicaUser+"'@'127.0.0.1' IDENTIFIED BY '"+password+"'",
			"GRANT REPLICATION SLAVE ON *.* TO '"+replicaUser+"'@'127.0.0.1'")
		return g.mysql(ctx, &MySQL{password: password, alone: alone}, withoutIdentity, options...)
	}}
	var ofPrimary, ofReplica []string
	if o.SemiSync > 0 {
		ofPrimary, ofReplica = words.waits(o.SemiSync), words.acknowledges
	}
	if p.Primary, err = p.start(ctx, 1, ofPrimary...); err != nil {
		return nil, err
	}
	if p.Replica, err = p.start(ctx, 2, ofReplica...); err != nil {
		return nil, err
	}
	at := p.Primary.Addr
	if o.Through != nil {
		if at, err = o.Through(at); err != nil {
			return nil, err
		}
	}
	if err := p.Replica.Follow(ctx, at); err != nil {
		return nil, err
	}
	if o.SemiSync > 0 {
		err = p.Primary.await(ctx, "waiting for its replica", func() (bool, error) {
			clients, err := p.Primary.Status(ctx, words.clients)
			return clients == "1", err
		})
	}
	return p, err
}

// Renew makes the promoted replica the pair's primary, and gives it a new replica, which finds it at addr and
// copies everything from its beginning. The former primary has ended, and its data is removed. After an error, the pair
// is as it was, and can be renewed.
func (p *MySQLPair) Renew(ctx context.Context, addr string) error {
	if err := os.RemoveAll(p.Primary.Dir); err != nil {
		return fmt.Errorf("testserver: %w", err)
	}
	p.servers++
	replica, err := p.start(ctx, p.servers)
	if err != nil {
		return err
	}
	if err = replica.Follow(ctx, addr); err == nil {
		err = replica.AwaitCopied(ctx, p.Replica)
	}
	if err != nil {
		return errors.Join(err, replica.Kill(), os.RemoveAll(replica.Dir))
	}
	p.Primary, p.Replica = p.Replica, replica
	return nil
}

// Follow makes the server the replica of the primary at addr, and read-only. The primary is of the same pair.
func (m *MySQL) Follow(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("testserver: %w", err)
	}
	words := wordsOf(m.isMySQL)
	if err := m.asAdmin(ctx, words.readOnly("1"), fmt.Sprintf(words.follow, host, port, replicaUser, m.password), words.start); err != nil {
		return err
	}
	return m.await(ctx, "a replica of "+addr, func() (bool, error) {
		r, err := m.Replication(ctx)
		if err == nil && (!r.Receiving || !r.Applying) {
			err = fmt.Errorf("%s", r.Problem)
		}
		return err == nil, err
	})
}

// Replication is what a replica says of itself.
type Replication struct {
	Receiving, Applying bool
	Received, Applied   string // GTIDs, as the server writes them
	Problem             string
}

// Replication asks a replica how far it is.
func (m *MySQL) Replication(ctx context.Context) (Replication, error) {
	words := wordsOf(m.isMySQL)
	row, err := m.row(ctx, words.status)
	if err != nil {
		return Replication{}, err
	}
	applied, err := m.Value(ctx, words.applied)
	return Replication{
		Receiving: row[words.receiving] == "Yes", Applying: row[words.applying] == "Yes", Received: row[words.received], Applied: applied,
		Problem: strings.TrimSpace(row["Last_IO_Error"] + " " + row["Last_SQL_Error"]),
	}, err
}

// Committed returns the GTIDs of what the server has committed.
func (m *MySQL) Committed(ctx context.Context) (string, error) {
	return m.Value(ctx, wordsOf(m.isMySQL).committed)
}

// WaitingCommits returns how many commits of shops wait for a replica to receive them: one does, and others wait
// behind it.
func (m *MySQL) WaitingCommits(ctx context.Context) (int, error) {
	words := wordsOf(m.isMySQL)
	first, err := number(m.Status(ctx, words.waiting))
	if err != nil || first == 0 {
		return 0, err
	}
	return number(m.Value(ctx, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '"+shopUser+"' AND STATE IN ("+words.committing+")"))
}

// AwaitsReplica reports whether a primary waits for its replica: its semi-synchronous replication is on, and its
// patience was not over.
func (m *MySQL) AwaitsReplica(ctx context.Context) (bool, error) {
	is, err := m.Status(ctx, wordsOf(m.isMySQL).semiSync)
	return is == "ON", err
}

// StopApplying makes a replica receive and not apply, until StartApplying.
func (m *MySQL) StopApplying(ctx context.Context) error {
	return m.asAdmin(ctx, wordsOf(m.isMySQL).stopApplying)
}

// StartApplying undoes StopApplying.
func (m *MySQL) StartApplying(ctx context.Context) error {
	return m.asAdmin(ctx, wordsOf(m.isMySQL).startApplying)
}

// AwaitApplied waits until a replica has applied what it has received.
func (m *MySQL) AwaitApplied(ctx context.Context) error {
	return m.await(ctx, "done with what it has received", func() (bool, error) {
		r, err := m.Replication(ctx)
		if err != nil {
			return false, err
		}
		return m.has(ctx, r.Received)
	})
}

// has reports whether a replica has applied all of these GTIDs.
func (m *MySQL) has(ctx context.Context, gtids string) (bool, error) {
	if gtids == "" {
		return true, nil
	}
	is, err := m.Value(ctx, fmt.Sprintf(wordsOf(m.isMySQL).includes, gtids))
	return is == "1", err
}

// AwaitCopied waits until the server has all that another one of its pair or cluster has committed.
func (m *MySQL) AwaitCopied(ctx context.Context, of *MySQL) error {
	if slices.Contains(m.Args, wsrepOn) {
		return m.awaitNode(ctx, of)
	}
	committed, err := of.Committed(ctx)
	if err != nil {
		return err
	}
	return m.await(ctx, "a full copy of "+of.Name, func() (bool, error) { return m.has(ctx, committed) })
}

// Promote makes a replica a primary that takes writes, when it has applied all that it has received.
func (m *MySQL) Promote(ctx context.Context) error {
	words := wordsOf(m.isMySQL)
	if err := m.asAdmin(ctx, words.stopReceiving); err != nil {
		return err
	}
	if err := m.AwaitApplied(ctx); err != nil {
		return err
	}
	return m.asAdmin(ctx, words.stop, words.forget, words.readOnly("0"))
}

// RefuseWrites makes a server read-only for shops.
func (m *MySQL) RefuseWrites(ctx context.Context) error {
	return m.asAdmin(ctx, wordsOf(m.isMySQL).readOnly("1"))
}
