package strategy_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/ngrok/sqlmw"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/strategytest"
	"stocklock/internal/testserver"
)

func TestStrategies(t *testing.T) { strategytest.All(t, strategy.All()) }

func TestRecipes(t *testing.T) {
	strategytest.Recipes(t, strategy.All(), map[string]string{
		"fenced":          "evalsha; evalsha",
		"fenced-relative": "evalsha; evalsha",
		"for-update":      "",
		"optimistic":      "",
		"conditional":     "",
		"batched":         "",
	})
}

func TestPropertyNames(t *testing.T) {
	for _, p := range strategy.AllProperties() {
		if p.String() == "" || strings.Contains(p.String(), ",") || p.Doc() == "" {
			t.Errorf("property %b: name %q, doc %q, want one of each", p, p, p.Doc())
		}
	}
	both := strategy.Exclusive | strategy.ClockFree
	if got := both.String(); got != "exclusive, clock-free" {
		t.Errorf("String of a set = %q", got)
	}
	if both.Includes(strategy.Exclusive|strategy.Renews) || !both.Includes(strategy.ClockFree) {
		t.Error("Includes must want all of what it is asked for")
	}
}

func TestStandings(t *testing.T) {
	p := strategy.Properties{Has: strategy.Exclusive, NotApplicable: strategy.Renews}
	for _, tt := range []struct {
		of    strategy.Property
		want  strategy.Standing
		meets bool
	}{
		{strategy.Exclusive, strategy.Has, true},
		{strategy.Renews, strategy.NotApplicable, true},
		{strategy.Recovers, strategy.Lacks, false},
	} {
		if got := p.Standing(tt.of); got != tt.want || p.Meets(tt.of) != tt.meets {
			t.Errorf("%s: %s, meets %t, want %s, %t", tt.of, got, p.Meets(tt.of), tt.want, tt.meets)
		}
	}
	if lacks := p.Lacks(); lacks.Includes(strategy.Exclusive) || lacks.Includes(strategy.Renews) || !lacks.Includes(strategy.Recovers|strategy.StorageChecked) {
		t.Errorf("lacks %s", lacks)
	}
}

// TestAConflictIsRepeated lets another transaction win against each statement that waits for the item's
// row. A sale by for-update passes no point before.
func TestAConflictIsRepeated(t *testing.T) {
	for name, points := range map[string][]sale.Point{
		"fenced": {sale.Acquired, sale.Read}, "fenced-relative": {sale.Acquired, sale.Read},
		"conditional": {sale.Read}, "batched": {sale.Read}, "optimistic": {sale.Write},
	} {
		s, err := strategy.Find(name, strategy.All())
		if err != nil {
			t.Fatal(err)
		}
		for _, point := range points {
			strategytest.Repeats(t, s, point, "SELECT id FROM items WHERE id = ? FOR UPDATE")
		}
	}
}

// inDoubt answers each COMMIT with an error that leaves its outcome open, and counts them.
type inDoubt struct {
	sqlmw.NullInterceptor
	commits atomic.Int64
}

func (d *inDoubt) TxCommit(_ context.Context, tx driver.Tx) error {
	d.commits.Add(1)
	return errors.Join(tx.Rollback(), &mysqldriver.MySQLError{Number: 1180, Message: "of the test"})
}

func TestASaleInDoubtIsNotRepeated(t *testing.T) {
	for _, s := range strategy.All() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			dsn := testserver.Database(t)
			direct, err := stock.Open(dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer direct.Close()
			if err := direct.Migrate(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			item, err := direct.CreateItem(t.Context(), "item", 2)
			if err != nil {
				t.Fatal(err)
			}
			var doubt inDoubt
			d := strategytest.Deps(t)
			d.Wait = 5 * time.Second // longer than the look for the order
			if d.Store, err = stock.Open(dsn, stock.WithPool(testserver.Intercept(&doubt))); err != nil {
				t.Fatal(err)
			}
			defer d.Store.Close()
			_, err = strategytest.NewSeller(t, s, d).Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"})
			if !errors.Is(err, stock.ErrUnknown) || doubt.commits.Load() != 1 {
				t.Errorf("%v after %d COMMITs, want %v after one", err, doubt.commits.Load(), stock.ErrUnknown)
			}
		})
	}
}
