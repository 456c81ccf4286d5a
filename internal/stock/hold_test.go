package stock

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"stocklock/internal/testserver"
)

// openHolds opens a store with an item. Tests within the package cannot use stocktest, which imports it.
func openHolds(t *testing.T, units int64) (*Store, Item) {
	t.Helper()
	s, err := Open(testserver.Database(t), WithPoolSize(1)) // whose session counts: see rowsRead
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	item, err := s.CreateItem(t.Context(), "book", units)
	if err != nil {
		t.Fatal(err)
	}
	return s, item
}

var holdTerms = Terms{Open: 1_000_000, Longest: time.Hour, Window: time.Hour}

func hold(t *testing.T, s *Store, item Item, seconds int64, key string) Hold {
	t.Helper()
	h, err := s.Hold(t.Context(), Sale{ItemID: item.ID, Quantity: 1, Subject: "ann", IdempotencyKey: key, Holds: true}, seconds, holdTerms)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestASweepLooksAgain has overdue holds change between the sweep's look and its lock.
func TestASweepLooksAgain(t *testing.T) {
	s, item := openHolds(t, 3)
	by := Author{Subject: "ann"}
	released, paying, overdue := hold(t, s, item, 0, "a"), hold(t, s, item, 0, "b"), hold(t, s, item, 0, "c")
	if _, err := s.Move(t.Context(), by, released.PublicID, Release("test")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Move(t.Context(), by, paying.PublicID, BeginPayment(holdTerms)); err != nil {
		t.Fatal(err)
	}
	n, err := s.endHolds(t.Context(), "shop", []uint64{released.ID, paying.ID, overdue.ID}, anyItem, Held, Paying)
	now, readErr := s.View(t.Context(), item.ID)
	if errors.Join(err, readErr) != nil || n != 1 || now.Stock != 2 || now.Held != 1 {
		t.Errorf("%d ended, %d units left and %d held, %v; want 1, 2 and 1", n, now.Stock, now.Held, errors.Join(err, readErr))
	}
}

// TestTheSchemaRefusesWhatCannotBe writes states without their columns, and transitions that there are not.
func TestTheSchemaRefusesWhatCannotBe(t *testing.T) {
	s, item := openHolds(t, 1)
	terms := holdTerms
	terms.Grace = time.Minute
	h := hold(t, s, item, 60, "a")
	paying, err := s.Move(t.Context(), Author{Subject: "backend"}, h.PublicID, BeginPayment(terms))
	if err != nil || !paying.PayUntil.After(paying.HeldUntil) || paying.LiveUntil.Sub(*paying.PayUntil) != terms.Grace {
		t.Fatalf("%+v, %v; want a window that ends after the hold's, and a grace after that", paying, err)
	}
	for _, statement := range []string{
		"UPDATE holds SET state = 'confirmed'",
		"UPDATE holds SET state = 'expired', live_until = NULL",
		"UPDATE holds SET state = 'held'",
		"UPDATE holds SET state = 'lost'",
		"UPDATE holds SET pay_until = held_until",
		"UPDATE holds SET live_until = NULL",
		"INSERT INTO hold_history (hold_id, n, was, becomes, at, done_by, reason, request_id) SELECT hold_id, 3, 'expired', 'confirmed', at, '', '', '' FROM hold_history WHERE n = 1",
		"INSERT INTO hold_history (hold_id, n, was, becomes, at, done_by, reason, request_id) SELECT hold_id, 2, 'held', 'released', at, '', '', '' FROM hold_history WHERE n = 1",
		"INSERT INTO payments (reference, hold, state, reason, recorded_at, recorded_by) VALUES ('r', 'h', 'taken', '', UTC_TIMESTAMP(6), '')",
	} {
		if _, err := s.pool.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: it was written", statement)
		} else if is, number := classOf(err); is != refused {
			t.Errorf("%s: %d %v, want one that refuses a row", statement, number, err)
		}
	}
}

// TestWhatIsOverCostsNothing counts the rows that the server reads. It is as many with a thousand reservations
// that are over, or HOLDS_OVER, as with none.
func TestWhatIsOverCostsNothing(t *testing.T) {
	s, item := openHolds(t, 2000)
	other, err := s.CreateItem(t.Context(), "pen", 1)
	if err != nil {
		t.Fatal(err)
	}
	hold(t, s, item, 600, "live")
	n := 0
	work := map[string]func() error{
		"a reservation": func() error {
			n++
			_, err := s.Hold(t.Context(), Sale{ItemID: item.ID, Quantity: 1, Subject: "ben", IdempotencyKey: fmt.Sprint("ben-", n), Limit: 1000, Holds: true}, 600, holdTerms)
			return err
		},
		"a paid reservation": func() error {
			n++
			h, err := s.Hold(t.Context(), Sale{ItemID: item.ID, Quantity: 1, Subject: "ben", IdempotencyKey: fmt.Sprint("ben-", n), Limit: 1000, Holds: true}, 600, holdTerms)
			if err == nil {
				_, err = s.Confirm(t.Context(), Author{Subject: "backend"}, h.PublicID, h.PublicID, Sale{Strategy: "conditional", Shop: "shop", RequestID: "r"}, holdTerms)
			}
			return err
		},
		"a sale": func() error {
			_, err := s.Decrement(t.Context(), Sale{ItemID: item.ID, Quantity: 1, Subject: "ben", RequestID: "r", Shop: "shop", Limit: 1000, Holds: true})
			return err
		},
		"a look for overdue ones": func() error { _, err := s.EndOverdue(t.Context(), "shop", Sale{ItemID: item.ID}); return err },
		"a sweep":                 func() error { _, _, _, err := s.EndHolds(t.Context(), "shop", 64); return err },
		"a refusal": func() error {
			return s.Refusal(t.Context(), Sale{ItemID: item.ID, Quantity: 1, Subject: "ben", Limit: 1000, Holds: true})
		},
		"a refusal of two items": func() error {
			two := Sale{Subject: "ben", Limit: 1000, Holds: true}
			two.SetLines([]Line{{ItemID: item.ID, Quantity: 1}, {ItemID: other.ID, Quantity: 1}})
			return s.Refusal(t.Context(), two)
		},
		"a page of items":   func() error { _, err := s.ViewItems(t.Context(), 0, 50); return err },
		"a look at an item": func() error { _, err := s.View(t.Context(), item.ID); return err },
	}
	before := map[string]int{}
	for what, do := range work {
		before[what] = rowsRead(t, s, do)
	}
	over := 1000
	if asked, err := strconv.Atoi(os.Getenv("HOLDS_OVER")); err == nil {
		over = asked
	}
	endedHolds(t, s, item, over)
	for what, do := range work {
		// The live ones and the orders that were made in the first round are read, too.
		if after := rowsRead(t, s, do); after > before[what]+15 {
			t.Errorf("%s reads %d rows beside %d that are over, and %d before", what, after, over, before[what])
		} else {
			t.Logf("%s reads %d rows", what, after)
		}
	}
}

// TestWhatIsForgottenIsNotReadAgain has the next round begin behind it.
func TestWhatIsForgottenIsNotReadAgain(t *testing.T) {
	s, item := openHolds(t, 2000)
	endedHolds(t, s, item, 1000)
	if _, err := s.pool.ExecContext(t.Context(), "UPDATE holds SET created_at = created_at - INTERVAL 10 DAY, ended_at = ended_at - INTERVAL 10 DAY"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.ExecContext(t.Context(), "DELETE FROM holds ORDER BY id LIMIT 1"); err != nil { // by an operator: its history stays
		t.Fatal(err)
	}
	hold(t, s, item, 600, "live")
	if n, err := s.ForgetHolds(t.Context(), time.Hour, 2000); err != nil || n != 999 {
		t.Fatalf("%d forgotten, %v, want 999", n, err)
	}
	rows := rowsRead(t, s, func() error {
		n, err := s.ForgetHolds(t.Context(), time.Hour, 2000)
		if n != 0 {
			t.Errorf("%d forgotten again", n)
		}
		return err
	})
	if rows > 30 {
		t.Errorf("it reads %d rows beside 1,000 that are forgotten", rows)
	}
}

// endedHolds makes so many thousands of holds that have expired, half of them of ben.
func endedHolds(t *testing.T, s *Store, item Item, n int) {
	t.Helper()
	const last = " FROM holds ORDER BY id DESC LIMIT 1000"
	for range n / 1000 {
		for _, statement := range []string{
			"INSERT INTO holds (public_id, subject, state, steps, seconds, created_at, held_until, ended_at, ended_by)" +
				" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)" +
				" SELECT UUID(), IF(i % 2, 'ben', 'ann'), 'expired', 2, 0, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 'shop' FROM n",
			fmt.Sprint("INSERT INTO hold_lines (hold_id, item_id, quantity, subject) SELECT id, ", item.ID, ", 1, subject", last),
			"INSERT INTO hold_history SELECT id, 2, 'held', 'expired', ended_at, 'shop', 'overdue', ''" + last,
			"INSERT INTO payments (reference, hold, state, reason, recorded_at, recorded_by, returned_at, returned_by, idempotency_key) SELECT public_id, public_id, 'returned', 'late', ended_at, 'backend', ended_at, 'backend', 'k'" + last,
		} {
			if _, err := s.pool.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rowsRead is how many rows the server reads in the store's session while do runs.
func rowsRead(t *testing.T, s *Store, do func() error) (rows int) {
	t.Helper()
	return counted(t, s, "Handler_read%", do)
}

// counted is by how much counters of the store's session grow while do runs.
func counted(t *testing.T, s *Store, counters string, do func() error) (by int) {
	t.Helper()
	status := func() (sum int) {
		var counted []struct {
			Name  string `gorm:"column:Variable_name"`
			Value int    `gorm:"column:Value"`
		}
		if err := s.db.Raw("SHOW SESSION STATUS LIKE ?", counters).Scan(&counted).Error; err != nil {
			t.Fatal(err)
		}
		for _, c := range counted {
			if !strings.Contains(c.Name, "deleted") {
				sum += c.Value
			}
		}
		return sum
	}
	from := status()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	return status() - from
}

// lockRow has another transaction lock the row of an item, for which the store waits for a second.
func lockRow(t *testing.T, s *Store, item Item) *sql.Tx {
	t.Helper()
	if _, err := s.pool.ExecContext(t.Context(), "SET innodb_lock_wait_timeout = 1"); err != nil { // in the only connection
		t.Fatal(err)
	}
	other, err := Open(s.config.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	locked, err := other.pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locked.ExecContext(t.Context(), "UPDATE items SET version = version + 1 WHERE id = ?", item.ID); err != nil {
		t.Fatal(err)
	}
	return locked
}

// TestALatePaymentThatMeetsALockIsNoRefusal: the item's row is locked for longer than a statement waits.
func TestALatePaymentThatMeetsALockIsNoRefusal(t *testing.T) {
	s, item := openHolds(t, 1)
	terms := holdTerms
	terms.TakeLate = true
	h := hold(t, s, item, 0, "a")
	if n, _, _, err := s.EndHolds(t.Context(), "shop", 1); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	locked := lockRow(t, s, item)
	pay := func() (Hold, error) {
		return s.Confirm(t.Context(), Author{Subject: "backend"}, h.PublicID, "late", Sale{Strategy: "conditional", Shop: "shop", RequestID: "r"}, terms)
	}
	_, err := pay()
	if _, recorded := s.Payment(t.Context(), "late"); !errors.Is(err, ErrConflict) || !errors.Is(recorded, ErrNotFound) {
		t.Errorf("beside the lock: %v, and the payment: %v; want a conflict and no payment", err, recorded)
	}
	if err := locked.Rollback(); err != nil {
		t.Fatal(err)
	}
	if made, err := pay(); err != nil || made.State != Confirmed {
		t.Errorf("after it: %s %v", made.State, err)
	}
}

// TestOneLockedItemKeepsNoOther: the sweep ends what has none of its units, also behind as many as it ends at once.
func TestOneLockedItemKeepsNoOther(t *testing.T) {
	for _, atOnce := range []int{64, 1} {
		t.Run(fmt.Sprint(atOnce), func(t *testing.T) { keepsNoOther(t, atOnce) })
	}
}

func keepsNoOther(t *testing.T, atOnce int) {
	s, locked := openHolds(t, 2)
	free, err := s.CreateItem(t.Context(), "pen", 2)
	if err != nil {
		t.Fatal(err)
	}
	hold(t, s, locked, 0, "a")
	both := Sale{Subject: "ann", IdempotencyKey: "both", Holds: true}
	both.SetLines([]Line{{ItemID: locked.ID, Quantity: 1}, {ItemID: free.ID, Quantity: 1}})
	if _, err := s.Hold(t.Context(), both, 0, holdTerms); err != nil {
		t.Fatal(err)
	}
	hold(t, s, free, 0, "b")
	row := lockRow(t, s, locked)
	if n, _, _, err := s.EndHolds(t.Context(), "shop", atOnce); n != 1 || err != nil {
		t.Errorf("beside the lock, %d ended, %v; want the one", n, err)
	}
	if now, err := s.View(t.Context(), free.ID); err != nil || now.Stock != 1 || now.Held != 1 {
		t.Errorf("beside the lock: %+v, %v; want a unit back, and one held", now, err)
	}
	if err := row.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n, _, _, err := s.EndHolds(t.Context(), "shop", 64); n != 2 || err != nil {
		t.Errorf("after it, %d ended, %v; want both others", n, err)
	}
}

// TestACancellationOfManyLines sends as many statements as one of two, and a look at the primary three.
func TestACancellationOfManyLines(t *testing.T) {
	s, item := openHolds(t, 1)
	items := []Line{{ItemID: item.ID, Quantity: 1}}
	for range 19 {
		more, err := s.CreateItem(t.Context(), "book", 1)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, Line{ItemID: more.ID, Quantity: 1})
	}
	cancel := func(lines []Line) int {
		wanted := Sale{Strategy: "conditional", Shop: "shop", RequestID: "r"}
		wanted.SetLines(lines)
		sold, err := s.Decrement(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		order, err := s.Order(t.Context(), sold.PublicID) // with the ids of all rows
		if err != nil {
			t.Fatal(err)
		}
		n := counted(t, s, "Questions", func() error {
			_, err := s.Cancel(t.Context(), Author{Subject: "sue", IdempotencyKey: order.PublicID}, Cancelled, order.Rows())
			return err
		})
		for _, row := range order.Rows() {
			now, err := s.Read(t.Context(), row.ItemID)
			entries, noted := s.Changes(t.Context(), row.ItemID)
			last := entries[len(entries)-1]
			if err != nil || noted != nil || now.Stock != 1 || last.Item() != now || *last.OrderID != row.ID || (last.IdempotencyKey != "") != (row.LineOf == nil) {
				t.Errorf("item %d is %+v, %v, and its last entry %+v, %v", row.ItemID, now, err, last, noted)
			}
		}
		return n
	}
	if two, twenty := cancel(items[:2]), cancel(items); two != twenty {
		t.Errorf("%d statements for two lines, and %d for twenty", two, twenty)
	}
	looks := counted(t, s, "Questions", func() error {
		_, err := AtPrimary(t.Context(), s, func(at *Store) (Item, error) { return at.Read(t.Context(), item.ID) })
		return err
	})
	if looks--; looks != 3 { // without that which counts
		t.Errorf("a look at the primary has %d statements, want BEGIN, SELECT and COMMIT", looks)
	}
}

// TestAHoldWithoutLines, which an operator has deleted with an item, is ended like others, and takes no money.
func TestAHoldWithoutLines(t *testing.T) {
	s, item := openHolds(t, 2)
	by := Author{Subject: "ann"}
	overdue, live := hold(t, s, item, 0, "a"), hold(t, s, item, 600, "b")
	if _, err := s.pool.ExecContext(t.Context(), "DELETE FROM hold_lines"); err != nil {
		t.Fatal(err)
	}
	if n, _, _, err := s.EndHolds(t.Context(), "shop", 9); n != 1 || err != nil {
		t.Errorf("%d ended, %v, want %s", n, err, overdue.PublicID)
	}
	if _, err := s.Confirm(t.Context(), by, live.PublicID, "r", Sale{}, holdTerms); !errors.Is(err, ErrPaidLate) {
		t.Errorf("a payment for nothing: %v, want ErrPaidLate", err)
	}
	if p, err := s.Payment(t.Context(), "r"); err != nil || p.State != ToReturn {
		t.Errorf("its money: %+v, %v, want it to be returned", p, err)
	}
	if h, err := s.Move(t.Context(), by, live.PublicID, Release("test")); err != nil || h.State != Released {
		t.Errorf("it is %s, %v", h.State, err)
	}
	if now, err := s.Read(t.Context(), item.ID); err != nil || now.Stock != 0 {
		t.Errorf("%d units, %v, want none back", now.Stock, err)
	}
}
