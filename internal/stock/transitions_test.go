package stock_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
)

// transition is a request that changes a hold of two of an item's three units, and of one of another's.
type transition struct {
	name     string
	from, to stock.HoldState // from is empty for the request that makes it
	seconds  int64           // for which it was made
	do       func(s *stock.Store, h holding) (stock.Hold, error)
}

// holding is the items and the hold of a transition.
type holding struct {
	t     *testing.T
	items [2]stock.Item
	key   string
	id    string
}

var (
	byAnn      = stock.Author{Subject: "ann", RequestID: "r", Shop: "shop"}
	transTerms = stock.Terms{Open: 1_000_000, Longest: time.Hour, TakeLate: true}
)

func (h holding) reserve(s *stock.Store, seconds int64) (stock.Hold, error) {
	wanted := stock.Sale{Subject: "ann", IdempotencyKey: h.key, RequestID: "r", Limit: 1000, Holds: true}
	wanted.SetLines([]stock.Line{{ItemID: h.items[0].ID, Quantity: 2}, {ItemID: h.items[1].ID, Quantity: 1}})
	return s.Hold(h.t.Context(), wanted, seconds, transTerms)
}

func (h holding) pay(s *stock.Store) (stock.Hold, error) {
	return s.Confirm(h.t.Context(), byAnn, h.id, "ref-"+h.id, stock.Sale{Strategy: "test", Shop: "shop", RequestID: "r", Limit: 1000, Holds: true}, transTerms)
}

func transitions() (all []transition) {
	reserve := func(s *stock.Store, h holding) (stock.Hold, error) {
		made, err := h.reserve(s, 600)
		if errors.Is(err, stock.ErrRepeated) { // as the shop does
			made, err = s.HoldByKey(h.t.Context(), "ann", h.key)
		}
		return made, err
	}
	pay := func(s *stock.Store, h holding) (stock.Hold, error) { return h.pay(s) }
	sweep := func(s *stock.Store, h holding) (stock.Hold, error) {
		if _, _, _, err := s.EndHolds(h.t.Context(), "shop", 64); err != nil {
			return stock.Hold{}, err
		}
		return s.HoldByID(h.t.Context(), h.id)
	}
	release := func(s *stock.Store, h holding) (stock.Hold, error) {
		return s.Move(h.t.Context(), byAnn, h.id, stock.Release("test"))
	}
	for _, from := range []stock.HoldState{stock.Held, stock.Paying} {
		all = append(all,
			transition{"a confirmation", from, stock.Confirmed, 600, pay},
			transition{"a release", from, stock.Released, 600, release},
			transition{"a sweep", from, stock.Expired, 0, sweep})
	}
	return append(all,
		transition{"a reservation", "", stock.Held, 600, reserve},
		transition{"an extension", stock.Held, stock.Held, 600, func(s *stock.Store, h holding) (stock.Hold, error) {
			return s.Move(h.t.Context(), byAnn, h.id, stock.Extend(60, transTerms))
		}},
		transition{"a payment", stock.Held, stock.Paying, 600, func(s *stock.Store, h holding) (stock.Hold, error) {
			return s.Move(h.t.Context(), byAnn, h.id, stock.BeginPayment(transTerms))
		}},
		transition{"a failure", stock.Paying, stock.Released, 600, func(s *stock.Store, h holding) (stock.Hold, error) {
			return s.Move(h.t.Context(), byAnn, h.id, stock.Fail())
		}},
		transition{"a late payment", stock.Expired, stock.Confirmed, 0, pay})
}

// TestATransitionIsMadeOrNot ends the connection of each transition at each of its packets, before or after the
// server has it, as kill -9 of a shop does. The transition is then made as a whole, or not at all. An answer is
// true, and after an error the same request finds what was made, or makes it.
func TestATransitionIsMadeOrNot(t *testing.T) {
	var n, at atomic.Int64 // packets, and at which of them the connection ends; 0 for none
	var deliver atomic.Bool
	ended := make(chan struct{})
	direct, store := openBehind(t, func() meddler {
		return func(packet []byte, client, server net.Conn) bool {
			if at.Load() == 0 || n.Add(1) != at.Load() {
				return false
			}
			client.Close()
			if deliver.Load() {
				server.Write(packet)
			}
			server.(*net.TCPConn).CloseWrite()
			for _, err := server.Read(make([]byte, 1<<10)); err == nil; _, err = server.Read(make([]byte, 1<<10)) {
			}
			ended <- struct{}{}
			return true
		}
	})
	store.Pool().SetMaxIdleConns(0) // with the connection of a look, the next transition would have fewer packets
	for _, tr := range transitions() {
		t.Run(fmt.Sprintf("%s of %q", tr.name, tr.from), func(t *testing.T) {
			cuts := 0
			for i, met := int64(0), true; met; i++ {
				h := tr.begin(t, direct, fmt.Sprint(t.Name(), i))
				deliver.Store(i%2 == 1)
				n.Store(0)
				at.Store(1 + i/2)
				got, err := tr.do(store, h)
				if met = n.Load() >= at.Swap(0); met {
					<-ended
					cuts++
				}
				tr.check(t, direct, h, got, err)
				if moves := tr.from != "" && tr.from != tr.to && tr.to != stock.Expired; err == nil && got.Moved != moves {
					t.Errorf("packet %d, delivered %t: moved is %t, want %t", 1+i/2, i%2 == 1, got.Moved, moves)
				}
				if err != nil {
					got, err = tr.do(direct, h)
					if err != nil {
						t.Errorf("packet %d, delivered %t: the same request again: %v", 1+i/2, i%2 == 1, err)
					}
					tr.check(t, direct, h, got, err)
				}
			}
			if cuts < 8 {
				t.Errorf("%d connections ended: this test cuts nothing", cuts)
			}
		})
	}
}

// begin makes the items, and a hold in the state before the transition.
func (tr transition) begin(t *testing.T, s *stock.Store, key string) holding {
	t.Helper()
	h := holding{t: t, items: [2]stock.Item{stocktest.Item(t, s, 3), stocktest.Item(t, s, 3)}, key: key[max(0, len(key)-64):]}
	if tr.from == "" {
		return h
	}
	made, err := h.reserve(s, tr.seconds)
	if h.id = made.PublicID; err == nil && tr.from == stock.Paying {
		_, err = s.Move(t.Context(), byAnn, h.id, stock.BeginPayment(transTerms))
	}
	if err == nil && tr.from == stock.Expired {
		_, _, _, err = s.EndHolds(t.Context(), "shop", 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// check compares the tables with each other, and with the answer.
func (tr transition) check(t *testing.T, s *stock.Store, h holding, got stock.Hold, answer error) {
	t.Helper()
	for what, query := range map[string]string{
		"units but three of an item": "SELECT COUNT(*) FROM items i WHERE stock + (SELECT COALESCE(SUM(quantity), 0) FROM hold_lines WHERE item_id = i.id AND live_until IS NOT NULL)" +
			" + (SELECT COALESCE(SUM(quantity), 0) FROM orders WHERE item_id = i.id AND cancelled_at IS NULL) <> 3",
		"holds without their whole history": "SELECT COUNT(*) FROM holds h WHERE (SELECT COUNT(*) FROM hold_history WHERE hold_id = h.id) <> steps" +
			" OR (SELECT becomes FROM hold_history WHERE hold_id = h.id AND n = h.steps) <> state",
		"lines that are not as their hold":         "SELECT COUNT(*) FROM holds h LEFT JOIN hold_lines l ON l.hold_id = h.id WHERE NOT (l.live_until <=> h.live_until) OR l.hold_id IS NULL",
		"confirmed holds without order or payment": "SELECT COUNT(*) FROM holds h WHERE state = 'confirmed' AND ((SELECT COUNT(*) FROM payments WHERE paid = h.public_id AND state = 'taken') <> 1 OR (SELECT COUNT(*) FROM orders f JOIN orders o ON o.id = f.id OR o.line_of = f.id WHERE f.public_id = h.order_id) <> 2)",
		"orders or payments without a hold":        "SELECT (SELECT COUNT(*) FROM orders) + (SELECT COUNT(*) FROM payments) - 3 * (SELECT COUNT(*) FROM holds WHERE state = 'confirmed')",
	} {
		var n int
		if err := s.Pool().QueryRowContext(t.Context(), query).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d, %v; the answer was %v", what, n, err, answer)
		}
	}
	if answer != nil {
		return
	}
	if now, err := s.HoldByID(t.Context(), got.PublicID); err != nil || now.State != tr.to || got.State != tr.to {
		t.Errorf("the answer says %s, and the hold is %s, %v; want %s", got.State, now.State, err, tr.to)
	}
}

// TestUnitsThatComeBackAreAConflict restocks an item after a sale's UPDATE has found too few units, and before the
// sale looks why. Without reservations nobody held them, and the item was sold out.
func TestUnitsThatComeBackAreAConflict(t *testing.T) {
	var restock atomic.Pointer[func()]
	direct, store := openBehind(t, func() meddler {
		refused := false
		return func(packet []byte, _, _ net.Conn) bool {
			if refused { // the transaction is over
				if back := restock.Swap(nil); back != nil {
					(*back)()
				}
			}
			refused = bytes.Contains(packet, []byte("\x03ROLLBACK"))
			return false
		}
	})
	for holds, want := range map[bool]error{false: stock.ErrSoldOut, true: stock.ErrConflict} {
		item := stocktest.Item(t, direct, 0)
		back := func() {
			if _, err := direct.Restock(t.Context(), stock.Author{Subject: "staff", IdempotencyKey: fmt.Sprint(item.ID)}, item.ID, 1); err != nil {
				t.Error(err)
			}
		}
		restock.Store(&back)
		sale := one(item)
		sale.Holds = holds
		if _, err := store.Decrement(t.Context(), sale); !errors.Is(err, want) || restock.Load() != nil {
			t.Errorf("holds %t: %v, want %v", holds, err, want)
		}
	}
}

// hold has an item of ten units, of which a customer holds some.
func hold(t *testing.T, store *stock.Store, subject string, units int64) (stock.Item, stock.Hold) {
	t.Helper()
	item := stocktest.Item(t, store, 10)
	held, err := store.Hold(t.Context(), stock.Sale{ItemID: item.ID, Quantity: units, Subject: subject, IdempotencyKey: "k-hold", RequestID: "of " + subject}, 60,
		stock.Terms{Open: 5})
	if err != nil {
		t.Fatal(err)
	}
	return item, held
}

// TestUnitsThatComeBackToAWithdrawnItem were held when it was withdrawn.
func TestUnitsThatComeBackToAWithdrawnItem(t *testing.T) {
	store := stocktest.Open(t)
	item, held := hold(t, store, "ann", 3)
	by := stock.Author{Subject: "staff", IdempotencyKey: "k"}
	if _, err := store.Offer(t.Context(), by, item.ID, stock.Withdrawn); err != nil {
		t.Fatal(err)
	}
	sale := one(item)
	sale.Holds = true
	if _, err := store.Decrement(t.Context(), sale); !errors.Is(err, stock.ErrSoldOut) || errors.Is(err, stock.ErrHeld) {
		t.Errorf("a sale while others hold units of the withdrawn item: %v, want ErrSoldOut", err)
	}
	if _, err := store.Move(t.Context(), by, held.PublicID, stock.Release("")); err != nil {
		t.Fatal(err)
	}
	if now, err := store.Read(t.Context(), item.ID); err != nil || now.Stock != 0 || *now.Withdrawn != 10 {
		t.Errorf("the item is %+v, %v, want 10 units, all withdrawn", now, err)
	}
}

// TestEraseHolds leaves live ones, which have to end before.
func TestEraseHolds(t *testing.T) {
	store := stocktest.Open(t)
	_, held := hold(t, store, "ann", 3)
	if _, err := store.Erase(t.Context(), "ann"); !errors.Is(err, stock.ErrHolding) {
		t.Errorf("erase while a hold is live: %v, want ErrHolding", err)
	}
	if _, err := store.Move(t.Context(), stock.Author{Subject: "ann"}, held.PublicID, stock.Release("")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Erase(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{"holds.subject", "holds.ended_by", "hold_lines.subject", "hold_history.done_by", "hold_keys.subject", "hold_customers.subject"} {
		var n int
		table, name, _ := strings.Cut(column, ".")
		if err := store.Pool().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE "+name+" = 'ann'").Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows of %s name the customer, %v", n, column, err)
		}
	}
	if now, err := store.HoldByID(t.Context(), held.PublicID); err != nil || now.State != stock.Released {
		t.Errorf("the hold is %+v, %v, want it released", now, err)
	}
}

// held makes a hold of a unit of each item that is overdue at once.
func held(t *testing.T, store *stock.Store, key string, items ...stock.Item) {
	t.Helper()
	var lines []stock.Line
	for _, item := range items {
		lines = append(lines, stock.Line{ItemID: item.ID, Quantity: 1})
	}
	wanted := stock.Sale{Subject: "ann", IdempotencyKey: key, RequestID: "r", Holds: true}
	wanted.SetLines(lines)
	if _, err := store.Hold(t.Context(), wanted, 0, transTerms); err != nil {
		t.Fatal(err)
	}
}

// TestASweepThatWaitsForAnItemLocksNoOther: it locks neither an item with a lower id nor a hold. Two items of one hold are waited
// for one after the other.
func TestASweepThatWaitsForAnItemLocksNoOther(t *testing.T) {
	dsn := stocktest.Database(t)
	store := stocktest.OpenAt(t, dsn)
	sweeper := stocktest.OpenAt(t, dsn+"?innodb_lock_wait_timeout=60&readTimeout=2m", stock.WithExtraTime(time.Minute))
	free, stuck, busy := stocktest.Item(t, store, 2), stocktest.Item(t, store, 2), stocktest.Item(t, store, 2)
	held(t, store, "1", free, stuck, busy)
	ended := make(chan error, 1)
	unlock := map[uint64]func() error{}
	for _, item := range []stock.Item{stuck, busy} {
		tx, err := store.Pool().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "UPDATE items SET version = version WHERE id = ?", item.ID); err != nil {
			t.Fatal(err)
		}
		unlock[item.ID] = tx.Rollback
	}
	go func() {
		n, _, _, err := sweeper.EndHolds(t.Context(), "shop", 64)
		if n != 1 {
			err = errors.Join(err, fmt.Errorf("%d holds were ended, want the one", n))
		}
		ended <- err
	}()
	stocktest.AwaitLockWait(t, store) // the sweep
	if _, err := store.Decrement(t.Context(), one(free)); err != nil {
		t.Errorf("a sale of an item that is free: %v", err)
	}
	var locked int
	if err := store.Pool().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM (SELECT id FROM holds FOR UPDATE SKIP LOCKED) AS h").Scan(&locked); err != nil || locked != 1 {
		t.Errorf("%d of 1 holds can be locked beside it: %v", locked, err)
	}
	if err := unlock[stuck.ID](); err != nil {
		t.Error(err)
	}
	stocktest.AwaitLockWait(t, store)
	if err := errors.Join(unlock[busy.ID](), <-ended); err != nil {
		t.Error(err)
	}
	for item, want := range map[uint64]int64{free.ID: 1, stuck.ID: 2, busy.ID: 2} {
		if left := stocktest.Left(t, store, item); left != want {
			t.Errorf("%d units of item %d are left, want %d", left, item, want)
		}
	}
}

// TestASweepOfItemsThatWereDeleted ends their holds.
func TestASweepOfItemsThatWereDeleted(t *testing.T) {
	store := stocktest.Open(t)
	a, b := stocktest.Item(t, store, 2), stocktest.Item(t, store, 2)
	held(t, store, "1", a, b)
	if _, err := store.Pool().ExecContext(t.Context(), "DELETE FROM items"); err != nil {
		t.Fatal(err)
	}
	if n, _, _, err := store.EndHolds(t.Context(), "shop", 64); n != 1 || err != nil {
		t.Errorf("%d holds were ended, %v, want the one", n, err)
	}
}
