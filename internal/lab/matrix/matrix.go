// Package matrix runs many cells: strategies under scenarios, on servers and shops of its own or
// given by address.
//
// plan.go plans the cells and how many run at once. testbeds.go starts or opens the testbeds.
// queue.go runs the cells side by side. merge.go makes one result of several runs of a cell.
package matrix

import (
	"context"

	"stocklock/internal/lab/report"
)

// Run runs the cells of a plan, and ends the servers and shops that it started. When ctx ends it,
// or an error, the report has what there is. Shops or servers of the plan that cannot be used are
// an [AddressError].
func Run(ctx context.Context, p Plan, status *Status) (report.Report, error) {
	p = p.Completed()
	t, err := open(ctx, p, status)
	if err != nil {
		return report.Report{}, err
	}
	defer t.close()
	cells, err := t.runAll(ctx, status)
	if ctx.Err() != nil {
		err = nil // what there is, is the result
	}
	return report.Report{Environment: t.environment(), Strategies: p.Strategies, Cells: cells, Interrupted: ctx.Err() != nil || err != nil}, err
}
