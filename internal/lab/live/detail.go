package live

import (
	"net/http"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// detail is a run with everything that the page shows of it.
type detail struct {
	run
	Because  words.Text            `json:"because,omitzero"`  // of what was expected
	Why      []words.Text          `json:"why"`               // the explanation, or what the verdict rests on
	Drawing  *drawing.Interleaving `json:"drawing,omitempty"` // of those who clashed
	Orders   []explain.Row         `json:"orders,omitempty"`  // that the explanation speaks of
	Outcomes string                `json:"outcomes,omitempty"`
	Latency  string                `json:"latency,omitempty"`
	Buckets  string                `json:"buckets,omitempty"` // of latency
	Holding  []string              `json:"holding,omitempty"` // the nearest strategies that would have held
	Story    []words.Text          `json:"story,omitempty"`   // of a cell of several items, or of a topology
	Requests int64                 `json:"requests,omitempty"`
	Runs     int                   `json:"runs,omitempty"`
	Agreed   int                   `json:"agreed,omitempty"`
	Again    string                `json:"again,omitempty"`
	Knee     words.Text            `json:"knee,omitzero"` // of a load whose rate changes
	// Facts are the numbers that the page shows, and Columns those of a comparison under load.
	Facts   []report.Number `json:"facts,omitempty"`
	Columns []report.Number `json:"columns,omitempty"`
	Replay  *replay         `json:"replay,omitempty"` // nil where its entries are not kept any more
	// Texts are what the drawings say. They have their numbers.
	Texts [][]words.Text `json:"texts,omitempty"`
}

// replay is a record as it is drawn and stepped through.
type replay struct {
	Columns []drawing.Column `json:"lanes"`
	Height  float64          `json:"height"`
	EndsMS  float64          `json:"ends_ms"`
	Initial int64            `json:"initial"`
	LeaseMS float64          `json:"lease_ms"`
	Ignore  []string         `json:"ignore,omitempty"` // keys of the first server that are not the lock
	// Exclusive says that two sales in the section at once were a failure.
	Exclusive bool    `json:"exclusive,omitempty"`
	Shapes    string  `json:"shapes"`
	Entries   []Entry `json:"entries"`
	// Decisive is when the cell was decided, in milliseconds of the entries; 0 where there is no
	// single moment.
	Decisive float64 `json:"decisive,omitempty"`
}

func (s *Server) serveRun(w http.ResponseWriter, r *http.Request) {
	of, ok := s.asked(w, r)
	if !ok {
		return
	}
	s.mu.Lock()
	beside := besides(of, s.runs)
	s.mu.Unlock()
	answer(w, http.StatusOK, newDetail(of, beside))
}

// newDetail is all that is known of a run. Its charts have the axes of those beside it.
func newDetail(of run, beside []trial.Timeline) detail {
	d := detail{run: of}
	if of.result == nil {
		return d
	}
	r, said := of.result, &drawing.Words{}
	d.Because, d.Why = r.Because.Text(), []words.Text{r.Shown().Reason(r.Facts())}
	switch {
	case !r.Why().IsZero():
		d.Why[0] = r.Why()
	case d.Why[0].IsZero():
		d.Why[0] = r.Shown().Means(r.Group)
	}
	if d.Holding = r.Holding(); len(d.Holding) > trial.Nearest {
		d.Holding = d.Holding[:trial.Nearest]
	}
	d.Facts, d.Columns = report.Numbers(*r)
	if of.Load != 0 {
		d.Facts, d.Knee, d.Buckets = nil, report.Knee(r.Steps), drawing.Distribution(r.Distribution, said)
	} else if d.Columns = nil; r.Explanation != nil {
		d.Why, d.Orders, d.Drawing = r.Explanation.Why, r.Explanation.Rows, drawing.NewInterleaving(r.Explanation, said)
	}
	d.Story, d.Requests, d.Runs, d.Agreed, d.Again = of.told, r.Requests, r.Runs, r.Agreed, r.Replay
	d.Outcomes, d.Latency = drawing.OverTime(r.Timeline, said, beside...)
	if of.record != nil {
		d.Replay = newReplay(of.record, *r)
	}
	d.Texts = said.Texts
	return d
}

// besides are the timelines of the comparison that a run belongs to.
func besides(of run, runs []*run) (all []trial.Timeline) {
	for _, r := range runs {
		if of.Load != 0 && r.Load == of.Load && r.result != nil {
			all = append(all, r.result.Timeline)
		}
	}
	return all
}

func newReplay(of *record, result trial.Result) *replay {
	drawn := of.replay(result.Verdict)
	r := &replay{Columns: drawn.Columns, Height: drawn.height, EndsMS: of.ends(), Initial: of.scene.Initial, LeaseMS: of.scene.LeaseMS,
		Ignore: of.scene.Ignore, Exclusive: drawn.Exclusive, Shapes: drawn.Take(), Entries: of.entries}
	if x := result.Explanation; x != nil && x.Moment != nil {
		r.Decisive = of.decided(x.StartMS + x.Moment.AtMS)
	}
	return r
}
