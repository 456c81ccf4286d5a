package topology

import (
	"context"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/testserver"
)

// servers is a started topology.
type servers struct {
	nodes  []*testserver.MySQL // the first is the one that is written to first
	dsn    func(shop int) string
	reads  string     // the DSN of the replica that answers reads; empty for none
	link   *rig.Proxy // between a replica and its primary; nil without one
	front  *rig.Proxy // between the shops and the server that takes their writes; nil where each has its own
	galera bool
}

// behind puts a proxy between all shops and the server.
func behind(r *rig.Rig, s *servers, server *testserver.MySQL) (*servers, error) {
	front, dsn, err := r.ProxyMySQL(server.ShopDSN())
	s.front, s.dsn = front, func(int) string { return dsn }
	return s, err
}

func startSingle(ctx context.Context, r *rig.Rig) (*servers, error) {
	server, err := r.MySQLAlone(ctx)
	if err != nil {
		return nil, err
	}
	return behind(r, &servers{nodes: []*testserver.MySQL{server}}, server)
}

func startPair(semiSync time.Duration) func(context.Context, *rig.Rig) (*servers, error) {
	return func(ctx context.Context, r *rig.Rig) (*servers, error) {
		s := &servers{}
		pair, err := r.MySQLPair(ctx, testserver.PairOptions{SemiSync: semiSync, Through: func(addr string) (string, error) {
			link, err := r.Proxy(addr)
			if err != nil {
				return "", err
			}
			s.link = link
			return link.Addr, nil
		}})
		if err != nil {
			return nil, err
		}
		s.nodes = []*testserver.MySQL{pair.Primary, pair.Replica}
		return behind(r, s, pair.Primary)
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
			return behind(r, s, cluster[0])
		}
		s.dsn = func(shop int) string { return cluster[shop%len(cluster)].ShopDSN() }
		return s, nil
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
