package wirestage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/lab/wire"
)

// run is one run of a schedule on an item of its own.
type run struct {
	stage       *Stage
	plan        stage.Plan
	item        int64
	units       int64 // of it
	buyers      []*buyer
	looked      func(*run) error
	settleLimit time.Duration

	messages chan any      // of *held, answered, replied, pushed and closed
	over     chan struct{} // closed when the run holds nothing any more

	begun   time.Time
	entries []schedule.Entry
	chosen  schedule.Schedule
	listed  int                 // so many of the chosen have to be listed
	used    int                 // events
	eventAt time.Time           // when the last one was over
	struck  []schedule.Customer // see [schedule.Record]
	blind   bool                // a sale keeps counts waiting
	behind  string
	leaves  bool

	before        map[string]key // what Redis had at the start
	keeps         bool           // the sales have something in Redis; not looked at where no event is about that
	main          string         // the key of the lock, empty before a customer has taken one
	ending        string         // the key of the sales that ends first by itself, empty for none
	other         bool           // a key has ended that is not the lock
	seen          map[string]key // what Redis had at the last look, while the stage learns
	seenAt        time.Time
	expiredBefore string         // how many keys had expired before that look
	lock          schedule.State // what it was at the last look
	until         time.Time      // when its lease ends, by that
	passed        bool           // time was let pass, which can end a lease
	owner         schedule.Customer
	holds         []schedule.Hold

	unforeseen atomic.Bool // a request was held of a form that the probe has not seen

	mu   sync.Mutex              // guards the rest
	held map[*wire.Exchange]bool // the requests of sales that are held or under way
	busy []int                   // how many of them each customer has
	came []bool                  // by process: its customer has come
	dead []bool                  // by process: it was killed
	made map[string]bool         // the keys that came with the lock
	// The renewals of a customer's process wait until withheld is closed. It is nil where none do.
	withheld   chan struct{}
	withheldOf schedule.Customer
	inSale     map[connection]bool // a statement of a sale was sent since the last transaction ended
}

// patience is how long nobody may be able to go on.
const patience = 20 * time.Second

func (r *run) play(ctx context.Context, choose stage.Chooser) (schedule.Record, error) {
	r.begun = time.Now()
	for i, b := range r.buyers {
		if b.state = absent; i == 0 || !r.stage.late {
			r.arrive(ctx, b)
		}
	}
	var idle time.Time
	for {
		if err := r.settle(ctx); err != nil {
			return schedule.Record{}, err
		}
		if came, err := r.anotherComes(ctx); err != nil || came {
			if err != nil {
				return schedule.Record{}, err
			}
			continue
		}
		if !slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state != ended }) {
			break
		}
		if r.arriveLate(ctx) {
			continue
		}
		next := stage.Next{Options: r.options(), Past: r.chosen, Requests: r.requests(), Why: r.why}
		i, err := choose(next)
		if err != nil {
			return schedule.Record{}, err
		}
		if i == stage.LetTimePass {
			if idle.IsZero() {
				idle = time.Now()
			}
			if time.Since(idle) > patience {
				return schedule.Record{}, fmt.Errorf("nothing has happened for %s: %s; what belongs to no sale is to be named in background", patience, r.whoWaits())
			}
			if err := r.letTimePass(ctx, next); err != nil {
				return schedule.Record{}, err
			}
			continue
		}
		idle = time.Time{}
		o := next.Options[i]
		if i != next.ByDefault() {
			r.listed = len(r.chosen) + 1
		}
		r.meets(o.Choice)
		r.chosen = append(r.chosen, o.Choice)
		if o.Choice.IsStep() {
			err = r.send(ctx, r.buyer(o.Choice.Customer), false)
		} else {
			err = r.happen(ctx, o.Choice)
		}
		if err != nil {
			return schedule.Record{}, err
		}
		if len(r.chosen) > maxSteps {
			return schedule.Record{}, fmt.Errorf("the sales have sent %d requests and go on, such as %s: if that belongs to no sale, name it in background", maxSteps, r.entries[len(r.entries)-1].Sent)
		}
	}
	return r.conclude(ctx)
}

// meets notes behind which request the event happens, or the second customer comes. What a request whose answer is
// lost will leave is not known yet.
func (r *run) meets(c schedule.Choice) {
	if r.behind != "" || c.IsStep() && c.Customer == r.buyers[0].customer {
		return
	}
	if r.behind = "the start"; len(r.chosen) > 0 {
		r.behind = r.chosen[len(r.chosen)-1].String()
	}
	r.leaves = r.keeps || r.lock.Locked() || c.Event == schedule.Lose || slices.ContainsFunc(r.buyers, func(b *buyer) bool { return len(b.holds()) > 0 })
}

func (r *run) isStruck(c schedule.Customer) bool { return slices.Contains(r.struck, c) }

// arrive sends a customer to its process.
func (r *run) arrive(ctx context.Context, b *buyer) {
	r.mu.Lock()
	r.came[b.customer-'A'] = true
	r.mu.Unlock()
	b.state, b.heard, b.done = moving, time.Now(), make(chan struct{})
	ctx, b.leave = context.WithCancel(ctx)
	b.accepted.Store(false)
	b.sale.Accepted = func() { b.accepted.Store(true) }
	go func() {
		defer b.leave()
		reply := r.stage.on.Buy(ctx, b.process, b.sale)
		close(b.done)
		r.tell(replied{b.customer, reply})
	}()
}

// arriveLate has those come who come after the event, and says whether there were any.
func (r *run) arriveLate(ctx context.Context) (came bool) {
	if r.used == 0 && r.buyers[0].state != ended {
		return false
	}
	for _, b := range r.buyers {
		if b.state == absent {
			r.arrive(ctx, b)
			came = true
		}
	}
	return came
}

// maxSteps bounds a run.
const maxSteps = 200

func (r *run) buyer(c schedule.Customer) *buyer { return r.buyers[c-'A'] }

// end lets go what is held, and waits until both requests have ended.
func (r *run) end() {
	close(r.over)
	for _, b := range r.buyers {
		if !r.stage.dirty[b.customer-'A'] {
			_ = b.process.Resume()
		}
		if b.state != absent {
			b.stopAsking()
			<-b.done
		}
	}
}

func (r *run) requests() map[schedule.Customer]int {
	sent := map[schedule.Customer]int{}
	for _, b := range r.buyers {
		sent[b.customer] = b.sent
	}
	return sent
}

// options are the ways in which the run can go on.
func (r *run) options() []stage.Option {
	var all []stage.Option
	for i, b := range r.buyers {
		if b.atStep() {
			o := stage.Option{
				Choice: schedule.Choice{Customer: b.customer, Step: b.step()}, Touches: r.schema().StepTouches(i, r.parties()),
				Retry: r.pointless(b), RowHeld: r.schema().IsHeld(i, r.parties()),
			}
			if b.flying != nil { // the party is what waits, and not this one
				o.Touches, o.RowHeld = schedule.Everything(""), false
			}
			all = append(all, o)
		}
		if b.sent == 0 && !r.plan.Everything {
			break // customers are alike: the second one never begins
		}
	}
	if r.used < r.plan.MaxEvents {
		for _, e := range r.plan.Events {
			all = append(all, r.eventOptions(e)...)
		}
	}
	return all
}

func (r *run) schema() schedule.Schema { return r.stage.schema }

// parties are the customers as the order of their steps depends on them.
func (r *run) parties() []schedule.Party {
	all := make([]schedule.Party, len(r.buyers))
	for i, b := range r.buyers {
		all[i] = schedule.Party{AtStep: b.atStep(), Waiting: b.state == onRow, Held: b.holds()}
		switch {
		case b.flying != nil:
			all[i].Next = b.request(b.flying)
		case len(b.queue) > 0:
			all[i].Next = b.request(b.queue[0])
		}
	}
	return all
}
