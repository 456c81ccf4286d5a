package labmode

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

// scheduler is the other end of a stepper.
type scheduler struct {
	t    *testing.T
	conn net.Conn
	in   *json.Decoder
}

func newStepper(t *testing.T) (*Stepper, scheduler) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s, err := OpenStepper(listener.Addr().String(), "shop-1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	at := scheduler{t, conn, json.NewDecoder(conn)}
	if hello := at.next(); hello.Shop != "shop-1" {
		t.Fatalf("the first report is %+v, want the shop's name", hello)
	}
	return s, at
}

func (s scheduler) next() (r StepReport) {
	s.t.Helper()
	s.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if err := s.in.Decode(&r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s scheduler) order(o StepOrder) {
	s.t.Helper()
	if err := json.NewEncoder(s.conn).Encode(o); err != nil {
		s.t.Fatal(err)
	}
}

func unhooked(context.Context, sale.Point, []slog.Attr) {}

func TestARequestOfASaleIsHeldUntilItMayGo(t *testing.T) {
	s, scheduler := newStepper(t)
	ctx, hook := s.Sale(t.Context(), "r-1", unhooked)
	hook(ctx, sale.Acquired, nil)
	held := make(chan error, 1)
	get := request{server: RedisServer, name: "get", text: "GET stock:1"}
	go func() {
		number, order := s.wait(ctx, get)
		held <- s.done(ctx, get, number, order, "1", nil)
	}()
	hold := scheduler.next()
	if hold.Hold == 0 || hold.Sale != "r-1" || hold.Name != "get" || hold.Text != "GET stock:1" || hold.Phase != sale.Acquired {
		t.Errorf("held: %+v", hold)
	}
	select {
	case <-held:
		t.Fatal("the request was sent before it was let go")
	case <-time.After(50 * time.Millisecond):
	}
	scheduler.order(StepOrder{Go: hold.Hold, Lose: true})
	if err := <-held; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a lost answer is %v to the sale, want a timeout", err)
	}
	if done := scheduler.next(); done.Done != hold.Hold || done.Answer != "1" || !done.Lost {
		t.Errorf("done: %+v", done)
	}
}

func TestARequestOfNoSaleIsShownAndNotHeld(t *testing.T) {
	s, scheduler := newStepper(t)
	renew := request{server: RedisServer, name: "script", text: "EVALSHA abc 1 stock:1"}
	number, order := s.wait(t.Context(), renew)
	if err := s.done(t.Context(), renew, number, order, "1", nil); err != nil || number != 0 {
		t.Errorf("number %d, %v", number, err)
	}
	if done := scheduler.next(); !done.Own || done.Text != renew.text {
		t.Errorf("shown as %+v", done)
	}
}

func TestAScriptSentWithItsSourceIsOneStep(t *testing.T) {
	for _, sent := range []struct {
		name  string
		known bool // the server was first asked for the script by its sum, and did not know it
	}{{"EVAL at once", false}, {"EVAL after EVALSHA", true}} {
		s, scheduler := newStepper(t)
		ctx, _ := s.Sale(t.Context(), "r-1", unhooked)
		steps := redisSteps{s, RedisServer}
		answered := make(chan error, 1)
		go func() {
			if sent.known {
				asked := redis.NewCmd(ctx, "EVALSHA", "sum", 1, "stock:1")
				steps.ProcessHook(func(context.Context, redis.Cmder) error { return noScript{} })(ctx, asked)
			}
			answered <- steps.ProcessHook(func(context.Context, redis.Cmder) error { return nil })(ctx, redis.NewCmd(ctx, "EVAL", "return 1", 1, "stock:1"))
		}()
		hold := scheduler.next()
		if hold.SHA != "" {
			hold = scheduler.next() // the source came first
		}
		if hold.Hold == 0 || hold.Name != "acquire" {
			t.Fatalf("%s: reported as %+v, want a step that is held", sent.name, hold)
		}
		scheduler.order(StepOrder{Go: hold.Hold})
		if err := <-answered; err != nil {
			t.Errorf("%s: %v", sent.name, err)
		}
		done := scheduler.next()
		if done.SHA != "" {
			done = scheduler.next()
		}
		if done.Done != hold.Hold {
			t.Errorf("%s: then %+v, want the end of the same step", sent.name, done)
		}
	}
}

// noScript is what Redis answers to EVALSHA for a script that it does not have.
type noScript struct{}

func (noScript) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }
func (noScript) RedisError()   {}

func TestNothingIsHeldForASchedulerThatHasGone(t *testing.T) {
	s, scheduler := newStepper(t)
	ctx, _ := s.Sale(t.Context(), "r-1", unhooked)
	gone := make(chan struct{})
	go func() {
		s.wait(ctx, request{server: RedisServer, name: "get"})
		s.wait(ctx, request{server: RedisServer, name: "get"})
		close(gone)
	}()
	scheduler.next()
	scheduler.conn.Close()
	select {
	case <-gone:
	case <-time.After(HoldLimit / 4):
		t.Error("still held")
	}
}

// TestHoldsAtTheLimitEndNoSale by a deadline: each is seen by itself.
func TestHoldsAtTheLimitEndNoSale(t *testing.T) {
	stepper, _ := newStepper(t)
	if with, without := extraTime(stepper), extraTime(nil); with < 10*HoldLimit || without != MaxDuration {
		t.Errorf("a deadline is %s later where requests are held, and %s elsewhere", with, without)
	}
}

func TestTheTimeForWhichARequestIsHeldDoesNotCount(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	late, cancelLate := lateStart(over, time.Now())
	defer cancelLate()
	if late.Err() != nil {
		t.Errorf("the context of a request that was held past its deadline: %v", late.Err())
	}
	cancelled, cancelNow := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	cancelNow()
	if still, _ := lateStart(cancelled, time.Now()); still.Err() == nil {
		t.Error("a request that was cancelled is still sent")
	}
}

func TestCommandsReadAsPeopleTypeThem(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{redisText([]any{"set", "stock:1", "a b", "px", 300, "nx"}), `SET stock:1 "a b" PX 300 NX`},
		{redisText([]any{"get", ""}), `GET ""`},
		{interpolate("UPDATE items SET stock = ? WHERE id = ? AND name = ?",
			[]driver.NamedValue{{Value: int64(3)}, {Value: uint64(7)}, {Value: "it's"}}), "UPDATE items SET stock = 3 WHERE id = 7 AND name = 'it''s'"},
		{interpolate("SELECT ?", []driver.NamedValue{{Value: "?"}, {Value: "unused"}}), "SELECT '?'"},
		{interpolate("SELECT ?, ?", []driver.NamedValue{{Value: nil}, {Value: true}}), "SELECT NULL, TRUE"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}

func TestALockWithAClientOfItsOwnIsHeldWhereItAcquiresAndReleases(t *testing.T) {
	for _, tt := range []struct {
		name    string
		points  []sale.Point
		answers []string // of the steps, in their order
		names   []string
	}{
		{"sold", []sale.Point{sale.Acquired, sale.Releasing, sale.Released}, []string{AcquiredAnswer, "released"}, []string{AcquireStep, ReleaseStep}},
		{"busy", nil, []string{"not acquired: strategy: lock is busy"}, []string{AcquireStep}},
	} {
		s, scheduler := newStepper(t)
		ctx, hook := s.Sale(t.Context(), "r-1", unhooked)
		sell, hook := s.atPoints(ladder.Declare(strategy.Strategy{}, declared.Strategy{NeedsEtcd: true}), func(ctx context.Context, _ stock.Sale) (stock.Order, error) {
			for _, p := range tt.points {
				sale.At(ctx, p)
			}
			if tt.points == nil {
				return stock.Order{}, strategy.ErrBusy
			}
			return stock.Order{}, nil
		}, hook)
		sold := make(chan struct{})
		go func() {
			sell(sale.WithHook(ctx, hook), stock.Sale{})
			close(sold)
		}()
		for i, name := range tt.names {
			hold := scheduler.next()
			if hold.Hold == 0 || hold.Name != name || hold.Server != EtcdServer || hold.Sale != "r-1" {
				t.Fatalf("%s: reported as %+v, want the step %s", tt.name, hold, name)
			}
			select {
			case <-sold:
				t.Fatalf("%s: the sale went on before %s was let go", tt.name, name)
			case <-time.After(20 * time.Millisecond):
			}
			scheduler.order(StepOrder{Go: hold.Hold})
			if done := scheduler.next(); done.Done != hold.Hold || done.Answer != tt.answers[i] {
				t.Errorf("%s: %s was answered as %+v, want %q", tt.name, name, done, tt.answers[i])
			}
		}
		<-sold
	}
}
