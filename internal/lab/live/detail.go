package live

import (
	"cmp"
	"html/template"
	"net/http"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
)

// detail is a run with everything that the page shows of it.
type detail struct {
	run
	Because  string        `json:"because,omitempty"` // of what was expected
	Sentence string        `json:"sentence,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Whole    template.HTML `json:"whole,omitempty"` // the drawing of those who clashed
	CloseUp  template.HTML `json:"close_up,omitempty"`
	Outcomes template.HTML `json:"outcomes,omitempty"` // over time
	Latency  template.HTML `json:"latency,omitempty"`  // over time
	Holding  []string      `json:"holding,omitempty"`  // the nearest strategies that would have held
	Story    []line        `json:"story,omitempty"`    // of a cell of several items, or of a topology
	Numbers  *trial.Result `json:"numbers,omitempty"`
	// Facts are the numbers that the page shows, and Columns those of a comparison under load.
	Facts   []report.Number `json:"facts,omitempty"`
	Columns []report.Number `json:"columns,omitempty"`
	Replay  *replay         `json:"replay,omitempty"` // nil where its entries are not kept any more
}

// replay is a record as it is drawn and stepped through.
type replay struct {
	Columns []Column `json:"lanes"`
	Height  float64  `json:"height"`
	EndsMS  float64  `json:"ends_ms"`
	Initial int64    `json:"initial"`
	LeaseMS float64  `json:"lease_ms"`
	Shapes  string   `json:"shapes"`
	Entries []Entry  `json:"entries"`
	// Decisive is when the cell was decided, in milliseconds of the entries; 0 where there is no
	// single moment.
	Decisive float64 `json:"decisive,omitempty"`
}

func (s *Server) serveRun(w http.ResponseWriter, r *http.Request) {
	of, ok := s.asked(w, r)
	if !ok {
		return
	}
	language := explain.English
	if r.URL.Query().Get("lang") == "zh" {
		language = explain.Chinese
	}
	answer(w, http.StatusOK, s.detail(of, language))
}

func (s *Server) detail(of run, in explain.Language) detail {
	d := detail{run: of}
	if of.result == nil {
		return d
	}
	result, shown := *of.result, of.result.Shown()
	d.Because, d.Reason = result.Because.String(), cmp.Or(result.Problem, shown.Reason(in.String(), result.Facts()), shown.In(in.String()).Means)
	if d.Holding = result.Holding(); len(d.Holding) > trial.Nearest {
		d.Holding = d.Holding[:trial.Nearest]
	}
	if x := result.Explanation; x != nil {
		d.Sentence = in.Say(x.Why...)
		drawn := drawing.NewInterleaving(x, in)
		d.Whole, d.CloseUp = drawn.Whole, drawn.Closer
	}
	d.Story = of.told
	d.Facts, d.Columns = report.Numbers(result, in.String())
	d.Outcomes, d.Latency = drawing.OverTime(result.Timeline, in, s.besides(of)...)
	if of.record != nil {
		d.Replay = newReplay(of.record, result)
	}
	result.Explanation, result.Timeline, result.Distribution = nil, trial.Timeline{}, nil // drawn already
	d.Numbers = &result
	return d
}

// besides are the timelines of the comparison that a run belongs to.
func (s *Server) besides(of run) (all []trial.Timeline) {
	if of.Load == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.Load == of.Load && r.result != nil {
			all = append(all, r.result.Timeline)
		}
	}
	return all
}

func newReplay(of *record, result trial.Result) *replay {
	drawn := of.replay(result.Verdict)
	r := &replay{Columns: drawn.Columns, Height: drawn.height, EndsMS: of.ends(), Initial: of.scene.Initial, LeaseMS: of.scene.LeaseMS,
		Shapes: drawn.Take(), Entries: of.entries}
	if x := result.Explanation; x != nil && x.Moment != nil {
		r.Decisive = of.decided(x.StartMS + x.Moment.AtMS)
	}
	return r
}
