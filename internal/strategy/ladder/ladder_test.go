package ladder

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/ngrok/sqlmw"
	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/declared/declaredtest"
	"stocklock/internal/strategy/strategytest"
	"stocklock/internal/testserver"
)

func TestStrategies(t *testing.T) { strategytest.All(t, subjects(breakable)) }

func TestDeclarations(t *testing.T) { declaredtest.Consistent(t, Describe(All())) }

func subjects(of []Rung) []strategytest.Subject {
	all := make([]strategytest.Subject, len(of))
	for i, r := range of {
		all[i] = subject(r)
	}
	return all
}

func subject(r Rung) strategytest.Subject {
	s := declaredtest.Subject(r.Strategy, r.Describe())
	if r.View != nil {
		s.View = func(t *testing.T, d strategy.Deps, item stock.Item) { viewsOnce(t, r.View(d), item) }
	}
	return s
}

// viewsOnce wants the points of a page view of the first one, which finds no copy, and none of the second.
func viewsOnce(t *testing.T, view View, it stock.Item) {
	var passed []sale.Point
	ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) { passed = append(passed, p) })
	for range 2 {
		if seen, err := view(ctx, it.ID); err != nil || seen.ID != it.ID || seen.Stock != it.Stock {
			t.Errorf("the page shows %+v, %v, want %+v", seen, err, it)
		}
	}
	if !slices.Equal(passed, sale.ViewPoints) {
		t.Errorf("two page views passed %v, want %v", passed, sale.ViewPoints)
	}
}

func TestRecipes(t *testing.T) {
	delete := declaredtest.KnownCommand(t, strategytest.Deps(t).Redis, deletes)
	strategytest.Recipes(t, subjects(breakable), map[string]string{
		"none":                "",
		"mutex":               "",
		"setnx":               "setnx; del",
		"setnx-expire":        "setnx; pexpire; del",
		"getset":              "setnx; del",
		"getset-server-clock": "time; setnx; del",
		"set-ex-nx":           "set nx px; del",
		"lua-setex":           "evalsha; evalsha",
		"owner-get-del":       "set nx px; get; del",
		"owner-watch":         "set nx px; watch; get; multi del exec",
		"owner-checked":       "set nx px; evalsha",
		"reentrant-fixed":     "evalsha; evalsha",
		"reentrant-timer":     "evalsha; evalsha",
		"reentrant":           "evalsha; evalsha",
		"redlock":             "set nx px; eval",

		"lock-in-transaction":       "evalsha; evalsha",
		"snapshot-before-lock":      "evalsha; evalsha",
		"transaction-in-lock":       "evalsha; evalsha",
		"lock-then-for-update":      "evalsha; evalsha",
		"redis-async":               "evalsha",
		"redis-stream":              "evalsha; xreadgroup; xack xdel",
		"cached-read":               "evalsha; get; set ex; del; evalsha",
		"cached-read-through":       "evalsha; get; set ex; evalsha",
		"cached-page":               "evalsha; del; evalsha",
		"retry-without-key":         "",
		"retry-with-key":            "",
		"ack-first":                 "evalsha; xreadgroup; xack xdel",
		"reservation-unchecked":     "",
		"reservation":               "",
		"get-lock":                  "",
		"buckets":                   "",
		"skip-locked":               "",
		"ledger":                    "",
		"ledger-parent-locked":      "",
		"ledger-serializable":       "",
		"serializable":              "",
		"check-constraint":          "",
		"check-constraint-absolute": "",
		"wrong-key-customer":        "evalsha; evalsha",
		"wrong-key-shop":            "evalsha; evalsha",
		"owner-delex":               "set nx px; " + strings.ToLower(delete), // skipped where the server knows none
	})
}

// TestOwnerDelexLocksNothingThatItCannotFree refuses to sell where the server has no command to free the lock
// with, and sells when it has got one.
func TestOwnerDelexLocksNothingThatItCannotFree(t *testing.T) {
	server := &fakeCommands{}
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	client.AddHook(server)
	d := strategy.Deps{Locks: strategy.Locks{Redis: client}, Options: strategy.Options{Lease: time.Minute, Wait: time.Millisecond, Retry: time.Millisecond}}
	guard, _ := ownerDelex.Build(d)
	hold := func() error { return guard.Do(t.Context(), "lock", func(context.Context, int64) error { return nil }) }
	for _, tt := range []struct {
		knows string
		err   error
		sent  string
	}{
		{"", errNoDelete, "COMMAND"},
		{"DELEX", nil, "COMMAND; SET; DELEX lock IFEQ"},
		{"DELEX", nil, "SET; DELEX lock IFEQ"},
		{"DELIFEQ", nil, "SET; DELEX lock IFEQ"}, // it finds out
		{"DELIFEQ", nil, "COMMAND; SET; DELIFEQ lock"},
	} {
		server.knows, server.sent = tt.knows, nil
		if err := hold(); !errors.Is(err, tt.err) {
			t.Errorf("a server that knows %q: %v, want %v", tt.knows, err, tt.err)
		}
		if got := strings.Join(server.sent, "; "); got != tt.sent {
			t.Errorf("a server that knows %q was sent %q, want %q", tt.knows, got, tt.sent)
		}
	}
}

// fakeCommands answers in place of a server that knows one command more than SET and COMMAND.
type fakeCommands struct {
	redis.Hook
	knows string
	sent  []string
}

func (f *fakeCommands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *fakeCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *fakeCommands) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		name := strings.ToUpper(cmd.Name())
		sent := name
		switch cmd := cmd.(type) {
		case *redis.BoolCmd: // SET NX
			cmd.SetVal(true)
		case *redis.Cmd:
			if name == "COMMAND" {
				about := make([]any, len(cmd.Args())-2)
				for i, asked := range cmd.Args()[2:] {
					if asked == f.knows {
						about[i] = []any{asked}
					}
				}
				cmd.SetVal(about)
				break
			}
			sent = strings.Trim(fmt.Sprint(cmd.Args()[:len(cmd.Args())-1]), "[]") // without the owner's value
			if name != f.knows {
				cmd.SetErr(errors.New("ERR unknown command '" + name + "'"))
			}
		}
		f.sent = append(f.sent, sent)
		return cmd.Err()
	}
}

func TestByNameSaysWhatThereIs(t *testing.T) {
	_, err := ByName("setxn")
	if err == nil || !strings.Contains(err.Error(), `"setxn"`) || !strings.Contains(err.Error(), "set-ex-nx") {
		t.Errorf("ByName of a typo = %v, want the typo and the names there are", err)
	}
	for _, s := range All() {
		if got, err := ByName(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("ByName(%q) = %q, %v", s.Name, got.Name, err)
		}
	}
}

func TestGetSetTakesOverAnExpiredLock(t *testing.T) {
	d := strategytest.Deps(t)
	s := deadlineLock{d, processClock(d)}
	ctx := t.Context()
	if held, err := s.take(ctx, "lock", ""); !held || err != nil {
		t.Fatalf("a free lock = %t, %v, want it", held, err)
	}
	if held, err := s.take(ctx, "lock", ""); held || err != nil {
		t.Errorf("a held lock = %t, %v, want neither", held, err)
	}
	ahead := s
	ahead.now = func(context.Context) (time.Time, error) { return time.Now().Add(2 * d.Lease), nil }
	if held, err := ahead.take(ctx, "lock", ""); !held || err != nil {
		t.Errorf("by a clock that runs ahead = %t, %v, want the lock: that is the flaw", held, err)
	}
	d.Now = func() time.Time { return time.Now().Add(2 * d.Lease) }
	if held, err := (deadlineLock{d, serverClock(d)}).take(ctx, "lock", ""); held || err != nil {
		t.Errorf("by the server's clock = %t, %v, want neither: the skew must not matter", held, err)
	}
}

// TestReleaseLeavesAnothersLockAlone releases a lock that has passed to somebody
// else meanwhile.
func TestReleaseLeavesAnothersLockAlone(t *testing.T) {
	d := strategytest.Deps(t)
	ctx := t.Context()
	type released struct {
		name  string
		by    release
		frees bool
	}
	all := []released{
		{"plain DEL", plainDel(d.Redis, "lock", "me"), true},
		{"GET, DEL", getThenDel(d.Redis, "lock", "me"), false},
		{"WATCH, DEL", watchedDel(d.Redis, "lock", "me"), false},
		{"script", compareAndDelete(d.Redis, "lock", "me"), false},
	}
	command := &deleteCommand{}
	switch err := command.ask(d.Redis); {
	case err == nil:
		all = append(all, released{command.name(), command.deleteIfEqual(d.Redis, "lock", "me"), false})
	case errors.Is(err, errNoDelete):
		t.Logf("not tried: %v", err)
	default:
		t.Fatal(err)
	}
	for _, tt := range all {
		for i := range 200 { // what is rare, too
			if err := d.Redis.Set(ctx, "lock", "somebody else", 0).Err(); err != nil {
				t.Fatal(err)
			}
			_ = tt.by(ctx) // whether it reports the loss differs, what it leaves matters
			left, err := d.Redis.Exists(ctx, "lock").Result()
			if err != nil || (left == 0) != tt.frees {
				t.Fatalf("%s: somebody else's lock still there, release %d: %v, %v, want %v", tt.name, i, left == 1, err, !tt.frees)
			}
		}
	}
}

// TestTheTimerRenewsNoOtherLock: neither one that is gone nor that of another holder.
func TestTheTimerRenewsNoOtherLock(t *testing.T) {
	d := strategytest.Deps(t)
	for _, holder := range []string{"", "somebody else"} {
		if holder != "" {
			d.Redis.HSet(t.Context(), "lock", holder, 1)
			d.Redis.PExpire(t.Context(), "lock", time.Minute)
		}
		err := countedRenewScript.Run(t.Context(), d.Redis, []string{"lock"}, "me", time.Hour.Milliseconds()).Err()
		if left := d.Redis.PTTL(t.Context(), "lock").Val(); err != nil || left > time.Minute {
			t.Errorf("the lock of %q ends in %s, %v", holder, left, err)
		}
		d.Redis.Del(t.Context(), "lock")
	}
}

// TestASaleWaitsForTheCounter: a sale that finds no counter in Redis is refused while another process
// is to set it.
func TestASaleWaitsForTheCounter(t *testing.T) {
	for _, s := range []strategytest.Subject{subject(redisAsync), subject(redisStream)} {
		t.Run(s.Name, func(t *testing.T) {
			d := strategytest.Deps(t)
			it := s.NewItem(t, d, 1)
			seller := s.NewSeller(t, d)
			set := func(key string) {
				if err := d.Redis.Set(t.Context(), declared.KeysOf([]string{key}, it.ID)[0], 1, 0).Err(); err != nil {
					t.Error(err)
				}
			}
			set(counted.RareKeys[0])
			times := 0
			ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
				if p == sale.Waiting {
					times++
					set(counted.Keys[0])
				}
			})
			if _, err := seller.Sell(ctx, stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
				t.Fatalf("Sell: %v", err)
			}
			if times != 1 {
				t.Errorf("it passed waiting %d times, want once", times)
			}
		})
	}
}

// TestTheStreamReturnsTheUnitsOfARepeat: a sale under the key of an order leaves its units to others.
func TestTheStreamReturnsTheUnitsOfARepeat(t *testing.T) {
	d := strategytest.Deps(t)
	it := subject(redisStream).NewItem(t, d, 3)
	seller := strategytest.NewSeller(t, redisStream.Strategy, d)
	for i, tt := range []struct {
		key  string
		want error
	}{{"one", nil}, {"one", stock.ErrRepeated}, {"one", stock.ErrRepeated}, {"two", nil}, {"three", nil}, {"four", stock.ErrSoldOut}} {
		sold := stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: fmt.Sprint(i), Shop: "test", IdempotencyKey: tt.key}
		if _, err := seller.Sell(t.Context(), sold); !errors.Is(err, tt.want) {
			t.Errorf("sale %d, under the key %s: %v, want %v", i, tt.key, err, tt.want)
		}
	}
}

// TestTheStreamReturnsTheUnitsOfARefusal: where Redis counts more than there is, each unit is sold.
func TestTheStreamReturnsTheUnitsOfARefusal(t *testing.T) {
	d := strategytest.Deps(t)
	it := subject(redisStream).NewItem(t, d, 1)
	seller := strategytest.NewSeller(t, redisStream.Strategy, d)
	d.Redis.Set(t.Context(), counterKey(it.ID), 2, 0)
	wanted := stock.Sale{ItemID: it.ID, Quantity: 2, RequestID: "two", Shop: "test"}
	if _, err := seller.Sell(t.Context(), wanted); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("two of one unit: %v, want ErrSoldOut", err)
	}
	wanted.Quantity, wanted.RequestID = 1, "one"
	if _, err := seller.Sell(t.Context(), wanted); err != nil {
		t.Errorf("the last unit: %v", err)
	}
}

// TestTheStreamHasAMessageTwice: the units of a message whose order was written before do not return.
func TestTheStreamHasAMessageTwice(t *testing.T) {
	d := strategytest.Deps(t)
	it := subject(redisStream).NewItem(t, d, 3)
	seller := strategytest.NewSeller(t, redisStream.Strategy, d)
	wanted := stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: "r", Shop: "test"}
	order, err := seller.Sell(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	again := wanted
	again.OrderID = order.PublicID
	message, _ := json.Marshal(again)
	for _, shop := range d.Redis.SMembers(t.Context(), streamsKey).Val() {
		d.Redis.XAdd(t.Context(), &redis.XAddArgs{Stream: streamKey(shop), Values: []any{streamField, message}})
	}
	if _, err := seller.Sell(t.Context(), wanted); err != nil { // after that message
		t.Fatal(err)
	}
	if left, err := d.Redis.Get(t.Context(), counterKey(it.ID)).Int64(); err != nil || left != 1 {
		t.Errorf("%d units are left in Redis, %v, want 1", left, err)
	}
}

// TestAConfirmationIsRepeated lets another transaction win against the confirmation.
func TestAConfirmationIsRepeated(t *testing.T) {
	strategytest.Repeats(t, subject(reservation), sale.Write, "SELECT h.id FROM holds h JOIN hold_lines l ON l.hold_id = h.id WHERE l.item_id = ? FOR UPDATE")
}

// TestTheStateOfAHoldDecides has the time of a hold be over when it is confirmed, before a sweep and after it.
func TestTheStateOfAHoldDecides(t *testing.T) {
	d := strategytest.Deps(t)
	d.Lease = time.Hour // its own sweep does not come
	for _, swept := range []int{0, 1} {
		item := stocktest.Item(t, d.Store, 1)
		ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
			switch p {
			case sale.Write:
				for _, table := range []string{"holds SET held_until = '1970-01-02',", "hold_lines SET"} {
					if _, err := d.Store.Pool().ExecContext(t.Context(), "UPDATE "+table+" live_until = '1970-01-02' WHERE live_until IS NOT NULL"); err != nil {
						t.Error(err)
					}
				}
				if ended, _, _, err := d.Store.EndHolds(t.Context(), "test", swept); ended != swept || err != nil {
					t.Errorf("a sweep ended %d holds, %v, want %d", ended, err, swept)
				}
			case sale.Waiting:
				t.Error("a confirmation of an expired hold was repeated")
			}
		})
		_, err := strategytest.NewSeller(t, reservation.Strategy, d).Sell(ctx, stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"})
		if swept == 0 && err != nil || swept == 1 && !errors.Is(err, stock.ErrConflict) {
			t.Errorf("a hold that is overdue, and of which %d were swept: %v", swept, err)
		}
	}
}

// TestUnitsThatComeBackAreNotSoldOut has a sweep end the only hold while another sale looks why it finds no unit.
func TestUnitsThatComeBackAreNotSoldOut(t *testing.T) {
	dsn := stocktest.Database(t)
	direct := stocktest.OpenAt(t, dsn)
	item := stocktest.Item(t, direct, 1)
	r, wanted := &reservations{}, stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"} // whose holds are overdue
	if _, err := r.hold(t.Context(), direct, wanted); err != nil {
		t.Fatal(err)
	}
	ended := 0
	store := stocktest.OpenAt(t, dsn, stock.WithPool(testserver.Intercept(testserver.Statements{Before: func(statement string, _ []driver.NamedValue) (err error) {
		if strings.Contains(statement, "SUM(quantity)") {
			ended, _, _, err = direct.EndHolds(t.Context(), "test", 1)
		}
		return err
	}})))
	if _, err := r.hold(t.Context(), store, wanted); !errors.Is(err, stock.ErrConflict) || ended != 1 {
		t.Errorf("while %d units come back: %v, want ErrConflict", ended, err)
	}
}

// TestAnUnansweredCommitStaysUnknown: that of the first try is under way when the second one loses against it, and is
// done before a third one, or later. Or the time of the request is over.
func TestAnUnansweredCommitStaysUnknown(t *testing.T) {
	errOver := errors.New("nothing was done")
	for _, tt := range []struct {
		Rung
		meanwhile string
	}{{retryWithKey, "it is done"}, {retryWithKey, "it is under way"}, {retryWithKey, "the time is over"}, {retryWithoutKey, "the time is over"}} {
		dsn := stocktest.Database(t)
		direct := stocktest.OpenAt(t, dsn)
		item := stocktest.Item(t, direct, 2)
		first := stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"}
		ctx, cancel := context.WithCancelCause(t.Context())
		commits, updates := 0, 0
		d := strategy.Deps{Options: strategy.Options{Wait: time.Second, Retry: time.Millisecond}}
		d.Store = stocktest.OpenAt(t, dsn, stock.WithPool(testserver.Intercept(testserver.Statements{Before: func(statement string, args []driver.NamedValue) (err error) {
			switch verb, _, _ := strings.Cut(statement, " "); verb {
			case "INSERT":
				for _, arg := range args {
					if id, _ := arg.Value.(string); first.OrderID == "" && uuid.Validate(id) == nil {
						first.OrderID = id
					}
				}
			case "COMMIT":
				if commits++; commits == 1 {
					if tt.meanwhile == "the time is over" {
						cancel(errOver)
					}
					return &mysqldriver.MySQLError{Number: 1180}
				}
			case "UPDATE":
				if updates++; updates == 2 || updates > 2 && tt.meanwhile == "it is under way" {
					return &mysqldriver.MySQLError{Number: 1205}
				}
				if updates == 3 {
					_, err = direct.Decrement(t.Context(), first)
				}
			}
			return err
		}})))
		wanted := first
		_, err := strategytest.NewSeller(t, tt.Strategy, d).Sell(ctx, wanted)
		orders, listErr := direct.ItemOrders(t.Context(), item.ID)
		if !errors.Is(err, stock.ErrUnknown) || errors.Is(err, errOver) || listErr != nil || len(orders) > 1 || first.OrderID == "" {
			t.Errorf("%s, and %s: %v, and %d orders, %v; want ErrUnknown", tt.Name, tt.meanwhile, err, len(orders), listErr)
		}
		cancel(nil)
	}
}

// TestMoreThanThePoolIsSold, and no unit of the pool is left out.
func TestMoreThanThePoolIsSold(t *testing.T) {
	d := strategytest.Deps(t)
	item := stocktest.Item(t, d.Store, 2*unitPool+unitPool/2)
	seller := strategytest.NewSeller(t, skipLocked.Strategy, d)
	for _, tt := range []struct {
		quantity int64
		want     error
	}{{1, nil}, {2 * unitPool, nil}, {2 * unitPool, stock.ErrSoldOut}, {unitPool / 2, stock.ErrSoldOut}, {unitPool/2 - 1, nil}, {1, stock.ErrSoldOut}} {
		if _, err := seller.Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: tt.quantity, RequestID: "r", Shop: "test"}); !errors.Is(err, tt.want) {
			t.Errorf("%d units: %v, want %v", tt.quantity, err, tt.want)
		}
	}
}

// TestUnitsComeBackToAPool that has some: all are for sale.
func TestUnitsComeBackToAPool(t *testing.T) {
	d := strategytest.Deps(t)
	item := stocktest.Item(t, d.Store, 10)
	sell := func(quantity int64) error {
		_, err := strategytest.NewSeller(t, skipLocked.Strategy, d).Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: quantity, RequestID: "r", Shop: "test"})
		return err
	}
	if err := sell(1); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Store.Restock(t.Context(), stock.Author{RequestID: "r", Shop: "test"}, item.ID, 10); err != nil {
		t.Fatal(err)
	}
	for _, quantity := range []int64{10, 9} {
		if err := sell(quantity); err != nil {
			t.Errorf("%d units: %v", quantity, err)
		}
	}
}

// TestAnOrderWrittenLaterIsRepeated lets another transaction win against an order that was answered.
func TestAnOrderWrittenLaterIsRepeated(t *testing.T) {
	strategytest.Repeats(t, subject(redisAsync), sale.Write, "SELECT id FROM items WHERE id = ? FOR UPDATE")
}

// TestUnitsThatAreGoneAreNotSold has another transaction take the units that a sale has chosen, as
// where a proxy sends the choice to another server.
func TestUnitsThatAreGoneAreNotSold(t *testing.T) {
	dsn := stocktest.Database(t)
	store := stocktest.OpenAt(t, dsn, stock.WithPool(testserver.Intercept(&splitting{dsn: dsn})))
	d := strategy.Deps{Store: store, Options: strategy.Options{Wait: 30 * time.Second, Retry: time.Millisecond}}
	item := stocktest.Item(t, d.Store, 1)
	order, err := strategytest.NewSeller(t, skipLocked.Strategy, d).Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"})
	if !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("sold %+v, %v, after the only unit was gone, want ErrSoldOut", order, err)
	}
}

// splitting deletes the units that a sale has chosen.
type splitting struct {
	sqlmw.NullInterceptor
	dsn string
}

func (s *splitting) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	plain, chosen := strings.CutSuffix(query, "FOR UPDATE SKIP LOCKED")
	rows, err := conn.QueryContext(ctx, plain, args)
	if chosen && err == nil {
		var db *sql.DB
		if db, err = sql.Open("mysql", s.dsn); err == nil {
			defer db.Close()
			_, err = db.ExecContext(ctx, "DELETE FROM stock_units")
		}
	}
	return ctx, rows, err
}

// TestAFreshShopWritesItsFirstSale: from its first message on, no other shop may take it for dead and
// write its stream.
func TestAFreshShopWritesItsFirstSale(t *testing.T) {
	d := strategytest.Deps(t)
	it := subject(redisStream).NewItem(t, d, 1)
	seller := strategytest.NewSeller(t, redisStream.Strategy, d)
	ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
		if p != sale.Read { // the message is in the stream
			return
		}
		for _, shop := range d.Redis.SMembers(t.Context(), streamsKey).Val() {
			if left := d.Redis.PTTL(t.Context(), aliveKey(shop)).Val(); left <= 0 || left > d.Lease {
				t.Errorf("others take the shop for dead: its key is there for %s", left)
			}
		}
	})
	if _, err := seller.Sell(ctx, stock.Sale{ItemID: it.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
		t.Fatal(err)
	}
}

// TestWhatAColumnSaysBelowZero takes the last unit and one more from columns that refuse that, and from
// one that does not.
func TestWhatAColumnSaysBelowZero(t *testing.T) {
	d := strategytest.Deps(t)
	db := d.Store.Pool()
	for _, tt := range []struct {
		column, mode, update string
		refused              bool
	}{
		{"BIGINT, CHECK (stock >= 0)", "STRICT_ALL_TABLES", "stock = stock - 2", true},
		{"BIGINT, CHECK (stock >= 0)", "", "stock = stock - 2", true},
		{"BIGINT UNSIGNED", "STRICT_ALL_TABLES", "stock = stock - 2", true},
		{"BIGINT UNSIGNED", "STRICT_ALL_TABLES,NO_UNSIGNED_SUBTRACTION", "stock = stock - 2", true},
		{"BIGINT UNSIGNED", "STRICT_ALL_TABLES", "stock = -1", true},
		{"BIGINT UNSIGNED", "NO_UNSIGNED_SUBTRACTION", "stock = stock - 2", false}, // it stores 0, and says nothing
	} {
		t.Run(tt.column+" "+tt.mode+" "+tt.update, func(t *testing.T) {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for _, statement := range []string{
				"SET SESSION sql_mode = '" + tt.mode + "'", "DROP TABLE IF EXISTS below",
				"CREATE TABLE below (stock " + tt.column + ") ENGINE = InnoDB", "INSERT INTO below (stock) VALUES (1)",
			} {
				if _, err := conn.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			_, err = conn.ExecContext(t.Context(), "UPDATE below SET "+tt.update)
			if got := errors.Is(soldOutByColumn(err), stock.ErrSoldOut); got != tt.refused || !tt.refused && err != nil {
				t.Errorf("it said %v, which means sold out: %t, want %t", err, got, tt.refused)
			}
		})
	}
}

// TestTheLocksOfALedgerEndAtItsItem: while a sale has locked what it summed up, neighbours sell, and a new
// item can be made.
func TestTheLocksOfALedgerEndAtItsItem(t *testing.T) {
	d := strategytest.Deps(t)
	before, it, after := subject(ledgerSerializable).NewItem(t, d, 2), subject(ledgerSerializable).NewItem(t, d, 2), subject(ledgerSerializable).NewItem(t, d, 2)
	seller := strategytest.NewSeller(t, ledgerSerializable.Strategy, d)
	sell := func(ctx context.Context, item uint64) error {
		_, err := seller.Sell(ctx, stock.Sale{ItemID: item, Quantity: 1, RequestID: "r", Shop: "test"})
		return err
	}
	ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
		if p != sale.Write {
			return
		}
		for _, item := range []uint64{before.ID, after.ID, subject(ledgerSerializable).NewItem(t, d, 1).ID} {
			if err := sell(t.Context(), item); err != nil {
				t.Errorf("a sale of item %d beside one of item %d: %v", item, it.ID, err)
			}
		}
	})
	if err := sell(ctx, it.ID); err != nil {
		t.Error(err)
	}
}
