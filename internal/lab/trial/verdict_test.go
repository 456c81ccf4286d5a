package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

func TestJudge(t *testing.T) {
	overrun := Scenario{Attacks: declared.Renews}
	with := func(sc Scenario, hits ...*Customer) *attack {
		a := attackOf(Options{}, hits...)
		a.Scenario = sc
		return a
	}
	stuckWith := func(hits ...*Customer) *attack {
		a := with(Scenario{}, hits...)
		a.stuck = &standstill{}
		return a
	}
	lost := &Customer{first: true, Answer: load.Answer{Outcome: load.Lost}}
	longSold := &Customer{first: true, Answer: load.Answer{Outcome: load.Sold}}
	sold := &Customer{Answer: load.Answer{Outcome: load.Sold}}
	soldOut := &Customer{Answer: load.Answer{Outcome: load.SoldOut, Latency: time.Second}}
	later := &Customer{Answer: load.Answer{Outcome: load.Sold, Latency: 2 * time.Second}}
	renewing := func(a *attack) *attack {
		a.Of.Properties.Has = declared.Renews
		return a
	}
	outOfTime := attackOf(Options{})
	outOfTime.demandLeft = true
	for _, tt := range []struct {
		what string
		r    Result
		a    *attack
		want verdict.Kind
	}{
		{"all sold, no more", Result{}, attackOf(Options{}), verdict.Held},
		{"more orders than stock", Result{Oversold: 1}, attackOf(Options{}), verdict.Oversold},
		{"oversold first, stuck later", Result{Oversold: 1, Remaining: 3}, stuckWith(), verdict.Oversold},
		{"nothing moves", Result{Remaining: 3}, stuckWith(), verdict.Stuck},
		{"nothing moves, and one shop answers", Result{Remaining: 3}, stuckWith(
			&Customer{Answer: load.Answer{Sent: time.Now(), Err: errors.New("refused")}}, &Customer{shop: 1, Answer: load.Answer{Sent: time.Now()}}), verdict.Stuck},
		{"no shop answers", Result{Remaining: 3}, stuckWith(
			&Customer{Answer: load.Answer{Sent: time.Now()}}, &Customer{Answer: load.Answer{Sent: time.Now().Add(time.Second), Err: errors.New("refused")}}), verdict.Invalid},
		{"the attack ended too early", Result{Remaining: 3}, attackOf(Options{}), verdict.Invalid},
		{"the load ended with units left", Result{Remaining: 3, Sold: 9}, with(Scenario{Comparable: true}, sold), verdict.Held},
		{"the load ended, and nothing was sold", Result{Remaining: 3}, with(Scenario{Comparable: true}), verdict.Invalid},
		{"time was up while it sold", Result{Remaining: 3, Sold: 9}, outOfTime, verdict.Held},
		{"an answer without an order", Result{AnswersWithoutOrder: 1}, attackOf(Options{}), verdict.Lied},
		{"an answer without an order, and oversold", Result{AnswersWithoutOrder: 1, Oversold: 1}, attackOf(Options{}), verdict.Oversold},
		{"an answer without an order, and units left", Result{AnswersWithoutOrder: 1, Remaining: 3}, with(Scenario{}, sold, soldOut), verdict.Lied},
		{"units that are in no order and not left", Result{LostUpdates: -2}, attackOf(Options{}), verdict.Unbalanced},
		{"units that are in an order and left", Result{LostUpdates: 1, Remaining: 3, Sold: 9}, with(Scenario{Comparable: true}, sold), verdict.Unbalanced},
		{"units that vanished, and sold out with units left", Result{LostUpdates: -2, Remaining: 3, Left: 3}, with(Scenario{}, sold, soldOut), verdict.Unbalanced},
		{"lost updates that oversold", Result{LostUpdates: 2, Oversold: 2}, attackOf(Options{}), verdict.Oversold},
		{"an answer without an order, whose unit vanished", Result{LostUpdates: -1, AnswersWithoutOrder: 1}, attackOf(Options{}), verdict.Lied},
		{"sold out with units left", Result{Remaining: 3, Left: 3}, with(Scenario{}, sold, soldOut), verdict.Left},
		{"sold out while units were left, and all sold in the end", Result{Left: 3}, attackOf(Options{}), verdict.Left},
		{"units left, and the last one was sold", Result{Remaining: 3}, with(Scenario{}, soldOut, later), verdict.Invalid},
		{"two orders for one purchase", Result{Duplicates: 1}, attackOf(Options{}), verdict.Twice},
		{"two orders for one purchase, and oversold", Result{Duplicates: 1, Oversold: 1}, attackOf(Options{}), verdict.Oversold},
		{"two orders for one purchase, and none for another", Result{Duplicates: 1, AnswersWithoutOrder: 1}, attackOf(Options{}), verdict.Twice},
		{"an order whose customer was answered busy", Result{Denied: 1}, attackOf(Options{}), verdict.Denied},
		{"an order whose customer was answered busy, and an answer without one", Result{Denied: 1, AnswersWithoutOrder: 1}, attackOf(Options{}), verdict.Lied},
		{"an order whose customer was answered busy, and units left", Result{Denied: 1, Left: 1, LostUpdates: 1}, attackOf(Options{}), verdict.Denied},
		{"an answer that should not be", Result{Errors: 1, Left: 3}, attackOf(Options{}), verdict.Invalid},
		{"an answer that should not be, and oversold", Result{Errors: 1, Oversold: 5}, attackOf(Options{}), verdict.Oversold},
		{"an answer that should not be, and units that vanished", Result{Errors: 1, LostUpdates: -1}, attackOf(Options{}), verdict.Unbalanced},
		{"all long work lost its lock", Result{}, renewing(with(overrun, lost, lost, sold)), verdict.Stuck},
		{"one long work sold", Result{}, renewing(with(overrun, lost, longSold)), verdict.Held},
		{"all long work lost a lock that does not renew", Result{}, with(overrun, lost, lost, sold), verdict.Held},
		{"long work lost its lock to another fault", Result{}, with(Scenario{}, lost), verdict.Held},
	} {
		if v := tt.a.facts(&tt.r).Verdict(); v.Kind != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, v.Kind, tt.want)
		}
	}
	r, saved := Result{}, Result{}
	r.Conclude(renewing(with(overrun, lost, lost, sold)).judge(&r, explain.Evidence{}, nil))
	written, _ := json.Marshal(r)
	json.Unmarshal(written, &saved)
	for _, r := range []Result{r, saved} {
		if said := words.English.Say(r.Shown().Reason(r.Facts())); !strings.Contains(said, "never sells") {
			t.Errorf("all long work lost its lock: %q", said)
		}
	}
}

// TestDesertedHasOneReason of several shops that are dead, each time.
func TestDesertedHasOneReason(t *testing.T) {
	var hits []*Customer
	for shop := range 8 {
		hits = append(hits, &Customer{shop: shop, Answer: load.Answer{Sent: noon, Err: fmt.Errorf("shop %d refused", shop)}})
	}
	a := attackOf(Options{}, hits...)
	for range 50 {
		if err := a.deserted(); err == nil || err.Error() != "shop 7 refused" {
			t.Fatalf("all are dead: %v", err)
		}
	}
}

// TestAShopThatWasNotKilled: shops that were given by address hold only where one was seen to die.
func TestAShopThatWasNotKilled(t *testing.T) {
	for _, tt := range []struct {
		what   string
		at     sale.Point
		traces []traceFile
		answer load.Answer
		met    bool // by the trace
		want   verdict.Kind
	}{
		{"its customer was sold out", sale.Read, nil, load.Answer{Outcome: load.SoldOut, Status: 409}, false, verdict.Invalid},
		{"its customer was sold a unit first", sale.Read, nil, load.Answer{Outcome: load.Sold, Status: 201}, false, verdict.Invalid},
		{"it was to be behind the answer", sale.Answered, nil, load.Answer{Outcome: load.Sold, Status: 201}, false, verdict.Held},
		{"its customer ran out of time", sale.Read, nil, load.Answer{Outcome: load.Unknown, Err: &timeout{}}, false, verdict.Invalid},
		{"the connection broke", sale.Read, nil, load.Answer{Outcome: load.Unknown, Err: io.EOF}, false, verdict.Held},
		{"the connection broke, and no trace has the point", sale.Read, []traceFile{{}}, load.Answer{Outcome: load.Unknown, Err: io.EOF}, false, verdict.Invalid},
		{"its trace has the point", sale.Read, []traceFile{{}}, load.Answer{Outcome: load.Unknown, Err: io.EOF}, true, verdict.Held},
	} {
		s := attackOf(Options{}).Show
		s.customers, s.traces = newCustomers(1, "", wishes{}), tt.traces
		h := s.customers.add()
		h.fault, h.Answer = labmode.Fault{Point: tt.at, Action: labmode.Kill}, tt.answer
		if tt.met {
			s.feed.add(labmode.Event{Request: h.id, Point: tt.at, Facts: map[string]any{"fault": h.fault.String()}})
		}
		a, r := newAttack(s), Result{}
		a.kills = map[int]bool{0: true}
		r.count(a)
		if j := a.judge(&r, explain.Evidence{}, nil); j.Kind != tt.want {
			t.Errorf("%s: %+v, want %s", tt.what, j, tt.want)
		}
	}
}

func TestFollowReadsATraceThatIsBeingWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines := make(chan string, 2)
	trace, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	go followTrace(ctx, trace, func(line []byte) { lines <- string(line) }, func(time.Time) {})
	f.WriteString("one\nt")
	if got := <-lines; got != "one\n" {
		t.Errorf("the first line is %q", got)
	}
	f.WriteString("wo\n")
	if got := <-lines; got != "two\n" {
		t.Errorf("the second line, which was written in two parts, is %q", got)
	}
}

// TestWhatIsReadWasPassedOn: a trace counts as read when its last line was passed on.
func TestWhatIsReadWasPassedOn(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	var told []string
	followTrace(ended, strings.NewReader("one\ntwo\n"), func(line []byte) { told = append(told, string(line)) }, func(time.Time) { told = append(told, "read") })
	if want := []string{"one\n", "two\n", "read", "read"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestNoLeaseEndsAfterwards: customers who come one after another have the lease of the crowd, which no stall outlasts.
func TestNoLeaseEndsAfterwards(t *testing.T) {
	s := attackOf(Options{}).Show
	s.Shops, s.customers, s.Scenario.Crowd = []Shop{{}}, newCustomers(1, "", wishes{}), Play{At: sale.Read}
	s.Of.Lease.Kept = declared.LeaseInExpiry
	a := newAttack(s)
	a.alone(t.Context(), 0, wish{quantity: 1})
	if lease := s.customers.hits[0].lease; lease != LongLease {
		t.Errorf("its lease is %s, want %s", lease, LongLease)
	}
}

// TestARestockFitsItsColumns: also that of a run whose id is as long as one can be.
func TestARestockFitsItsColumns(t *testing.T) {
	by := restocker(audit.Run{ID: strings.Repeat("x", audit.MaxID), ItemID: math.MaxUint64})
	if len(by.IdempotencyKey) > audit.MaxID || len(by.RequestID) > audit.MaxID {
		t.Errorf("%+v is longer than %d", by, audit.MaxID)
	}
}

// TestACellThatSaysNothingIsSkipped: without a shop or a server, a cell that is not to be run ends with
// the reason, and is no surprise.
func TestACellThatSaysNothingIsSkipped(t *testing.T) {
	of := declared.Strategy{Name: "mine", Inapplicable: map[string]string{"pause": "it never pauses"}, ShortestLease: time.Second, Lease: declared.Lease{Kept: declared.LeaseInExpiry}}
	for _, tt := range []struct {
		scenario string
		lease    time.Duration
		testbed  *rig.Testbed
		why      string
		what     Unfit
	}{
		{"pause", time.Second, nil, "it never pauses", UnfitEach},
		{"overrun", time.Second, nil, "needs shops that loadtest has started, and these were given by address. Run it without --shop: --mysql and --redis may stay", UnfitScenario},
		{"crash", 500 * time.Millisecond, nil, "needs a lease of 1s or more, and this one is 500ms: give --lease 1s", UnfitStrategy},
		{"crash", 11 * time.Second, &rig.Testbed{}, "waits for the end of a lease: needs one of 10s or less, and this one is 11s", UnfitScenario},
	} {
		sc := Scenario{Name: tt.scenario, Attacks: declared.Renews, Crowd: Play{At: sale.Read, Kill: tt.scenario == "crash"}}
		all, err := Run(t.Context(), &Bench{Testbed: tt.testbed}, sc, []declared.Strategy{of}, 1, Options{Lease: tt.lease})
		r := all[0]
		if err != nil || r.Verdict != verdict.Skipped && r.Verdict != verdict.Inapplicable || r.Problem != tt.why || r.Unfit != tt.what || r.Surprise() {
			t.Errorf("%s: %s because %q (%v), surprise %t, %v; want skipped because %q", tt.scenario, r.Verdict, r.Problem, r.Unfit, r.Surprise(), err, tt.why)
		}
		if said := words.Chinese.Say(r.Why()); (said == tt.why) != (tt.scenario == "pause") { // which its strategy says
			t.Errorf("%s is said in Chinese as %q", tt.scenario, said)
		}
	}
}

// TestAShopThatIsCutOffFromEtcd: the sentence names the server that has the lock.
func TestAShopThatIsCutOffFromEtcd(t *testing.T) {
	done := []explain.Intervention{{What: "redis-cut"}, {What: "dead"}}
	named := ofEtcd(done)
	said := words.English.Say(words.Text{Key: "could-not-renew", Facts: explain.Facts{Holder: &explain.Sale{Request: "#1", Shop: "shop 1"}, Intervention: named[0].What}})
	if !strings.Contains(said, "cut off from etcd") || named[1].What != "dead" || done[0].What != "redis-cut" {
		t.Errorf("%q, %v, %v", said, named, done)
	}
}
