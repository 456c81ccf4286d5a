package shop

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// The headers that a shop in lab mode obeys. Any other shop does not look at them.
const (
	labStrategyHeader = "X-Lab-Strategy" // the name of a strategy
	labRunHeader      = "X-Lab-Run"      // the run that the order belongs to
	labFaultHeader    = "X-Lab-Fault"    // see labmode.ParseFault
	labNestedHeader   = "X-Lab-Nested"   // 1: the sale takes its lock a second time
)

// maxRunLength is what orders.run can hold.
const maxRunLength = 64

// experiment is what a request asks of a shop in lab mode.
type experiment struct {
	strategy strategy.Strategy
	run      string
	fault    labmode.Fault
	nested   bool
}

func readExperiment(c *gin.Context, usual strategy.Strategy) (experiment, error) {
	asked := experiment{strategy: usual, run: c.GetHeader(labRunHeader)}
	if asked.run != "" && !isLabel(asked.run, maxRunLength) {
		return experiment{}, refusal{malformed, fmt.Sprintf("%s must be 1 to %d printable characters", labRunHeader, maxRunLength)}
	}
	var err error
	if name := c.GetHeader(labStrategyHeader); name != "" {
		if asked.strategy, err = strategy.ByName(name); err != nil {
			return experiment{}, refusal{malformed, fmt.Sprintf("%s: %v", labStrategyHeader, err)}
		}
	}
	if spec := c.GetHeader(labFaultHeader); spec != "" {
		if asked.fault, err = labmode.ParseFault(spec); err != nil {
			return experiment{}, refusal{malformed, fmt.Sprintf("%s: %v", labFaultHeader, err)}
		}
	}
	switch nested := c.GetHeader(labNestedHeader); nested {
	case "":
	case "1":
		asked.nested = true
	default:
		return experiment{}, refusal{malformed, fmt.Sprintf("%s must be 1 or missing, not %q", labNestedHeader, nested)}
	}
	return asked, nil
}

// hook makes a sale be recorded, work for a while at the point read,
// and meet its fault: once, however often it comes by.
func (l *Lab) hook(log *slog.Logger, asked experiment, wanted stock.Sale) sale.Hook {
	record := func(context.Context, sale.Point, []slog.Attr) {}
	if l.Trace != nil {
		record = l.Trace.Sale(wanted.RequestID, wanted.ItemID, asked.strategy.Name, wanted.Run)
	}
	var struck atomic.Bool
	return func(ctx context.Context, p sale.Point, facts []slog.Attr) {
		strike := p == asked.fault.Point && struck.CompareAndSwap(false, true)
		if strike {
			facts = append(facts, slog.String("fault", asked.fault.String()))
		}
		record(ctx, p, facts)
		if p == sale.Read && l.Work > 0 {
			time.Sleep(l.Work) // work that does not look at its context
		}
		if !strike {
			return
		}
		if err := asked.fault.Strike(); err != nil {
			log.ErrorContext(ctx, "the fault failed", "fault", asked.fault.String(), "error", err)
		}
	}
}
