package matrix

import (
	"context"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
)

// Session is one testbed that stays between cells. Cells run on it one after another: it is not for
// concurrent use.
type Session struct{ testbeds *testbeds }

// OpenSession starts or opens what the cells of a plan need. Cells that the plan does not have run
// on it too, as far as it has the servers for them. The caller closes it.
func OpenSession(ctx context.Context, p Plan, status *Status) (*Session, error) {
	p.Parallel = 1
	t, err := open(ctx, p.Completed(), status)
	if err != nil {
		return nil, err
	}
	return &Session{t}, nil
}

// Options are those of the plan, for [Session.Run]. The options of the locks cannot be changed: the
// shops have them since they were started.
func (s *Session) Options() trial.Options { return s.testbeds.plan.options() }

// Run runs one cell. An error means that the session cannot go on, or that ctx has ended.
func (s *Session) Run(ctx context.Context, c trial.Cell, o trial.Options) (trial.Result, error) {
	return trial.Run(ctx, s.testbeds.benches[0], c, o)
}

// Environment is everything that may change the numbers.
func (s *Session) Environment() report.Environment { return s.testbeds.environment() }

// Close ends what was started.
func (s *Session) Close() { s.testbeds.close() }
