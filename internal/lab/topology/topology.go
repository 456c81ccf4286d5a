// Package topology runs cells whose database is more than one server, or fails over.
//
// A [Topology] says how many servers there are and who copies whom. A [Scenario] is what happens to them, as a
// play: what is held until what is seen. A [Case] is both. All strategies of a case share its servers and its
// one failover; each sells an item of its own. The expected verdict follows from what the strategy declares, and
// from one fact of the topology: whether an answer survives the primary.
//
//   - topology.go: the topologies; servers.go: how they start
//   - scenario.go: the scenarios; failover.go, rewind.go, switchover.go, silent.go, errant.go, late.go and isolated.go:
//     what they do
//   - group.go: the strategies of a case, on its servers; cell.go: one of them, from its customers to its verdict
//   - load.go: shops on a topology's servers, for a load without a fault
//   - count.go: what SQL says in the end; records.go: what the servers say of themselves, which explains it
//
// # Decisions
//
// Who lies after a failover is a fact of the topology. The expected verdict of a cell with several
// servers follows from what the strategy declares of them (Servers), and from whether an answer
// survives its primary (Topology.Durable). All strategies of a case share its servers and its one
// failover, because a pair or a cluster costs seconds to start, and a sale milliseconds. What a
// copy has is held by the servers' own means: a proxy on the link, a stopped applier, and on a node
// of Galera the stage of a backup that blocks commits. A delay in milliseconds would decide by
// luck.
//
// Why a cell lied is what the servers have on record. A binlog says which transaction made an
// order, and a log of statements says which server a sale has read. A shop's trace could say
// neither. The result keeps these records beside the cause, so that a test holds one against the
// other.
//
// The lab has a front of its own, beside toxiproxy. After a switchover, old connections stay where
// they are and new ones find the new primary. A proxy of toxiproxy has one upstream for all, and
// closes its connections when that changes.
package topology

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/testserver"
)

// Topology is the servers of a database.
type Topology struct {
	Name string
	Doc  string // one line: who copies whom
	// Durable says that a commit which was answered survives its primary.
	Durable bool

	// Waits is how long a commit waits for the replica: semi-synchronous replication. 0 waits for nobody.
	Waits time.Duration

	missing func() error // why it cannot start on this machine; nil for no reason
	start   func(context.Context, *rig.Rig) (*servers, error)
}

// Missing returns why the topology cannot start on this machine, nil where it can.
func (t Topology) Missing() error {
	if t.missing == nil {
		return nil
	}
	return t.missing()
}

// shortPatience is how long a primary waits for a replica that it is going to do without.
const shortPatience = 200 * time.Millisecond

// All are the topologies in the order of the tables.
var All = []Topology{
	{Name: "single", Doc: "one server with its disk", Durable: true, start: startSingle},
	{Name: "async", Doc: "a primary, and a replica that copies it asynchronously", start: startPair(0)},
	{
		Name: "semi-sync", Doc: "a primary whose commits wait until the replica has received them (AFTER_SYNC), however long that takes",
		Durable: true, Waits: testserver.Forever, start: startPair(testserver.Forever),
	},
	{
		Name: "semi-sync-timeout", Doc: fmt.Sprintf("the same, with a patience of %s: after that the primary goes on alone", shortPatience),
		Waits: shortPatience, start: startPair(shortPatience),
	},
	{Name: "replica-reads", Doc: "reads outside of transactions go to a replica, by gorm's dbresolver", Durable: true, start: startReplicaReads},
	{Name: "galera", Doc: "three nodes of Galera; all shops write to the first", Durable: true, missing: testserver.HasGalera, start: startGalera(false)},
	{Name: "galera-writers", Doc: "three nodes of Galera; each shop writes to its own", Durable: true, missing: testserver.HasGalera, start: startGalera(true)},
}

// ByName finds a topology. The error lists all names.
func ByName(name string) (Topology, error) {
	return scenario.Named("topology", name, All, func(t Topology) string { return t.Name })
}
