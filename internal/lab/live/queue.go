package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy"
)

const (
	// maxWaiting bounds how many cells wait. It is more than there are cells.
	maxWaiting = 500
	// longestRun bounds one run, with what has to be started for it.
	longestRun = 5 * time.Minute
	// maxShops bounds the shops of a run with a testbed of its own.
	maxShops = 16
	// newsEvery is how often a page gets what is new of the cell that runs.
	newsEvery = 100 * time.Millisecond
)

var errFull = fmt.Errorf("more than %d cells would wait: let some of them run first", maxWaiting)

// wanted is a cell to run.
type wanted struct {
	cellName
	Seed  uint64 `json:"seed"`
	Shops int    `json:"shops,omitempty"` // 0 for those of the page
}

// enqueue puts cells at the end of the queue.
func (s *Server) enqueue(cells []wanted, of *comparison) ([]*run, error) {
	for _, c := range cells {
		if err := s.check(c.cellName); err != nil {
			return nil, err
		}
		if c.Shops < 0 || c.Shops > maxShops {
			return nil, fmt.Errorf("%d shops: want 1 to %d", c.Shops, maxShops)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := 0
	for _, r := range s.runs {
		if r.State == waiting {
			waits++
		}
	}
	if waits+len(cells) > maxWaiting {
		return nil, errFull
	}
	var added []*run
	for _, c := range cells {
		r := &run{ID: len(s.runs) + 1, cellName: c.cellName, Seed: c.Seed, Shops: s.ownShops(c.Shops), State: waiting}
		if of != nil {
			r.Load = of.ID
		}
		s.runs = append(s.runs, r)
		added = append(added, r)
	}
	s.feed.publish("queued", added)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return added, nil
}

// ownShops is how many shops a run needs on a testbed of its own, 0 for none.
func (s *Server) ownShops(shops int) int {
	if shops == s.o.Plan.Shops {
		return 0
	}
	return shops
}

// drop ends what runs, and drops what waits.
func (s *Server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []int
	for _, r := range s.runs {
		if r.State == waiting {
			r.State = dropped
			ids = append(ids, r.ID)
		}
	}
	s.feed.publish("dropped", ids)
	if s.stop != nil {
		s.stop()
	}
}

// work runs what waits, one after another, until ctx ends.
func (s *Server) work(ctx context.Context) {
	for ctx.Err() == nil {
		r := s.next()
		if r == nil {
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
			continue
		}
		release, err := s.machine(ctx)
		if err != nil {
			return
		}
		s.runOne(ctx, r)
		if r.ID == len(s.o.First) {
			s.firstDone()
		}
		release()
	}
}

// firstDone hands on the results of the first cells. They have the first ids, and run in that order.
func (s *Server) firstDone() {
	if s.o.FirstDone == nil || s.cells == nil {
		return
	}
	var results []trial.Result
	s.mu.Lock()
	for _, r := range s.runs[:len(s.o.First)] {
		if r.result != nil {
			results = append(results, *r.result)
		}
	}
	s.mu.Unlock()
	s.o.FirstDone(results, s.cells.Environment())
}

// machine waits until nothing else runs.
func (s *Server) machine(ctx context.Context) (release func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// next is the run that has waited longest, nil for none.
func (s *Server) next() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.runs, func(r *run) bool { return r.State == waiting })
	if i < 0 {
		return nil
	}
	return s.runs[i]
}

var errDropped = errors.New("it was ended by hand")

func (s *Server) runOne(ctx context.Context, r *run) {
	ctx, cancelTime := context.WithTimeoutCause(ctx, longestRun, fmt.Errorf("it took longer than %s", longestRun))
	defer cancelTime()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	if r.State != waiting { // dropped meanwhile
		s.mu.Unlock()
		return
	}
	r.State = running
	s.stop, s.told = func() { cancel(errDropped) }, nil
	of := s.comparison(r.Load)
	if r.Load == 0 && r.Shops == 0 {
		s.began(r.cellName, "")
	}
	s.feed.publish("running", r)
	s.mu.Unlock()

	result, watched, err := s.attack(ctx, r, of)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop, s.watching = nil, nil
	switch {
	case errors.Is(err, errDropped) || errors.Is(err, context.Canceled):
		r.State, r.Error = dropped, err.Error()
	case err != nil:
		r.State, r.Error = failed, err.Error()
	default:
		s.concluded(r, result)
		if watched != nil {
			s.keep(r, watched.record())
		}
	}
	s.feed.publish("ended", struct {
		*run
		Score score `json:"score"`
	}{r, s.score})
}

// keep keeps the record of a run, and forgets the oldest one. It is called with mu.
func (s *Server) keep(r *run, kept *record) {
	r.record = kept
	s.records = append(s.records, r)
	if len(s.records) > keptRecords {
		s.records[0].record = nil
		s.records = s.records[1:]
	}
	if s.o.Record != "" {
		if err := kept.keep(s.o.Record, *r); err != nil {
			s.log("the record of run %d is not kept: %v", r.ID, err)
		}
	}
}

// attack runs the cell, and shows what is seen of it. Of a cell of several items, or of several databases, there is
// no watcher.
func (s *Server) attack(ctx context.Context, r *run, of *comparison) (trial.Result, *watcher, error) {
	if pair, is, err := s.basketPair(r.cellName); is {
		if err != nil {
			return trial.Result{}, nil, err
		}
		result, err := s.attackBasket(ctx, r, pair)
		return result, nil, err
	}
	if of, under, is, err := s.serversPair(r.cellName); is {
		if err != nil {
			return trial.Result{}, nil, err
		}
		result, err := s.attackServers(ctx, r, of, under)
		return result, nil, err
	}
	cell, err := s.cell(r.cellName, r.Seed)
	if err != nil {
		return trial.Result{}, nil, err
	}
	var session *matrix.Session
	shops := s.o.Plan.Shops
	if r.Shops != 0 {
		shops = r.Shops
		var own *matrix.Session
		plan := s.o.Plan
		plan.Shops = shops
		session, err = s.open(ctx, &own, plan, matrix.OpenSession)
		defer closeSession(&own)
	} else {
		session, err = s.session(ctx, of)
	}
	if err != nil {
		return trial.Result{}, nil, err
	}
	o := session.Options()
	if of != nil {
		of.apply(&o)
	}
	w := newWatcher(r.ID, cell, o, shops)
	s.mu.Lock()
	s.watching = w
	s.mu.Unlock()
	o.Watch = w.saw
	stop := s.tell(ctx, w)
	result, err := session.Run(ctx, cell, o)
	stop()
	if err != nil {
		if at, _ := s.sessionOf(of); *at == session {
			closeSession(at) // its testbed may be broken, or in the middle of a scenario
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return result, w, err
	}
	result.Replay = fmt.Sprintf("loadtest run --cells %s:%s --seed %d", r.Strategy, r.Scenario, r.Seed)
	if r.Shops != 0 {
		result.Replay += fmt.Sprintf(" --shops %d", r.Shops)
	}
	return result, w, nil
}

// attackBasket runs a cell of several items, and tells its story.
func (s *Server) attackBasket(ctx context.Context, r *run, pair matrix.BasketPair) (trial.Result, error) {
	session, err := s.open(ctx, &s.baskets, s.o.Plan, matrix.OpenBasketSession)
	if err != nil {
		return trial.Result{}, err
	}
	result, err := session.RunBasket(ctx, pair, r.Seed, func(line string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, line)
		s.feed.publish("told", map[string]any{"run": r.ID, "line": line})
	})
	if err != nil {
		closeSession(&s.baskets)
		return result, cmp.Or(context.Cause(ctx), err)
	}
	result.Replay = fmt.Sprintf("loadtest run --baskets --cells %s:%s --seed %d --draw", r.Strategy, r.Scenario, r.Seed)
	return result, nil
}

// attackServers runs a cell whose database is more than one server, on servers of its own.
func (s *Server) attackServers(ctx context.Context, r *run, of strategy.Description, under topology.Case) (trial.Result, error) {
	status := matrix.NewStatus(sayer{s}, false)
	defer status.Close()
	ran, err := matrix.RunTopologies(ctx, matrix.Plan{Seed: r.Seed, Shop: s.o.Shop.Program}, []topology.Case{under}, []strategy.Description{of}, status)
	s.say("")
	if err != nil || ran.Interrupted {
		return trial.Result{}, cmp.Or(context.Cause(ctx), err)
	}
	result := ran.Cells[0]
	result.Replay = fmt.Sprintf("loadtest run --topology %s --strategies %s --seed %d --draw", under.Topology.Name, r.Strategy, r.Seed)
	return result, nil
}

// tell publishes what a watcher sees, until stop.
func (s *Server) tell(ctx context.Context, w *watcher) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		tick := time.NewTicker(newsEvery)
		defer tick.Stop()
		for ended := false; !ended; { // the last news are those after ctx has ended
			select {
			case <-tick.C:
			case <-ctx.Done():
				ended = true
			}
			s.mu.Lock()
			begun, now, ok := w.news()
			if begun != nil {
				s.feed.publish("attempt", begun)
			}
			if ok {
				s.feed.publish("seen", now)
			}
			s.mu.Unlock()
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

// session returns the testbed of the cells, or of comparisons, and starts it where there is none.
func (s *Server) session(ctx context.Context, of *comparison) (*matrix.Session, error) {
	at, plan := s.sessionOf(of)
	session, err := s.open(ctx, at, plan, matrix.OpenSession)
	if err == nil && of != nil {
		s.mu.Lock()
		s.environment = session.Environment()
		s.mu.Unlock()
	}
	return session, err
}

// sessionOf is where the testbed of the cells is, or of comparisons, and its plan.
func (s *Server) sessionOf(of *comparison) (**matrix.Session, matrix.Plan) {
	if of != nil {
		return &s.compared, of.plan(s.o.Plan)
	}
	return &s.cells, s.o.Plan
}

// open returns the session there is, or starts one.
func (s *Server) open(ctx context.Context, at **matrix.Session, plan matrix.Plan,
	start func(context.Context, matrix.Plan, *matrix.Status) (*matrix.Session, error)) (*matrix.Session, error) {
	if *at != nil {
		return *at, nil
	}
	status := matrix.NewStatus(sayer{s}, false)
	defer status.Close()
	session, err := start(ctx, plan, status)
	s.say("")
	if err == nil {
		*at = session
	}
	return session, err
}

func closeSession(at **matrix.Session) {
	if *at != nil {
		(*at).Close()
		*at = nil
	}
}

// sayer publishes what a status says before the first cell.
type sayer struct{ s *Server }

var _ io.Writer = sayer{}

func (w sayer) Write(line []byte) (int, error) {
	w.s.say(strings.TrimSpace(string(line)))
	return len(line), nil
}

// say tells what is being started, empty for nothing.
func (s *Server) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.preparing = what
	s.feed.publish("preparing", what)
}
