package live

import (
	"errors"
	"fmt"
	"slices"

	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// cellName is a strategy under a scenario.
type cellName struct {
	Strategy string `json:"strategy"`
	Scenario string `json:"scenario"`
}

// runState is how far a run is.
type runState string

const (
	waiting runState = "waiting"
	running runState = "running"
	ended   runState = "ended"
	failed  runState = "failed"  // the harness failed, or it took too long
	dropped runState = "dropped" // before it began, or while it ran
)

// run is one run of a cell.
type run struct {
	ID int `json:"id"`
	cellName
	Seed       uint64       `json:"seed"`
	State      runState     `json:"state"`
	Load       int          `json:"load,omitempty"`  // the comparison that it belongs to
	Shops      int          `json:"shops,omitempty"` // where it has a testbed of its own
	Prediction string       `json:"prediction,omitempty"`
	Verdict    verdict.Kind `json:"verdict,omitempty"`
	N          int64        `json:"n,omitempty"`        // the number of the verdict
	Promised   string       `json:"promised,omitempty"` // units of how many, where the database is several servers
	Expected   verdict.Kind `json:"expected,omitempty"`
	Surprise   bool         `json:"surprise,omitempty"`
	Error      words.Text   `json:"error,omitzero"`

	result *trial.Result
	record *record      // nil where it is not kept any more
	told   []words.Text // its story, of a cell of several items or of a topology
}

// keptRecords is of how many runs the entries are kept.
const keptRecords = 50

// score is how many predictions came true.
type score struct {
	Right int `json:"right"`
	Of    int `json:"of"`
}

// state is everything that a page shows, for one that comes new.
type state struct {
	Runs        []*run        `json:"runs"` // the last one of each cell, and all that have not ended
	Predictions []prediction  `json:"predictions"`
	Score       score         `json:"score"`
	Preparing   string        `json:"preparing"`
	Loads       []*comparison `json:"loads"`
	Attempt     *attempt      `json:"attempt,omitempty"`
	Seen        *seen         `json:"seen,omitempty"`
	Votes       *tally        `json:"votes,omitempty"`  // of the class
	Played      *played       `json:"played,omitempty"` // the schedule that was played last
	Told        []words.Text  `json:"told,omitempty"`   // the story of what runs, until now
}

type prediction struct {
	cellName
	Word string `json:"word"` // empty takes it back
}

// state returns it with the number of the last event that it has.
func (s *Server) state() (state, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := state{Score: s.score, Preparing: s.preparing, Predictions: []prediction{}, Loads: s.loads, Votes: s.class.tally(), Played: s.played}
	type cell struct {
		cellName
		shops int
	}
	latest := map[cell]int{}
	for _, r := range s.runs {
		if r.State != waiting && r.State != running && r.State != dropped && r.Load == 0 {
			latest[cell{r.cellName, r.Shops}] = r.ID
		}
	}
	for _, r := range s.runs {
		if latest[cell{r.cellName, r.Shops}] == r.ID || r.State == waiting || r.State == running || r.Load != 0 {
			copied := *r
			now.Runs = append(now.Runs, &copied)
			if r.State == running {
				now.Told = slices.Clone(r.told)
			}
		}
	}
	for c, word := range s.predictions {
		now.Predictions = append(now.Predictions, prediction{c, word})
	}
	if w := s.watching; w != nil {
		a, seen := w.everything()
		now.Attempt, now.Seen = &a, &seen
	}
	return now, s.feed.last()
}

// run returns a copy of a run, with what it keeps.
func (s *Server) run(id int) (run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 1 || id > len(s.runs) {
		return run{}, errors.New("there is no run of this number")
	}
	return *s.runs[id-1], nil
}

// predict notes what is predicted of a cell.
func (s *Server) predict(p prediction) error {
	if _, err := s.pair(p.cellName); err != nil {
		return err
	}
	if p.Word != "" && !verdict.Of(verdict.Kind(p.Word)).Predictable {
		return fmt.Errorf("%q is no verdict: want one of %v", p.Word, s.menu.Words)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.runsAlready(p.cellName); err != nil {
		return err
	}
	if p.Word == "" {
		delete(s.predictions, p.cellName)
	} else {
		s.predictions[p.cellName] = p.Word
	}
	s.feed.publish("predicted", p)
	return nil
}

// runsAlready refuses what has to be asked before a cell runs. It is called with mu.
func (s *Server) runsAlready(of cellName) error {
	if slices.ContainsFunc(s.runs, func(r *run) bool {
		return r.State == running && r.Load == 0 && r.Shops == 0 && r.cellName == of
	}) {
		return words.Of("refused.runs", "strategy", of.Strategy, "scenario", of.Scenario)
	}
	return nil
}

// conclude has a run end with a result.
func (r *run) conclude(result trial.Result) {
	r.result, r.State = &result, ended
	r.Verdict, r.Expected, r.Surprise = result.Verdict, result.Expected, result.Surprise()
	r.N, r.Promised = verdict.Of(r.Verdict).Count(result.Facts()), result.Promise()
}

// concluded notes how a run has ended. It is called with mu.
func (s *Server) concluded(r *run, result trial.Result) {
	r.conclude(result)
	v := verdict.Of(r.Verdict)
	s.forget(r)
	if r.Load == 0 && r.Shops == 0 {
		s.decided(r.cellName, "", r.Verdict)
	}
	if word, ok := s.predictions[r.cellName]; ok && r.Load == 0 && r.Shops == 0 && v.Predictable {
		delete(s.predictions, r.cellName)
		r.Prediction = word
		s.score.Of++
		if word == string(r.Verdict) {
			s.score.Right++
		}
	}
}

// forget drops what the earlier runs of a cell came to: pages show the last run. The one before stays, for a page that
// is just asking for it. It is called with mu.
func (s *Server) forget(last *run) {
	kept := 0
	for _, r := range slices.Backward(s.runs) {
		if r.result == nil || r.Load != 0 || r.cellName != last.cellName || r.Shops != last.Shops {
			continue
		}
		if kept++; kept > 2 {
			r.result, r.told = nil, nil
		}
	}
}
