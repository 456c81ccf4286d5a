package topology

import (
	"context"
	"maps"
	"slices"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/testserver"
)

// Servers is a started topology.
type Servers struct {
	Nodes  []*testserver.MySQL // the first is the one that is written to first
	Fronts []*rig.Front        // of each shop: it leads to the server that takes the shop's writes
	dsns   []string            // through the Fronts
	reads  string              // the DSN of the replica that answers reads; empty for none
	Link   *rig.Proxy          // between a replica and its primary; nil without one
	Galera bool
}

// behind gives each shop a front, which leads to its server.
func behind(r *rig.Rig, s *Servers, server func(shop int) *testserver.MySQL) (*Servers, error) {
	for shop := range Shops {
		front, dsn, err := r.FrontMySQL(server(shop).ShopDSN())
		if err != nil {
			return nil, err
		}
		s.Fronts, s.dsns = append(s.Fronts, front), append(s.dsns, dsn)
	}
	return s, nil
}

// behindFirst has all shops write to the first server.
func behindFirst(r *rig.Rig, s *Servers) (*Servers, error) {
	return behind(r, s, func(int) *testserver.MySQL { return s.Nodes[0] })
}

// LedTo returns the server that new connections of a shop find.
func (s *Servers) LedTo(shop int) int {
	to := s.Fronts[shop].LeadsTo()
	return slices.IndexFunc(s.Nodes, func(node *testserver.MySQL) bool { return node.Addr == to })
}

// Lead closes the connections of all shops, and leads new ones to a server.
func (s *Servers) Lead(node int) {
	for _, front := range s.Fronts {
		front.Lead(s.Nodes[node].Addr)
	}
}

func startSingle(ctx context.Context, r *rig.Rig) (*Servers, error) {
	server, err := r.MySQLAlone(ctx)
	if err != nil {
		return nil, err
	}
	return behindFirst(r, &Servers{Nodes: []*testserver.MySQL{server}})
}

func startPair(semiSync time.Duration) func(context.Context, *rig.Rig) (*Servers, error) {
	return func(ctx context.Context, r *rig.Rig) (*Servers, error) {
		pair, err := r.MySQLPair(ctx, testserver.PairOptions{SemiSync: semiSync})
		if err != nil {
			return nil, err
		}
		return behindFirst(r, &Servers{Nodes: []*testserver.MySQL{pair.Primary, pair.Replica}, Link: pair.Link})
	}
}

func startReplicaReads(ctx context.Context, r *rig.Rig) (*Servers, error) {
	s, err := startPair(0)(ctx, r)
	if err == nil {
		s.reads = s.Nodes[1].ShopDSN()
	}
	return s, err
}

// galeraNodes is how many nodes a cluster has: the fewest of which one may fail.
const galeraNodes = 3

func startGalera(writers bool) func(context.Context, *rig.Rig) (*Servers, error) {
	return func(ctx context.Context, r *rig.Rig) (*Servers, error) {
		cluster, err := r.Galera(ctx, galeraNodes)
		if err != nil {
			return nil, err
		}
		s := &Servers{Nodes: cluster, Galera: true}
		if !writers {
			return behindFirst(r, s)
		}
		return behind(r, s, func(shop int) *testserver.MySQL { return cluster[shop%len(cluster)] })
	}
}

// HoldCopies keeps the second server behind the first until release: a replica or a node does not
// apply. What was committed before is there.
func (s *Servers) HoldCopies(ctx context.Context) (release func(context.Context) error, err error) {
	if err := s.Copied(ctx); err != nil {
		return nil, err
	}
	if !s.Galera {
		return s.Nodes[1].StartApplying, s.Nodes[1].StopApplying(ctx)
	}
	end, err := s.Nodes[1].HoldApplying(ctx)
	return func(context.Context) error { return end() }, err
}

// Copied waits until the other servers have all that the first one has.
func (s *Servers) Copied(ctx context.Context) error {
	for _, other := range s.Nodes[1:] {
		if err := other.AwaitCopied(ctx, s.Nodes[0]); err != nil {
			return err
		}
	}
	return nil
}

// Testbed starts shops on the servers.
func (s *Servers) Testbed(ctx context.Context, r *rig.Rig, o rig.TestbedOptions) (*rig.Testbed, error) {
	o.Name, o.Shops, o.DSNOf = "shop", Shops, func(shop int) string { return s.dsns[shop] }
	o.Env = maps.Clone(o.Env)
	o.Env["SHOP_LAB"], o.Env["SHOP_LOG_LEVEL"], o.Env["SHOP_LAB_MYSQL_READ"] = "true", "error", s.reads
	return r.Testbed(ctx, o)
}
