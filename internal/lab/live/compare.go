package live

import (
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// The limits of a comparison under load.
const (
	maxLoadStrategies = 12
	maxLoadRequests   = 20_000
	maxLoadTime       = time.Minute
)

// comparison is several strategies under the same load, one after another.
type comparison struct {
	ID         int      `json:"id"`
	Strategies []string `json:"strategies"`
	Shape      string   `json:"shape"` // as load.ParseShape reads it; empty for as fast as the customers can
	Stock      int64    `json:"stock"` // 0 for what follows from the shape
	Seed       uint64   `json:"seed"`
	Beside     int      `json:"beside,omitempty"` // cells that ran at once on the same cores
	Others     []string `json:"others,omitempty"` // that were measured under other conditions

	shape       load.Shape
	environment report.Environment // of its last run
}

// compare puts a comparison at the end of the queue.
func (s *Server) compare(c comparison) (*comparison, error) {
	if err := s.checkLoad(&c); err != nil {
		return nil, err
	}
	var cells []wanted
	for _, name := range c.Strategies {
		cells = append(cells, wanted{cellName{name, trial.Contention}, c.Seed, 0})
	}
	_, err := s.enqueue(cells, &c)
	return &c, err
}

// checkLoad completes a comparison, or says what is wrong with it.
func (s *Server) checkLoad(c *comparison) (err error) {
	named := map[string]bool{}
	c.Strategies = slices.DeleteFunc(c.Strategies, func(name string) bool { again := named[name]; named[name] = true; return again })
	if n := len(c.Strategies); n < 1 || n > maxLoadStrategies {
		return words.Of("load.strategies", "count", n, "least", 1, "most", maxLoadStrategies)
	}
	if c.shape, err = load.ParseShape(c.Shape); err != nil {
		return words.Of("load.shape", "why", words.Why(err))
	}
	requests, ends := c.shape.Total()
	if c.Stock == 0 {
		c.Stock = 100
		if ends {
			c.Stock = min(int64(requests)*9/10, maxLoadRequests/2) // as loadtest run has it
		}
	}
	if c.Stock < 1 || c.Stock > maxLoadRequests/2 {
		return words.Of("load.stock", "count", c.Stock, "least", 1, "most", maxLoadRequests/2)
	}
	if c.shape.IsZero() {
		return nil
	}
	switch {
	case !ends:
		return words.Of("load.endless")
	case requests > maxLoadRequests || c.shape.Due(requests) > maxLoadTime:
		return words.Of("load.too-long", "count", requests, "time", c.shape.Due(requests).Round(time.Second).String(), "most", maxLoadRequests, "longest", maxLoadTime.String())
	case int64(requests) <= c.Stock:
		return words.Of("load.too-few", "count", requests, "stock", c.Stock)
	}
	return nil
}

// comparison finds one by its id, nil for 0. It is called with mu.
func (s *Server) comparison(id int) *comparison {
	if id < 1 || id > len(s.loads) {
		return nil
	}
	return s.loads[id-1]
}

// plan is that of the testbed on which all comparisons run: nothing stands between its shops and
// its servers.
func (*comparison) plan(of matrix.Plan) matrix.Plan {
	of.Pairs = slices.DeleteFunc(slices.Clone(of.Pairs), func(p matrix.Pair) bool { return p.Scenario.Name != trial.Contention })
	of.Stock, of.Requests, of.Lease, of.Wait = 0, 0, 0, 0 // those of a comparison
	return of
}

// apply makes the options of a testbed those of this comparison.
func (c *comparison) apply(o *trial.Options) {
	o.Stock, o.Shape, o.Requests = c.Stock, c.shape, 4*int(c.Stock)
	if requests, ends := c.shape.Total(); ends {
		o.Requests = requests
	}
}

// report is what there is of a comparison.
func (s *Server) report(id int) (report.Report, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.comparison(id)
	if of == nil {
		return report.Report{}, fmt.Errorf("there is no comparison %d", id)
	}
	r := report.Report{Environment: of.environment, Strategies: s.o.Shop.Strategies}
	r.Environment.Command, r.Environment.Seed, r.Environment.Rate = "loadtest serve", of.Seed, of.Shape
	for _, run := range s.runs {
		switch {
		case run.Load != id:
		case run.result != nil:
			r.Cells = append(r.Cells, *run.result)
		default:
			r.Interrupted = true
		}
	}
	return r, nil
}
