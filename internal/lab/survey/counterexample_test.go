package survey

import (
	"testing"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/overlaytest"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
	"stocklock/internal/lab/verdict"
)

// The decrement of none, and the guard of setnx, for strategies that exploration did not see through.
const (
	// countThenInsert counts the orders, and inserts one more with a statement of its own.
	countThenInsert = `package ladder

import (
	"context"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var none = Declare(strategy.Strategy{
	Name: "none", Doc: "counts, then inserts",
	Build: func(strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, func(ctx context.Context, store *stock.Store, s stock.Sale) (stock.Order, error) {
			var left int64
			err := store.Pool().QueryRowContext(ctx, "SELECT stock - (SELECT COUNT(*) FROM orders WHERE item_id = ?) FROM items WHERE id = ?", s.ItemID, s.ItemID).Scan(&left)
			if err != nil {
				return stock.Order{}, err
			}
			sale.At(ctx, sale.Read)
			if left < 1 {
				return stock.Order{}, stock.ErrSoldOut
			}
			sale.At(ctx, sale.Write)
			_, err = store.Pool().ExecContext(ctx, "INSERT INTO orders (item_id, quantity, stock_read, stock_written, strategy, shop, request_id) VALUES (?, 1, ?, ?, 'none', ?, ?)",
				s.ItemID, left, left-1, s.Shop, s.RequestID)
			sale.At(ctx, sale.Written)
			return stock.Order{ItemID: s.ItemID, Quantity: 1, StockRead: left, StockWritten: left - 1}, err
		}
	},
}, declared.Strategy{
	Source: "a test", Guard: "nothing", Decrement: "SELECT COUNT, INSERT", Telling: "contention",
	Properties: declared.Properties{Has: declared.DurableAnswers | declared.Exclusive},
})
`
	// leaseInRow keeps a lease in a column of the item, by the clock of MySQL.
	leaseInRow = `package ladder

import (
	"context"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var setnx = Declare(strategy.Strategy{
	Name: "setnx", Doc: "a lease in a row",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return polled{Options: d.Options, try: func(ctx context.Context, key string) (release, error) {
			id := key[len("stock:"):]
			done, err := d.Store.Pool().ExecContext(ctx, "UPDATE items SET fence = UNIX_TIMESTAMP(NOW(6)) * 1000000 + ? WHERE id = ? AND fence < UNIX_TIMESTAMP(NOW(6)) * 1000000", d.Lease.Microseconds(), id)
			if err != nil {
				return nil, err
			}
			if n, err := done.RowsAffected(); err != nil || n == 0 {
				return nil, err
			}
			sale.At(ctx, sale.Acquiring)
			return func(ctx context.Context) error {
				sale.At(ctx, sale.Releasing)
				_, err := d.Store.Pool().ExecContext(ctx, "UPDATE items SET fence = 0 WHERE id = ?", id)
				return err
			}, nil
		}}, strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source: "a test", Guard: "UPDATE", Decrement: "read-then-write", Telling: "overrun",
	Properties: declared.Properties{Has: declared.DurableAnswers | declared.Exclusive | declared.Recovers | declared.Renews | declared.PauseProof | declared.ClockFree | declared.SurvivesDataLoss | declared.LossAware},
})

func sendSetnx(ctx context.Context, client redis.UniversalClient, key string, value any) (bool, error) {
	return client.Do(ctx, "SETNX", key, value).Bool()
}

func plainDel(client redis.UniversalClient, key, _ string) release {
	return func(ctx context.Context) error {
		sale.At(ctx, sale.Releasing)
		return client.Del(ctx, key).Err()
	}
}
`
)

// TestWhatExplorationDidNotFind has strategies whose failure a schedule shows: an exploration finds it.
func TestWhatExplorationDidNotFind(t *testing.T) {
	program := overlaytest.Shop(t, "../../..", map[string]string{
		"internal/strategy/ladder/none.go": countThenInsert, "internal/strategy/ladder/setnx.go": leaseInRow,
	})
	s := steptest.Open(t, program, step.Options{Lease: 300 * time.Millisecond, OwnSlots: 1})
	for _, tt := range []struct {
		strategy, schedule string
		event              schedule.Event
		cause              verdict.Cause
	}{
		{"none", "A.select B.select A.insert B.insert", "", verdict.NoLock},
		{"setnx", "A.update A.select wait B.update B.select", schedule.Wait, verdict.Overrun},
		{"setnx", "A.update A.select pause:A B.update B.select", schedule.Pause, verdict.LateWrite},
	} {
		record, err := s.PlaySchedule(t.Context(), tt.strategy, 2, steptest.Parse(t, tt.schedule))
		if err != nil || record.Outcome.N != 1 {
			t.Errorf("%s: %s: %+v, %v", tt.strategy, tt.schedule, record.Outcome, err)
		}
		if tt.event == schedule.Pause {
			continue // on shops of its own: most of a minute
		}
		plan := step.Plan{Strategy: tt.strategy, Customers: 2, MaxEvents: 1}
		if tt.event != "" {
			plan.Events = []schedule.Event{tt.event}
		}
		found, err := explore.Explore(t.Context(), plan.On(s), explore.Search{Limit: 60, Slots: s.Slots(plan.Events)}, nil)
		if err != nil || len(found.Shortest) != 1 || found.Shortest[0].Outcome.Cause != tt.cause {
			t.Errorf("%s, %s: %d runs, %d bad by %v, %v, want it by %s", tt.strategy, tt.event, found.Runs, found.Bad, found.Causes(), err, tt.cause)
		}
	}
}
