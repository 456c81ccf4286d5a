package trial

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// attack is the load of one cell, and what the scenario does meanwhile.
type attack struct {
	bench Bench
	cell  Cell
	o     Options
	plan  scenario.Plan
	item  audit.Run

	background sync.WaitGroup // what waits for points, strikes and revives

	mu            sync.Mutex // guards the rest
	begun         time.Time
	hits          []*hit // in the order of their making
	byID          map[string]*hit
	bySeq         map[uint64]*hit // by vegeta's sequence number
	shops         []shopState
	turn          int                  // the shop that is next
	pending       int                  // requests with a fault that have no answer yet
	reviving      int                  // shops that are dead and being started
	strikes       int                  // faults whose point was reached
	striking      int                  // of those, where the testbed is being struck
	owed          []scenario.Injection // of requests that were told busy before they came to their point
	carried       int                  // injection that was given to another request
	sold          int64                // answers that said sold
	soldOut       int                  // answers that said sold out
	progress      time.Time            // the last sale, or the last end of a fault
	problems      []error              // what the harness did wrong
	gap           time.Duration        // the longest time for which the machine let nothing happen here
	stuck         bool
	waiting       string         // when stuck: for what
	locks         []explain.Lock // when stuck: what Redis had
	interventions []explain.Intervention
	changes       []explain.Change
	ended         time.Time

	traces []traceFile
	usage  *usage
}

// shopState is what keeps requests away from a shop.
type shopState struct {
	alone int       // requests that want the shop for themselves
	down  time.Time // nobody listened: until then, try others
}

// hit is one request.
type hit struct {
	id        string
	shop      int
	injection scenario.Injection
	due       time.Time // when it should have been sent
	sent      time.Time
	latency   time.Duration // from sent to answered
	status    int
	body      string // of an answer that should not be
	err       error
	outcome   Outcome
	// relieved notes that a strike for this request is over; nil without one.
	relieved func()
}

// fault is what the request asks the shop for: more work is a short sleep.
func (h *hit) fault() labmode.Fault {
	if h.injection.Work > 0 {
		return labmode.Fault{Point: sale.Read, Action: labmode.Sleep, For: h.injection.Work}
	}
	return h.injection.Fault
}

func newAttack(b Bench, c Cell, o Options, plan scenario.Plan, item audit.Run) *attack {
	return &attack{
		bench: b, cell: c, o: o, plan: plan, item: item,
		byID: map[string]*hit{}, bySeq: map[uint64]*hit{}, shops: make([]shopState, len(b.Shops)), usage: &usage{},
	}
}

// run attacks until there is nothing more to learn.
func (a *attack) run(ctx context.Context) error {
	if a.plan.Prepare != nil {
		if err := a.plan.Prepare(ctx, a.bench.Testbed); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, a.longest())
	defer a.background.Wait()
	defer cancel()
	a.markTraces()
	if err := a.watchLocks(ctx); err != nil {
		return err
	}
	a.reviveTheDead(ctx)
	a.background.Go(func() { a.watchTheMachine(ctx) })
	a.usage = a.startUsage(ctx)
	a.begun = time.Now()
	a.progress = a.begun
	if a.plan.Intervene == nil && a.plan.Intervention != "" {
		defer a.did(a.plan.Intervention, 0)() // what Prepare did lasts
	}

	client := &http.Client{
		Timeout:   a.o.Timeout,
		Transport: &transport{a, &http.Transport{MaxIdleConnsPerHost: a.o.Workers}},
	}
	defer client.CloseIdleConnections()
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.MaxBody(4<<10),
		vegeta.Workers(uint64(min(a.o.Workers, vegeta.DefaultWorkers))), vegeta.MaxWorkers(uint64(a.o.Workers)))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	for answer := range attacker.Attack(a.target(ctx), a.pacer(ctx), 0, "") {
		a.answered(ctx, answer)
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = time.Now()
	a.usage.stop(a.sold)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		a.problems = append(a.problems, fmt.Errorf("neither sold out nor stuck after %s", a.longest()))
	}
	return errors.Join(a.problems...)
}

// longest bounds an attack that neither sells out nor gets stuck.
func (a *attack) longest() time.Duration { return maxCell + a.o.Shape.Due(a.o.Requests) }

const requestBody = `{"quantity":1}`

// target makes the next request.
func (a *attack) target(ctx context.Context) vegeta.Targeter {
	return func(t *vegeta.Target) error {
		h := a.newHit()
		if h.injection.HasFault() {
			a.await(ctx, h)
		}
		t.Method = http.MethodPost
		t.URL = a.bench.Shops[h.shop] + "/api/v1/items/" + strconv.FormatUint(a.item.ItemID, 10) + "/orders"
		t.Body = []byte(requestBody)
		t.Header = http.Header{
			"Content-Type":   {"application/json"},
			"X-Request-Id":   {h.id},
			"X-Lab-Strategy": {a.cell.Strategy.Name},
			"X-Lab-Run":      {a.item.ID},
		}
		if f := h.fault(); f != (labmode.Fault{}) {
			t.Header.Set("X-Lab-Fault", f.String())
		}
		if h.injection.Nested {
			t.Header.Set("X-Lab-Nested", "1")
		}
		return nil
	}
}

// newHit plans the next request and chooses its shop: the one whose turn it is,
// of those that are not down and not kept for one request alone.
func (a *attack) newHit() *hit {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, now := len(a.hits), time.Now()
	h := &hit{id: fmt.Sprintf("%d-%d", a.item.ItemID, n), due: now}
	if !a.o.Shape.IsZero() {
		h.due = a.begun.Add(a.o.Shape.Due(n))
	}
	if a.plan.Inject != nil {
		h.injection = a.plan.Inject(n)
	}
	if len(a.owed) > 0 && !h.injection.HasFault() && a.soldOut == 0 && a.carried < maxCarried {
		h.injection, a.owed = a.owed[0], a.owed[1:]
		a.carried++
	}
	h.shop = a.turn
	for i := range a.shops {
		at := (a.turn + i) % len(a.shops)
		if s := a.shops[at]; s.alone == 0 && now.After(s.down) {
			h.shop = at
			break
		}
	}
	a.turn = (h.shop + 1) % len(a.shops)
	if h.injection.HasFault() {
		a.pending++
	}
	if h.injection.Alone {
		a.shops[h.shop].alone++
	}
	a.hits = append(a.hits, h)
	a.byID[h.id] = h
	return h
}

// maxCarried bounds how often a fault is given to another request: some strategies
// have no such point.
const maxCarried = 10

// transport keeps what vegeta does not tell: the error itself, and to which
// request a sequence number belongs.
type transport struct {
	a    *attack
	next *http.Transport
}

func (t *transport) CloseIdleConnections() { t.next.CloseIdleConnections() }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	seq, _ := strconv.ParseUint(r.Header.Get("X-Vegeta-Seq"), 10, 64)
	t.a.mu.Lock()
	h := t.a.byID[r.Header.Get("X-Request-Id")]
	t.a.bySeq[seq] = h
	h.sent = time.Now()
	t.a.mu.Unlock()
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		t.a.mu.Lock()
		h.err = err
		t.a.mu.Unlock()
	}
	return answer, err
}
