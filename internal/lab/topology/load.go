package topology

import (
	"context"
	"errors"
	"maps"
	"slices"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// Testbed is shops on the servers of a topology.
type Testbed struct {
	*rig.Testbed
	Store *stock.Store // counts on the first server, which has what the others have committed
	// Copied waits until the other servers have all that the first one has.
	Copied func(context.Context) error
}

// Close closes the store. The rest ends with the rig.
func (t Testbed) Close() error { return t.Store.Close() }

// Testbed starts the servers of a topology, and shops on them with these settings, for a load without a fault.
func (t Topology) Testbed(ctx context.Context, r *rig.Rig, env map[string]string) (Testbed, error) {
	s, err := t.start(ctx, r)
	if err != nil {
		return Testbed{}, err
	}
	dsn := s.nodes[0].DSN()
	if s.galera {
		dsn += "?wsrep_sync_wait=1"
	}
	store, err := audit.Open(ctx, dsn)
	if err != nil {
		return Testbed{}, err
	}
	if err = s.copied(ctx); err == nil {
		var shops *rig.Testbed
		if shops, err = s.testbed(ctx, r, rig.TestbedOptions{Env: env}); err == nil {
			return Testbed{shops, store, s.copied}, nil
		}
	}
	return Testbed{}, errors.Join(err, store.Close())
}

// testbed starts shops on the servers.
func (s *servers) testbed(ctx context.Context, r *rig.Rig, o rig.TestbedOptions) (*rig.Testbed, error) {
	o.Name, o.Shops, o.DSNOf = "shop", Shops, func(shop int) string { return s.dsns[shop] }
	o.Env = maps.Clone(o.Env)
	o.Env["SHOP_LAB"], o.Env["SHOP_LOG_LEVEL"], o.Env["SHOP_LAB_MYSQL_READ"] = "true", "error", s.reads
	return r.Testbed(ctx, o)
}

// OversellsUnderLoad reports whether a strategy sells by old reads there, without any fault.
func (t Topology) OversellsUnderLoad(of declared.Strategy) bool {
	return slices.ContainsFunc(Cases, func(c Case) bool {
		return c.Topology.Name == t.Name && c.Scenario.Name == lateReads.Name && c.Expected(of).Verdict == verdict.Oversold
	})
}
