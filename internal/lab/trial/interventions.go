package trial

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// await watches, in the background, for the moment at which the request reaches its fault's point.
// Then it intervenes in the testbed as the plan says, and relieves it when the request is done.
func (a *attack) await(ctx context.Context, h *hit) {
	trace := a.bench.Shops[h.shop].Trace
	if trace == "" {
		return
	}
	a.background.Go(func() {
		if !reached(ctx, trace, h.id, h.injection.Fault.Point, h.done) {
			a.customers.missed(h.injection)
			return
		}
		a.progress.faultReached()
		if a.plan.Intervene != nil {
			a.intervene(ctx, h)
		}
	})
}

func (a *attack) intervene(ctx context.Context, h *hit) {
	intervened := a.progress.intervene()
	at := h.shop
	if a.plan.Relieve == nil {
		at = wholeTestbed
	}
	over := a.record.intervention(a.plan.Intervention, at)
	if err := a.plan.Intervene(ctx, a.bench.Testbed, h.shop); err != nil && ctx.Err() == nil {
		a.problems.add(fmt.Errorf("intervene: %w", err))
	}
	intervened()
	if a.plan.Relieve != nil {
		select {
		case <-h.done:
		case <-ctx.Done():
		}
		if err := a.plan.Relieve(ctx, a.bench.Testbed, h.shop); err != nil && ctx.Err() == nil {
			a.problems.add(fmt.Errorf("relieve: %w", err))
		}
	}
	over()
}

// reached follows a trace until the request has reached the point. It gives up when the request is
// done and the trace, read once more to its end, does not have the point.
func reached(ctx context.Context, file, request string, p sale.Point, done <-chan struct{}) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	var line []byte
	for last := false; ; {
		part, err := lines.ReadBytes('\n')
		line = append(line, part...)
		if err == nil {
			if isAt(line, request, p) {
				return true
			}
			line = line[:0]
			continue
		}
		if last || !errors.Is(err, io.EOF) {
			return false
		}
		select {
		case <-done:
			last = true
		default:
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func isAt(line []byte, request string, p sale.Point) bool {
	if !bytes.Contains(line, []byte(request)) {
		return false
	}
	var e labmode.Event
	return json.Unmarshal(line, &e) == nil && e.Request == request && e.Point == p
}

// restartTheDead restarts shops that a fault has killed, as an orchestrator would.
func (a *attack) restartTheDead(ctx context.Context) {
	if a.bench.Testbed == nil {
		return
	}
	for i, shop := range a.bench.Testbed.Shops {
		a.background.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-shop.Exited():
				}
				restarted := a.progress.restart()
				over := a.record.intervention(explain.Dead, i)
				err := shop.Restart(ctx)
				over()
				restarted()
				if err != nil {
					if ctx.Err() == nil {
						a.problems.add(fmt.Errorf("restart: %w", err))
					}
					return
				}
			}
		})
	}
}

// repair makes the testbed ready for the next cell.
func (a *attack) repair(ctx context.Context) error {
	if a.bench.Testbed == nil {
		return nil
	}
	if a.plan.Restore != nil {
		if err := a.plan.Restore(ctx, a.bench.Testbed); err != nil {
			return err
		}
	}
	return a.bench.Testbed.Repair(ctx)
}
