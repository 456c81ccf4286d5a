package topology

import (
	"context"
	"slices"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/testserver"
)

// servers is a started topology.
type servers struct {
	nodes  []*testserver.MySQL // the first is the one that is written to first
	fronts []*rig.Front        // of each shop: it leads to the server that takes the shop's writes
	dsns   []string            // through the fronts
	reads  string              // the DSN of the replica that answers reads; empty for none
	link   *rig.Proxy          // between a replica and its primary; nil without one
	galera bool
}

// behind gives each shop a front, which leads to its server.
func behind(r *rig.Rig, s *servers, server func(shop int) *testserver.MySQL) (*servers, error) {
	for shop := range Shops {
		front, dsn, err := r.FrontMySQL(server(shop).ShopDSN())
		if err != nil {
			return nil, err
		}
		s.fronts, s.dsns = append(s.fronts, front), append(s.dsns, dsn)
	}
	return s, nil
}

// behindFirst has all shops write to the first server.
func behindFirst(r *rig.Rig, s *servers) (*servers, error) {
	return behind(r, s, func(int) *testserver.MySQL { return s.nodes[0] })
}

// ledTo returns the server that new connections of a shop find.
func (s *servers) ledTo(shop int) int {
	to := s.fronts[shop].LeadsTo()
	return slices.IndexFunc(s.nodes, func(node *testserver.MySQL) bool { return node.Addr == to })
}

// lead closes the connections of all shops, and leads new ones to a server.
func (s *servers) lead(node int) {
	for _, front := range s.fronts {
		front.Lead(s.nodes[node].Addr)
	}
}

func startSingle(ctx context.Context, r *rig.Rig) (*servers, error) {
	server, err := r.MySQLAlone(ctx)
	if err != nil {
		return nil, err
	}
	return behindFirst(r, &servers{nodes: []*testserver.MySQL{server}})
}

func startPair(semiSync time.Duration) func(context.Context, *rig.Rig) (*servers, error) {
	return func(ctx context.Context, r *rig.Rig) (*servers, error) {
		pair, err := r.MySQLPair(ctx, testserver.PairOptions{SemiSync: semiSync})
		if err != nil {
			return nil, err
		}
		return behindFirst(r, &servers{nodes: []*testserver.MySQL{pair.Primary, pair.Replica}, link: pair.Link})
	}
}

func startReplicaReads(ctx context.Context, r *rig.Rig) (*servers, error) {
	s, err := startPair(0)(ctx, r)
	if err == nil {
		s.reads = s.nodes[1].ShopDSN()
	}
	return s, err
}

// galeraNodes is how many nodes a cluster has: the fewest of which one may fail.
const galeraNodes = 3

func startGalera(writers bool) func(context.Context, *rig.Rig) (*servers, error) {
	return func(ctx context.Context, r *rig.Rig) (*servers, error) {
		cluster, err := r.Galera(ctx, galeraNodes)
		if err != nil {
			return nil, err
		}
		s := &servers{nodes: cluster, galera: true}
		if !writers {
			return behindFirst(r, s)
		}
		return behind(r, s, func(shop int) *testserver.MySQL { return cluster[shop%len(cluster)] })
	}
}

// holdCopies keeps the second server behind the first until release: a replica or a node does not
// apply. What was committed before is there.
func (s *servers) holdCopies(ctx context.Context) (release func(context.Context) error, err error) {
	if err := s.copied(ctx); err != nil {
		return nil, err
	}
	if !s.galera {
		return s.nodes[1].StartApplying, s.nodes[1].StopApplying(ctx)
	}
	end, err := s.nodes[1].HoldApplying(ctx)
	return func(context.Context) error { return end() }, err
}

// copied waits until the other servers have all that the first one has.
func (s *servers) copied(ctx context.Context) error {
	for _, other := range s.nodes[1:] {
		if err := other.AwaitCopied(ctx, s.nodes[0]); err != nil {
			return err
		}
	}
	return nil
}
