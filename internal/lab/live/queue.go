package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

const (
	// maxWaiting bounds how many cells wait, besides a whole matrix.
	maxWaiting = 500
	// longestRun bounds one run, with what has to be started for it.
	longestRun = 5 * time.Minute
	// maxShops bounds the shops of a run with a testbed of its own.
	maxShops = 16
	// newsEvery is how often a page gets what is new of the cell that runs.
	newsEvery = 100 * time.Millisecond
)

var errFull error = words.Of("refused.full")

// wanted is a cell to run.
type wanted struct {
	cellName
	Seed  uint64 `json:"seed"`
	Shops int    `json:"shops,omitempty"` // 0 for those of the page
}

// mostWaiting is how many cells can wait. The first ones take nobody's place.
func (s *Server) mostWaiting() int { return len(s.o.First) + len(s.o.Plan.Pairs) + maxWaiting }

// enqueue puts cells at the end of the queue, with the comparison that they are of.
func (s *Server) enqueue(cells []wanted, of *comparison) ([]*run, error) {
	if len(cells) == 0 {
		return nil, errors.New("no cell: want one or more")
	}
	for _, c := range cells {
		if _, err := s.pair(c.cellName); err != nil {
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
	if waits+len(cells) > s.mostWaiting() {
		return nil, errFull
	}
	if of != nil {
		of.ID = len(s.loads) + 1
		s.loads = append(s.loads, of)
		s.feed.publish("load", of)
	}
	var added []*run
	for _, c := range cells {
		if c.Shops == s.o.Plan.Shops {
			c.Shops = 0 // it needs no testbed of its own
		}
		r := &run{ID: len(s.runs) + 1, cellName: c.cellName, Seed: c.Seed, Shops: c.Shops, State: waiting}
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
	for {
		waits := s.waits()
		s.firstDone() // after waits: nothing else wakes it for cells that are dropped
		if ctx.Err() != nil {
			s.drop()
			s.firstDone()
			return
		}
		if !waits {
			select {
			case <-s.wake:
			case <-ctx.Done():
			}
			continue
		}
		if release, err := s.machine(ctx); err == nil {
			s.runNext(ctx)
			release()
		}
	}
}

// firstDone hands on the results of the first cells, once none of them waits or runs. They have the first ids behind
// those of an earlier process.
func (s *Server) firstDone() {
	if s.o.FirstDone == nil {
		return
	}
	var results []trial.Result
	s.mu.Lock()
	first := s.runs[s.before:][:len(s.o.First)]
	over := !slices.ContainsFunc(first, func(r *run) bool { return r.State == waiting || r.State == running })
	for _, r := range first {
		if r.result != nil {
			results = append(results, *r.result)
		}
	}
	s.mu.Unlock()
	if over {
		s.o.FirstDone(results, s.where)
		s.o.FirstDone = nil
	}
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

func (s *Server) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.runs, func(r *run) bool { return r.State == waiting })
}

// next is the run that has waited longest, with those that share its servers: of a case of a topology, all that wait
// with its seed. It is none where nothing waits. It is called with mu.
func (s *Server) next() (together []*run) {
	for _, r := range s.runs {
		first := len(together) == 0
		same := !first && r.Scenario == together[0].Scenario && r.Seed == together[0].Seed &&
			!slices.ContainsFunc(together, func(other *run) bool { return other.Strategy == r.Strategy })
		if r.State != waiting || !first && !same {
			continue
		}
		together = append(together, r)
		if pair, _ := s.pair(r.cellName); pair.Scenario.Topology == nil {
			break
		}
	}
	return together
}

var errDropped error = words.Of("refused.dropped")

// runNext runs what is next.
func (s *Server) runNext(ctx context.Context) {
	ctx, cancelTime := context.WithTimeoutCause(ctx, longestRun, words.Of("refused.long", "time", longestRun.String()))
	defer cancelTime()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	together := s.next()
	if len(together) == 0 { // dropped meanwhile
		s.mu.Unlock()
		return
	}
	s.stop = func() { cancel(errDropped) }
	of := s.comparison(together[0].Load)
	for _, r := range together {
		r.State = running
		if r.Load == 0 && r.Shops == 0 {
			s.began(r.cellName, "")
		}
		s.feed.publish("running", r)
	}
	s.mu.Unlock()

	results, watched, err := s.attack(ctx, together, of)
	var seen *record
	if watched != nil {
		seen = watched.record()
	}

	s.mu.Lock()
	s.stop, s.watching = nil, nil
	for i, r := range together {
		switch {
		case errors.Is(err, errDropped) || errors.Is(err, context.Canceled):
			r.State, r.Error = dropped, words.Why(err)
		case err != nil:
			r.State, r.Error = failed, words.Why(err)
		default:
			s.concluded(r, results[i])
			if seen != nil && r.Load == 0 { // nobody steps through a load
				s.keep(r, seen)
			}
		}
	}
	s.mu.Unlock()
	for _, r := range together {
		if r.State == ended {
			s.write(r, seen)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range together {
		s.feed.publish("ended", struct {
			*run
			Score score `json:"score"`
		}{r, s.score})
	}
}

// keep keeps the record of a run, and forgets the oldest one. It is called with mu.
func (s *Server) keep(r *run, kept *record) {
	r.record = kept
	s.records = append(s.records, r)
	if len(s.records) > keptRecords {
		s.records[0].record = nil
		s.records = s.records[1:]
	}
}

// write writes what is kept of a run that has ended. It is called without mu: nobody waits for the disk.
func (s *Server) write(r *run, seen *record) {
	if seen != nil && s.o.Record != "" {
		s.recorded++
		if err := seen.keep(s.o.Record, s.recorded, *r); err != nil {
			s.log("the record of run %d is not kept: %v", r.ID, err)
		}
	}
	if r.Load == 0 {
		if err := s.keeper.keep(r); err != nil {
			slog.Warn(fmt.Sprintf("run %d is not kept in %s: %v", r.ID, s.o.Keep, err))
		}
	}
}

// attack runs cells that share their servers. Only of a crowd there is a watcher; the others tell their story.
func (s *Server) attack(ctx context.Context, together []*run, of *comparison) ([]trial.Result, *watcher, error) {
	r := together[0]
	var strategies []declared.Strategy
	var pair matrix.Pair
	for _, r := range together {
		var err error
		if pair, err = s.pair(r.cellName); err != nil {
			return nil, nil, err
		}
		strategies = append(strategies, pair.Strategy)
	}
	kind, plan := s.sessionOf(pair, of)
	if r.Shops != 0 && pair.Scenario.Few == nil {
		kind, plan.Shops = "own", r.Shops
		defer s.endSession(kind)
	}
	session, err := s.open(ctx, kind, plan)
	if err != nil {
		return nil, nil, err
	}
	if kind == trial.OneServer || s.where.Time == "" {
		s.where = session.Environment()
	}
	o := session.Options(pair.Scenario)
	if of != nil {
		of.apply(&o)
		s.mu.Lock()
		of.environment = session.Environment()
		s.mu.Unlock()
	}
	o.Told = func(said words.Text) { s.tellStory(together, said) }
	var w *watcher
	stop := func() {}
	if pair.Scenario.Few == nil {
		w = newWatcher(r.ID, pair, o, plan.Shops)
		s.mu.Lock()
		s.watching = w
		s.mu.Unlock()
		o.Watch = w.saw
		stop = s.tell(ctx, w)
	}
	results, err := session.Run(ctx, pair.Scenario, strategies, r.Seed, o)
	stop()
	if err != nil {
		s.endSession(kind) // its testbed may be broken, or in the middle of a scenario
		return nil, w, cmp.Or(context.Cause(ctx), err)
	}
	for i := range results {
		results[i].Replay = s.o.Again(results[i]) + conditions(pair.Scenario, o, plan.Shops)
	}
	return results, w, nil
}

// conditions are the flags of a command that runs a cell as it was run here.
func conditions(sc trial.Scenario, o trial.Options, shops int) (flags string) {
	if sc.Few != nil {
		return " --draw"
	}
	if shops != matrix.DefaultShops {
		flags += fmt.Sprintf(" --shops %d", shops)
	}
	if sc.Comparable { // beside faults, it has their stock
		flags += fmt.Sprintf(" --stock %d", o.Stock)
	}
	if !o.Shape.IsZero() {
		flags += " --rate " + o.Shape.String()
	}
	return flags
}

// tellStory adds a line to the story of runs.
func (s *Server) tellStory(of []*run, said words.Text) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range of {
		r.told = append(r.told, said)
	}
	s.feed.publish("told", said)
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

// sessionOf is the kind of the session that a cell is played in, or a comparison, and its plan.
func (s *Server) sessionOf(pair matrix.Pair, of *comparison) (kind string, plan matrix.Plan) {
	plan = s.o.Plan
	switch {
	case of != nil:
		return "compared", of.plan(plan)
	case pair.Scenario.Few == nil:
		return trial.OneServer, plan
	}
	plan.Pairs = []matrix.Pair{pair}
	if pair.Scenario.OfBaskets() || pair.Scenario.OfReservations() {
		return pair.Scenario.Group, plan
	}
	return "topologies", plan
}

// open returns the session there is, or starts one.
func (s *Server) open(ctx context.Context, kind string, plan matrix.Plan) (*matrix.Session, error) {
	if session := s.sessions[kind]; session != nil {
		return session, nil
	}
	status := matrix.NewStatus(sayer{s}, 0)
	defer status.Close()
	session, err := matrix.OpenSession(ctx, plan, status)
	s.say("")
	if err == nil {
		s.sessions[kind] = session
	}
	return session, err
}

func (s *Server) closeSession(kind string) (err error) {
	if session := s.sessions[kind]; session != nil {
		err = session.Close()
		delete(s.sessions, kind)
	}
	return err
}

// endSession is closeSession where a run goes on, or ends for another reason.
func (s *Server) endSession(kind string) {
	if err := s.closeSession(kind); err != nil {
		s.log("end the servers of a run: %v", err)
	}
}

// sayer publishes what a status says before the first cell.
type sayer struct{ s *Server }

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
