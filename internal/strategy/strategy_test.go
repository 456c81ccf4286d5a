package strategy_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/strategytest"
	"stocklock/internal/testserver"
)

func TestStrategies(t *testing.T) { strategytest.All(t, subjects()) }

// subjects lists the strategies with the points of their sales, which wait where Redis or a version refuses
// them, and inside MySQL elsewhere.
func subjects() []strategytest.Subject {
	var all []strategytest.Subject
	for _, s := range strategy.All() {
		subject := strategytest.Subject{Strategy: s, Points: sale.Points, Expires: true}
		if s.WithoutRedis {
			subject.Points, subject.Expires = []sale.Point{sale.Read, sale.Write, sale.Written, sale.Answered}, false
		}
		if s.Name == "optimistic" || s.Name == "batched" {
			subject.Points = slices.Insert(subject.Points, 0, sale.Waiting)
		}
		all = append(all, subject)
	}
	return all
}

func TestRecipes(t *testing.T) {
	strategytest.Recipes(t, subjects(), map[string]string{
		"fenced":          "evalsha; evalsha",
		"fenced-relative": "evalsha; evalsha",
		"for-update":      "",
		"optimistic":      "",
		"conditional":     "",
		"batched":         "",
	})
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
			strategytest.Repeats(t, strategytest.Subject{Strategy: s}, point, "SELECT id FROM items WHERE id = ? FOR UPDATE")
		}
	}
}

// losing answers the next statement that has its text, or each, with an error of the server.
type losing struct {
	text   string
	each   bool
	number atomic.Uint32 // 0 for none
	lost   func()        // called before it answers so; may be nil

	begun, commits atomic.Int64 // transactions, and COMMITs
}

func (l *losing) loses(statement string, _ []driver.NamedValue) error {
	switch statement {
	case "BEGIN":
		l.begun.Add(1)
	case "COMMIT":
		l.commits.Add(1)
	}
	number := l.number.Load()
	if !strings.Contains(statement, l.text) || number == 0 {
		return nil
	}
	if !l.each {
		l.number.Store(0)
	}
	if l.lost != nil {
		l.lost()
	}
	return &mysqldriver.MySQLError{Number: uint16(number), Message: "of the test"}
}

// losingDeps returns deps whose statements l answers, and a store beside theirs.
func losingDeps(t *testing.T, l *losing) (strategy.Deps, *stock.Store) {
	t.Helper()
	dsn := stocktest.Database(t)
	d := strategytest.Deps(t)
	d.Store = stocktest.OpenAt(t, dsn, stock.WithPool(testserver.Intercept(testserver.Statements{Before: l.loses})))
	return d, stocktest.OpenAt(t, dsn)
}

// TestForUpdateRepeatsItsTransaction has the server answer each statement with an error. The whole
// transaction is repeated where it has lost against another one.
func TestForUpdateRepeatsItsTransaction(t *testing.T) {
	s, err := strategy.Find("for-update", strategy.All())
	if err != nil {
		t.Fatal(err)
	}
	l := &losing{}
	d, direct := losingDeps(t, l)
	seller := strategytest.NewSeller(t, s, d)
	for _, tt := range []struct {
		statement string
		repeated  bool
		numbers   []uint32
	}{
		{"FOR UPDATE", true, []uint32{1213, 1205, 1020, 3101, 8022}},
		{"UPDATE `items`", true, []uint32{1213, 1205}},
		{"INSERT", true, []uint32{1213, 1205}},
		{"COMMIT", true, []uint32{1213, 3101}},
		{"FOR UPDATE", false, []uint32{1290, 1317, 9999}},
		{"INSERT", false, []uint32{1406, 1290, 9999}},
		{"COMMIT", false, []uint32{1290}},
	} {
		for _, number := range tt.numbers {
			item := stocktest.Item(t, direct, 3)
			waited := false
			ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) { waited = waited || p == sale.Waiting })
			l.text, l.each = tt.statement, false
			l.begun.Store(0)
			l.number.Store(number)
			_, err := seller.Sell(ctx, stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"})
			begun, sold := int64(1), 0
			if tt.repeated {
				begun, sold = 2, 1
			}
			if got := l.begun.Load(); got != begun || (err == nil) != tt.repeated || waited != tt.repeated {
				t.Errorf("%s answered with %d: %v after %d transactions, passed waiting: %t, want it repeated: %t", tt.statement, number, err, got, waited, tt.repeated)
			}
			left, err := direct.Read(t.Context(), item.ID)
			orders, listErr := direct.ItemOrders(t.Context(), item.ID)
			if err := errors.Join(err, listErr); err != nil || left.Stock != int64(3-sold) || len(orders) != sold {
				t.Errorf("%s answered with %d: %d of 3 units are left, and there are %d orders, %v", tt.statement, number, left.Stock, len(orders), err)
			}
		}
	}
}

// TestForUpdateGivesUp has the server end each of its transactions.
func TestForUpdateGivesUp(t *testing.T) {
	s, err := strategy.Find("for-update", strategy.All())
	if err != nil {
		t.Fatal(err)
	}
	l := &losing{text: "UPDATE `items`", each: true}
	d, direct := losingDeps(t, l)
	d.Wait = time.Second
	seller := strategytest.NewSeller(t, s, d)
	item := stocktest.Item(t, direct, 1)
	l.number.Store(1213)
	_, err = seller.Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"})
	if !errors.Is(err, stock.ErrConflict) || l.begun.Load() < 2 {
		t.Errorf("%v after %d transactions, want a conflict after several", err, l.begun.Load())
	}
}

func TestASaleInDoubtIsNotRepeated(t *testing.T) {
	for _, s := range strategy.All() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			l := &losing{text: "COMMIT", each: true}
			d, direct := losingDeps(t, l)
			d.Wait = 5 * time.Second // longer than the look for the order
			seller := strategytest.NewSeller(t, s, d)
			item := stocktest.Item(t, direct, 2)
			l.number.Store(1180)
			_, err := seller.Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"})
			if !errors.Is(err, stock.ErrUnknown) || l.commits.Load() != 1 {
				t.Errorf("%v after %d COMMITs, want %v after one", err, l.commits.Load(), stock.ErrUnknown)
			}
		})
	}
}

// TestWhatWasRefusedIsRefusedWithoutALock: the item is sold out or held by others, or its customer at the limit, and somebody
// has the lock and the row. One that was restocked is sold.
func TestWhatWasRefusedIsRefusedWithoutALock(t *testing.T) {
	for _, s := range strategy.All() {
		t.Run(s.Name, func(t *testing.T) {
			d := strategytest.Deps(t)
			d.Wait = time.Minute
			seller := strategytest.NewSeller(t, s, d)
			out, other, kept := stocktest.Item(t, d.Store, 0), stocktest.Item(t, d.Store, 10), stocktest.Item(t, d.Store, 1)
			by := func(subject string, lines ...stock.Line) stock.Sale {
				sale := stock.Sale{RequestID: "r", Shop: "test", Subject: subject, Limit: 1}
				sale.SetLines(lines)
				sale.Holds = slices.ContainsFunc(lines, func(line stock.Line) bool { return line.ItemID == kept.ID })
				return sale
			}
			ofKept := by("eve", stock.Line{ItemID: kept.ID, Quantity: 1})
			if _, err := d.Store.Hold(t.Context(), ofKept, 60, stock.Terms{Open: 1}); err != nil {
				t.Fatal(err)
			}
			bought := by("ann", stock.Line{ItemID: other.ID, Quantity: 1})
			if _, err := seller.Sell(t.Context(), bought); err != nil {
				t.Fatal(err)
			}
			refused := map[*stock.Sale]error{
				new(by("bob", stock.Line{ItemID: out.ID, Quantity: 1})):                                            stock.ErrSoldOut,
				new(by("bob", stock.Line{ItemID: other.ID, Quantity: 1}, stock.Line{ItemID: out.ID, Quantity: 1})): stock.ErrSoldOut,
				&bought: stock.ErrLimit,
				new(by("bob", stock.Line{ItemID: kept.ID, Quantity: 1})):                                            stock.ErrHeld,
				new(by("bob", stock.Line{ItemID: other.ID, Quantity: 1}, stock.Line{ItemID: kept.ID, Quantity: 1})): stock.ErrHeld,
			}
			sell := func(ctx context.Context) {
				t.Helper()
				for wanted, want := range refused {
					if _, err := seller.Sell(ctx, *wanted); !errors.Is(err, want) {
						t.Errorf("%d lines: %v, want %v", len(wanted.More)+1, err, want)
					}
				}
			}
			sell(t.Context())
			holder := redislock.New(d.Redis, redislock.Options{})
			defer holder.Close(t.Context())
			for _, item := range []stock.Item{out, other, kept} {
				defer held(t, d, item)()
				_, lease, err := holder.Acquire(t.Context(), sale.Key(item.ID))
				if err != nil {
					t.Fatal(err)
				}
				defer lease.Release()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			sell(ctx)
			both := by("ann", stock.Line{ItemID: other.ID, Quantity: 1}, stock.Line{ItemID: out.ID, Quantity: 1})
			_, err := seller.Sell(ctx, both)
			if lines, _ := errors.AsType[stock.LineErrors](err); len(lines) != 2 || !errors.Is(err, stock.ErrSoldOut) || !errors.Is(err, stock.ErrLimit) {
				t.Errorf("a line sold out and one beyond the limit: %v, want both", err)
			}
		})
	}
}
