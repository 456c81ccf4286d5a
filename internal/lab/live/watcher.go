package live

import (
	"maps"
	"slices"
	"sync"
	"time"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

// watcher follows one run of a cell. It is safe for concurrent use.
type watcher struct {
	cell    matrix.Pair
	options trial.Options
	shops   []string

	mu       sync.Mutex // guards the rest
	reader   reader
	attempt  attempt
	unshown  bool // the attempt was not yet shown
	entries  []Entry
	picture  *picture
	shapes   []byte // all that was finished
	changed  bool
	counts   counts
	latency  []sample // of the last seconds
	evidence *explain.Evidence
}

// attempt is what a page needs to draw a cell.
type attempt struct {
	Run     int              `json:"run"`
	Columns []drawing.Column `json:"lanes"`
	Height  float64          `json:"height"`
	LeaseMS float64          `json:"lease_ms"`
	Singles bool             `json:"singles"` // single requests are shown
}

// counts are the numbers of a cell that runs. Stock and sold come from SQL, outcomes from clients.
type counts struct {
	Stock    int64                `json:"stock"`
	Sold     int64                `json:"sold"`
	Oversold int64                `json:"oversold"`
	Outcomes map[load.Outcome]int `json:"outcomes"`
	Rate     float64              `json:"rate"` // sales a second
	P50      float64              `json:"p50_ms"`
	P99      float64              `json:"p99_ms"`
}

// sample is one answer.
type sample struct {
	at      time.Time
	latency float64
	sold    bool
}

// sampleFor is the time of which rate and latency are shown.
const sampleFor = 2 * time.Second

// seen is what is new of a cell that runs.
type seen struct {
	Run     int     `json:"run"`
	AtMS    float64 `json:"at_ms"`
	Inside  []int   `json:"inside"`  // of each shop
	Waiting []int   `json:"waiting"` // of each shop
	Lock    lockNow `json:"lock"`
	Shapes  string  `json:"shapes"` // SVG, finished since the last time
	Lasting string  `json:"lasting"`
	counts
}

func newWatcher(run int, c matrix.Pair, o trial.Options, shops int) *watcher {
	w := &watcher{cell: c, options: o, attempt: attempt{Run: run, Singles: !c.Scenario.Comparable}}
	for i := range shops {
		w.shops = append(w.shops, explain.ShopName(i))
	}
	w.begin(trial.Attempt{Began: time.Now()})
	return w
}

// saw is a [trial.Watch].
func (w *watcher) saw(what any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = true
	switch v := what.(type) {
	case trial.Attempt:
		w.begin(v)
		return
	case explain.Evidence:
		w.evidence = &v
		return
	case explain.Request:
		w.answered(v)
	case trial.Look:
		w.counts.Stock, w.counts.Sold, w.counts.Oversold = v.Remaining, v.Sold, v.Oversold
	}
	for _, e := range w.reader.entries(what) {
		w.entries = append(w.entries, e)
		w.picture.saw(e)
	}
}

// begin shows an attempt from its beginning.
func (w *watcher) begin(a trial.Attempt) {
	w.reader = reader{began: a.Began, singles: w.attempt.Singles}
	w.entries, w.shapes, w.latency, w.evidence = nil, nil, nil, nil
	w.counts = counts{Stock: w.options.Stock, Outcomes: map[load.Outcome]int{}}
	w.picture = newPicture(w.scene(a.ItemID))
	w.attempt.Columns, w.attempt.Height = w.picture.Columns, w.picture.height
	w.attempt.LeaseMS = w.picture.LeaseMS
	w.unshown, w.changed = true, true
}

func (w *watcher) scene(item uint64) scene {
	s := scene{Shops: w.shops, LeaseMS: w.options.Lease.Seconds() * 1000, Initial: w.options.Stock, Ignore: declared.KeysOf(w.cell.Strategy.State.Keys, item)}
	s.Servers = []string{explain.Primary}
	switch {
	case w.cell.Strategy.NeedsQuorum:
		s.Servers = nil
		for i := range rig.QuorumServers {
			s.Servers = append(s.Servers, explain.QuorumServer(i, rig.QuorumServers))
		}
	case w.cell.Scenario.Attacks == declared.SurvivesDataLoss && w.cell.Scenario.Needs == trial.Rig:
		s.Servers = append(s.Servers, explain.Replica)
	}
	s.Rows = mostRows
	if w.cell.Strategy.Properties.Has.Includes(declared.Exclusive) {
		s.Rows = 1
	}
	s.Exclusive = !w.cell.Strategy.Properties.Meets(declared.StorageChecked) && !w.cell.Strategy.State.Elsewhere()
	return s
}

func (w *watcher) answered(v explain.Request) {
	if v.Outcome == "" {
		return
	}
	w.counts.Outcomes[load.Outcome(v.Outcome)]++
	if !v.Answered.IsZero() {
		w.latency = append(w.latency, sample{v.Answered, v.Answered.Sub(v.Sent).Seconds() * 1000, v.Outcome == string(load.Sold)})
	}
}

// news is what has changed since it was asked the last time. It is false for nothing.
func (w *watcher) news() (begun *attempt, now seen, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.changed {
		return nil, seen{}, false
	}
	if w.unshown {
		copied := w.attempt
		begun, w.unshown = &copied, false
	}
	w.changed = false
	shapes := w.picture.Take()
	w.shapes = append(w.shapes, shapes...)
	w.measure()
	return begun, w.seen(shapes), true
}

// seen is how things stand, with these finished shapes.
func (w *watcher) seen(shapes string) seen {
	at := w.reader.ms(time.Now())
	s := seen{Run: w.attempt.Run, AtMS: at, Shapes: shapes, Lasting: w.picture.Lasting(at), counts: w.counts}
	s.Inside, s.Waiting, s.Lock = w.picture.now()
	s.Outcomes = maps.Clone(w.counts.Outcomes)
	return s
}

// measure takes rate and latency from the answers of the last seconds.
func (w *watcher) measure() {
	since := time.Now().Add(-sampleFor)
	w.latency = slices.DeleteFunc(w.latency, func(s sample) bool { return s.at.Before(since) })
	var latencies []float64
	sold := 0
	for _, s := range w.latency {
		latencies = append(latencies, s.latency)
		if s.sold {
			sold++
		}
	}
	span := min(time.Since(w.reader.began), sampleFor).Seconds()
	w.counts.Rate = float64(sold) / max(span, 0.2)
	if slices.Sort(latencies); len(latencies) > 0 {
		w.counts.P50, w.counts.P99 = load.Percentile(latencies, 50), load.Percentile(latencies, 99)
	}
}

// everything is the attempt and all that was seen until now, for a page that comes later.
func (w *watcher) everything() (attempt, seen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attempt, w.seen(string(w.shapes))
}

// record is all that was seen, when the cell has ended; nil of one that was not attacked.
func (w *watcher) record() *record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.evidence == nil {
		return nil
	}
	looks := slices.DeleteFunc(w.entries, func(e Entry) bool { return e.Kind != Looked })
	return &record{w.picture.scene, w.reader.all(*w.evidence, looks)}
}
