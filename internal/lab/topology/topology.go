// Package topology starts databases of more than one server, which can fail over, and shops on them.
//
// A [Topology] says how many servers there are and who copies whom. What happens to them is in package scenario.
//
// # Decisions
//
// Who lies after a failover is a fact of the topology. The expected verdict of a cell with several
// servers follows from what the strategy declares of them (Servers), and from whether an answer
// survives its primary (Topology.Durable). All strategies of a scenario share its servers and its one
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

	// Start starts the servers, with a front for each shop.
	Start func(context.Context, *rig.Rig) (*Servers, error)

	missing func() error // why it cannot start on this machine; nil for no reason
}

// Missing returns why the topology cannot start on this machine, nil where it can.
func (t Topology) Missing() error {
	if t.missing == nil {
		return nil
	}
	return t.missing()
}

// Shops is how many shops sell there.
const Shops = 3

// ShortPatience is how long a primary waits for a replica that it is going to do without.
const ShortPatience = 200 * time.Millisecond

// All are the topologies in the order of the tables.
var All = []Topology{
	{Name: "single", Doc: "one server with its disk", Durable: true, Start: startSingle},
	{Name: "async", Doc: "a primary, and a replica that copies it asynchronously", Start: startPair(0)},
	{
		Name: "semi-sync", Doc: "a primary whose commits wait until the replica has received them (AFTER_SYNC), however long that takes",
		Durable: true, Waits: testserver.Forever, Start: startPair(testserver.Forever),
	},
	{
		Name: "semi-sync-timeout", Doc: fmt.Sprintf("the same, with a patience of %s: after that the primary goes on alone", ShortPatience),
		Waits: ShortPatience, Start: startPair(ShortPatience),
	},
	{Name: "replica-reads", Doc: "reads outside of transactions go to a replica, by gorm's dbresolver", Durable: true, Start: startReplicaReads},
	{Name: "galera", Doc: "three nodes of Galera; all shops write to the first", Durable: true, missing: testserver.HasGalera, Start: startGalera(false)},
	{Name: "galera-writers", Doc: "three nodes of Galera; each shop writes to its own", Durable: true, missing: testserver.HasGalera, Start: startGalera(true)},
}
