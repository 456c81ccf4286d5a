// Package labmode is the part of a shop that only the lab uses.
//
// A shop in lab mode obeys headers. A request chooses the strategy of its sale, carries a fault to
// one of the sale's points, and names its run. The shop can also record the points of every sale. A
// shop in production does not contain this package.
//
// # Decisions
//
// The lab is a decorator around sales. shop.Lab wraps the shop's handlers and what sells and
// reserves. The handlers do not know whether there is a lab. Without one, a sale goes from answerOrder
// to sell, sellOnce and the strategy.
package labmode

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/ladder"
)

// Config says how a shop behaves in the lab.
type Config struct {
	Strategies []ladder.Rung // those that a request may choose
	Work       time.Duration // slept by every sale after it has read the stock
	Recorder   *Recorder     // records the points of every sale; nil for none
	Stepper    *Stepper      // holds the requests of every sale; nil for none

	commits *lostCommits // of the store's connections; nil where their answers cannot be lost
}

// Lab sells as each request asks. It implements [shop.Lab].
type Lab struct {
	Config
	deps  strategy.Deps
	usual *strategy.Seller
	name  string // the shop's
	log   *slog.Logger

	holds holds

	mu      sync.Mutex
	sellers map[chosen]*strategy.Seller // guarded by mu; without the usual one
}

// chosen is what a request asks of its seller.
type chosen struct {
	strategy    string
	lease, wait time.Duration
}

// Attach makes a shop sell as its requests ask.
func Attach(s *shop.Shop, cfg Config) {
	if cfg.Stepper != nil {
		cfg.Stepper.nameScripts(cfg.Strategies)
	}
	s.ExtraTime = cfg.Work + extraTime(cfg.Stepper)
	s.SweepInterval = -1 // see [SweepPath]
	s.UseLab(&Lab{Config: cfg, deps: s.Deps, usual: s.Seller(), name: s.Name, log: s.Log, sellers: map[chosen]*strategy.Seller{}})
}

// exchange is what a sale must know of its request, and the request of its sale.
type exchange struct {
	header http.Header
	hook   sale.Hook // of the sale, once it has sold
}

type exchangeKey struct{}

// Requests lets a sale see the header of its request, and ends the holds of sales: see [HoldsPath].
// It passes the point answered when the client of a sale that was made has the answer.
func (l *Lab) Requests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if request, ok := strings.CutPrefix(r.URL.Path, HoldsPath); ok && r.Method == http.MethodDelete {
			if !l.holds.end(request) {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			w.WriteHeader(http.StatusNoContent)
			return
		}
		this := &exchange{header: r.Header}
		r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, this))
		if r.URL.Path == SweepPath && r.Method == http.MethodPost {
			l.sweep(w, r)
			return
		}
		next.ServeHTTP(w, r)
		if this.hook != nil {
			_ = http.NewResponseController(w).Flush() // a client that has gone has no answer
			sale.At(sale.WithHook(r.Context(), this.hook), sale.Answered)
		}
	})
}

// Sales returns a way to sell that does what each request asks for, around the usual one.
func (l *Lab) Sales(usual shop.Sell) shop.Sell {
	return func(ctx context.Context, wanted stock.Sale) (stock.Order, error) {
		this, asked, of, err := l.asked(ctx)
		if err != nil {
			return stock.Order{}, err
		}
		sell := usual
		if asked.Strategy != "" || asked.Nested || asked.Lease > 0 || asked.Wait > 0 {
			seller, err := l.seller(of.Strategy, asked)
			if err != nil {
				return stock.Order{}, shop.Malformed(StrategyHeader + ": " + err.Error())
			}
			if asked.Nested {
				seller = nested(seller)
			}
			sell = seller.Sell
		}
		wanted.Run = asked.Run
		if asked.Posted != nil {
			ctx = strategy.WithPosted(ctx, asked.Posted)
		}
		hook := l.hook(asked, of, wanted)
		selling := hook
		if l.Stepper != nil {
			wanted.Holds = false // no look for overdue reservations comes in between
			ctx, selling = l.Stepper.Sale(ctx, wanted.RequestID, hook)
			if of.Describe().AtPoints() {
				sell, selling = l.Stepper.atPoints(of, sell, selling)
			}
		}
		order, err := sell(sale.WithHook(ctx, selling), wanted)
		if err == nil && asked.Fault.Point == sale.Answered {
			this.hook = hook // other requests do not pass that point
		}
		return order, err
	}
}

// Views returns a way to show an item that does what each request asks for. The strategies without a
// view show it as usual.
func (l *Lab) Views(usual shop.View) shop.View {
	return func(ctx context.Context, itemID uint64) (stock.Item, error) {
		this, asked, of, err := l.asked(ctx)
		if err != nil {
			return stock.Item{}, err
		}
		if of.View == nil {
			return usual(ctx, itemID)
		}
		hook := l.hook(asked, of, stock.Sale{ItemID: itemID, RequestID: this.header.Get(shop.RequestIDHeader), Run: asked.Run})
		return of.View(l.deps)(sale.WithHook(ctx, hook), itemID)
	}
}

// asked returns what a request asks for, and the strategy that it chooses, or the usual one.
func (l *Lab) asked(ctx context.Context) (this *exchange, asked Experiment, of ladder.Rung, err error) {
	this = ctx.Value(exchangeKey{}).(*exchange)
	if asked, err = ParseExperiment(this.header); err != nil {
		return this, asked, of, shop.Malformed(err.Error())
	}
	of, err = ladder.Find(cmp.Or(asked.Strategy, l.usual.Strategy.Name), l.Strategies)
	if err != nil {
		err = shop.Malformed(StrategyHeader + ": " + err.Error())
	}
	return this, asked, of, err
}

// seller returns the seller of a strategy with a lease and a wait, the usual ones for 0. All sales by the
// same share a seller, because some guards queue inside the process.
func (l *Lab) seller(of strategy.Strategy, asked Experiment) (*strategy.Seller, error) {
	deps := l.deps
	deps.Lease, deps.Wait = cmp.Or(asked.Lease, deps.Lease), cmp.Or(asked.Wait, deps.Wait)
	by := chosen{of.Name, deps.Lease, deps.Wait}
	if by == (chosen{l.usual.Strategy.Name, l.deps.Lease, l.deps.Wait}) {
		return l.usual, nil
	}
	if err := of.Check(deps); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	seller := l.sellers[by]
	if seller == nil {
		seller = strategy.New(of, deps)
		l.sellers[by] = seller
	}
	return seller, nil
}

// nested returns a seller whose sales take their own lock a second time, as code does that calls
// another guarded function: here to read the item.
func nested(s *strategy.Seller) *strategy.Seller {
	twice := *s
	twice.Decrement = func(held context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		err := s.Guard.Do(held, s.LockKey(wanted), func(inner context.Context, _ int64) error {
			_, err := store.Read(inner, wanted.ItemID)
			return err
		})
		if err != nil {
			return stock.Order{}, err
		}
		return s.Decrement(held, store, wanted)
	}
	return &twice
}

// hook makes a sale be recorded, work for a while at the point read, and meet its fault: once, however often
// it passes that point, unless the fault is for each time.
func (l *Lab) hook(asked Experiment, of ladder.Rung, wanted stock.Sale) sale.Hook {
	record := func(context.Context, sale.Point, []slog.Attr) {}
	if l.Recorder != nil {
		record = l.Recorder.Sale(wanted.RequestID, wanted.ItemID, of.Name, wanted.Run)
	}
	var injected, hasRead atomic.Bool
	answered := make(chan struct{})
	return func(ctx context.Context, p sale.Point, facts []slog.Attr) {
		inject := p == asked.Fault.Point && (injected.CompareAndSwap(false, true) || asked.Fault.Action == HoldEach)
		var held <-chan struct{}
		if inject {
			facts = append(facts, slog.String("fault", asked.Fault.String()))
			if asked.Fault.holds() { // before anybody can see that it is held
				held = l.holds.begin(wanted.RequestID)
				defer l.holds.end(wanted.RequestID)
			}
			if asked.Fault.Action == Lose && l.commits != nil {
				l.commits.lose(wanted.RequestID, func() { record(ctx, p, []slog.Attr{slog.String(LostFact, "commit")}) })
			}
		}
		if of.Declared.AnswersFirst && asked.Fault.Point == sale.Answered {
			switch {
			case p == sale.Answered:
				defer close(answered)
			case p == sale.Read && !hasRead.CompareAndSwap(false, true):
				<-answered // the order is written behind the answer, as by a queue that is behind
			}
		}
		record(ctx, p, facts)
		if p == sale.Read && l.Work > 0 {
			time.Sleep(l.Work) // work that does not look at its context
		}
		switch {
		case !inject:
			return
		case held != nil: // it ignores cancellation, as Sleep does
			select {
			case <-held:
			case <-time.After(asked.Fault.For):
			}
			return
		}
		if err := asked.Fault.Inject(); err != nil {
			l.log.ErrorContext(ctx, "the fault failed", "fault", asked.Fault.String(), "error", err)
		}
	}
}

// Order returns all of an order.
func (l *Lab) Order(o stock.Order) any {
	o.ID = 0 // it is left out, because not every sale knows it
	return o
}

// closeTimeout bounds the wait for sales that are held.
const closeTimeout = time.Second

// Close frees the locks of all sellers but the shop's own. No sale may begin any more.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for _, seller := range l.sellers {
		errs = append(errs, seller.Close(ctx))
	}
	return errors.Join(errs...)
}

// HoldsPath is where a shop in the lab ends the hold of a sale: DELETE HoldsPath + its request's id.
// The answer is 204, or 404 if that sale is not held.
const HoldsPath = "/lab/holds/"

// holds are the sales that are held: what ends each, by its request.
type holds struct{ sync.Map }

func (h *holds) begin(request string) <-chan struct{} {
	end := make(chan struct{})
	h.Store(request, end)
	return end
}

// end reports whether the sale was held.
func (h *holds) end(request string) bool {
	end, held := h.LoadAndDelete(request)
	if held {
		close(end.(chan struct{}))
	}
	return held
}
