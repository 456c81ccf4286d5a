package step

import (
	"context"
	"slices"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// schemaFor is that of a strategy, which can have made tables of its own when it was built.
func (s *Shops) schemaFor(ctx context.Context, on *stock.Store, strategy string) (schedule.Schema, error) {
	if known, ok := s.rehearsals.tables.Load(strategy); ok {
		return known.(schedule.Schema), nil
	}
	schema, err := schedule.LoadSchema(ctx, on.Pool())
	if err == nil {
		s.rehearsals.tables.Store(strategy, schema)
	}
	return schema, err
}

func (r *shopsRun) touches(b *buyer) []schedule.Touch {
	if b.state == absent && r.plan.Baskets {
		return schedule.Everything("") // the way decides about which item it comes
	}
	if server := b.next().Server; b.lose && server == labmode.MySQLServer {
		return schedule.Everything(server) // the end of its connection frees what it has
	}
	return r.schema.StepTouches(int(b.customer-'A'), r.parties())
}

// keepsTime says whether a request can be about a lease that [shopsRun.lookAtLock] does not see: a statement that
// asks MySQL for the time, or a command that changes a key that the strategy does not declare.
func (r *shopsRun) keepsTime(request schedule.Request) bool {
	if request.Server == labmode.MySQLServer {
		return request.AsksForTime()
	}
	if r.of.AtPoints() {
		return false
	}
	known := lockKeys(r.items, r.of.State)
	return slices.ContainsFunc(r.schema.Touches(request), func(t schedule.Touch) bool {
		key, isKey := t.Key()
		return t.Does&schedule.Writes != 0 && (t.Thing == "" || isKey && !slices.Contains(known, key))
	})
}

// keepsElsewhere says whether the strategy declares that something else than a lock in Redis keeps others
// out.
func (r *shopsRun) keepsElsewhere() bool {
	return len(r.of.State.Keys) > 0 || r.of.Lease.Kept == declared.LeaseInMySQL
}
