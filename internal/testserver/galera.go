package testserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Galera is the nodes of a cluster of MariaDB, all of which take writes.
type Galera []*MySQL

// galeraLibraries are where packages put Galera's library.
var galeraLibraries = []string{"/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so", "/usr/lib64/galera/libgalera_smm.so", "/usr/lib/libgalera_smm.so"}

// HasGalera returns why this machine cannot start a [Galera], nil where it can.
func HasGalera() error {
	_, err := findGalera()
	return err
}

func findGalera() (library string, err error) {
	program, err := findMySQL()
	switch {
	case err != nil:
		return "", err
	case isMySQL(program):
		return "", fmt.Errorf("testserver: %s is MySQL, and Galera is of MariaDB", program)
	}
	for _, library := range galeraLibraries {
		if exists(library) {
			return library, nil
		}
	}
	return "", fmt.Errorf("testserver: Galera was not found (looked for %s): install it with: apt-get install galera-4", strings.Join(galeraLibraries, ", "))
}

// wsrepOn is an option of each node.
const wsrepOn = "--wsrep-on=ON"

// unhurried are options of Galera: a node that applies nothing for a while stops no other one.
const unhurried = "gcs.fc_limit=10000"

// Galera starts a cluster and waits until all nodes are in it. Each node starts from a copy of the same
// template, and says that it is where the cluster is, so that none needs a copy of another's data.
func (g *Group) Galera(ctx context.Context, nodes int) (Galera, error) {
	library, err := findGalera()
	if err != nil {
		return nil, err
	}
	var ports []int // of the group communication and of the transfers, for each node
	for range 2 * nodes {
		port, err := g.FreePort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	peers := make([]string, nodes)
	for i := range peers {
		peers[i] = "127.0.0.1:" + strconv.Itoa(ports[i])
	}
	const newCluster = "--wsrep-new-cluster"
	id, password, at := uuid.NewString(), RandomHex(12), "0"
	var c Galera
	for i := range nodes {
		options := []string{
			wsrepOn, "--wsrep-provider=" + library, "--wsrep-cluster-name=stocklock", "--wsrep-cluster-address=gcomm://" + strings.Join(peers, ","),
			"--wsrep-node-name=node-" + strconv.Itoa(i+1), "--wsrep-node-address=127.0.0.1", "--wsrep-sst-method=skip",
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--server-id=" + strconv.Itoa(i+1),
			fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d;gcache.size=16M;"+unhurried, peers[i], ports[nodes+i]),
			"--wsrep-start-position=" + id + ":" + at,
		}
		if i == 0 {
			options = append(options, newCluster)
		}
		node, err := g.mysql(ctx, &MySQL{password: password, alone: append([]string{"SET SESSION wsrep_on=OFF"}, accounts(password)...)}, func(data string) error {
			return os.WriteFile(filepath.Join(data, "grastate.dat"),
				fmt.Appendf(nil, "# GALERA saved state\nversion: 2.1\nuuid:    %s\nseqno:   %s\nsafe_to_bootstrap: 1\n", id, at), 0o600)
		}, options...)
		if err != nil {
			return nil, err
		}
		c = append(c, node)
		if err := node.AwaitMembers(ctx, i+1); err != nil {
			return nil, err
		}
		if at, err = node.Status(ctx, "wsrep_last_committed"); err != nil {
			return nil, err
		}
	}
	for _, node := range c {
		if err := node.AwaitMembers(ctx, nodes); err != nil {
			return nil, err
		}
	}
	c[0].Args = slices.DeleteFunc(c[0].Args, func(arg string) bool { return arg == newCluster }) // it restarts as a member
	return c, nil
}

// AwaitMembers waits until the node is a working member of a cluster of so many.
func (m *MySQL) AwaitMembers(ctx context.Context, size int) error {
	return m.await(ctx, fmt.Sprintf("one of %d nodes in sync", size), func() (bool, error) {
		for name, want := range map[string]string{"wsrep_local_state_comment": "Synced", "wsrep_ready": "ON", "wsrep_cluster_size": strconv.Itoa(size)} {
			if is, err := m.Status(ctx, name); err != nil || is != want {
				return false, errors.Join(fmt.Errorf("%s is %q", name, is), err)
			}
		}
		return true, nil
	})
}

// awaitNode waits until the node has committed what another one has.
func (m *MySQL) awaitNode(ctx context.Context, of *MySQL) error {
	want, err := number(of.Status(ctx, "wsrep_last_committed"))
	if err != nil {
		return err
	}
	return m.await(ctx, "as far as "+of.Name, func() (bool, error) {
		is, err := number(m.Status(ctx, "wsrep_last_committed"))
		return is >= want, err
	})
}

// HoldApplying keeps what other nodes have committed from being applied on this one, until release. Its
// own readers see what was there before, and its own writers wait for certification. The server does so for a
// backup.
func (m *MySQL) HoldApplying(ctx context.Context) (release func() error, err error) {
	db, err := m.admin()
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, stage := range []string{"START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"} {
		if _, err := db.ExecContext(ctx, "BACKUP STAGE "+stage); err != nil {
			db.Close()
			return nil, fmt.Errorf("testserver: %s: hold what it applies: %w", m.Name, err)
		}
	}
	return func() error { return endStage(db) }, nil
}

func endStage(db *sql.DB) error {
	_, err := db.Exec("BACKUP STAGE END")
	db.Close()
	return err
}

// Isolate cuts the node off from the others. Its clients still reach it.
func (m *MySQL) Isolate(ctx context.Context) error {
	return m.asAdmin(ctx, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
}

// AwaitNotReady waits until the node knows that it is not in a majority. It refuses statements then.
func (m *MySQL) AwaitNotReady(ctx context.Context) error {
	return m.await(ctx, "out of its cluster", func() (bool, error) {
		ready, err := m.Status(ctx, "wsrep_ready")
		return ready == "OFF", err
	})
}
