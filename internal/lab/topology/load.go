package topology

import (
	"context"
	"maps"
	"slices"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Testbed starts the servers of a topology, and shops on them with these settings, for a load without a fault. The
// store counts on the first server, which has what the others have committed. The caller closes it; the rest ends
// with the rig.
func (t Topology) Testbed(ctx context.Context, r *rig.Rig, env map[string]string) (*rig.Testbed, *stock.Store, error) {
	s, err := t.start(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	dsn := s.nodes[0].DSN()
	if s.galera {
		dsn += "?wsrep_sync_wait=1"
	}
	store, err := audit.Open(ctx, dsn)
	if err != nil {
		return nil, nil, err
	}
	if err := s.copied(ctx); err != nil {
		return nil, store, err
	}
	testbed, err := s.testbed(ctx, r, rig.TestbedOptions{Env: env})
	return testbed, store, err
}

// testbed starts shops on the servers.
func (s *servers) testbed(ctx context.Context, r *rig.Rig, o rig.TestbedOptions) (*rig.Testbed, error) {
	o.Name, o.Shops, o.DSNOf = "shop", Shops, func(shop int) string { return s.dsns[shop] }
	o.Env = maps.Clone(o.Env)
	o.Env["SHOP_LAB"], o.Env["SHOP_LOG_LEVEL"], o.Env["SHOP_LAB_MYSQL_READ"] = "true", "error", s.reads
	return r.Testbed(ctx, o)
}

// OversellsUnderLoad reports whether a strategy sells by old reads there, without any fault.
func (t Topology) OversellsUnderLoad(of strategy.Description) bool {
	return slices.ContainsFunc(Cases, func(c Case) bool {
		return c.Topology.Name == t.Name && c.Scenario.Name == lateReads.Name && c.Expected(of).Verdict == verdict.Oversold
	})
}
