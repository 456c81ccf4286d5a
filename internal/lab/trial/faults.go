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

// await watches, in the background, for the moment at which the request comes to
// its fault's point, and then strikes the testbed as the plan says.
func (a *attack) await(ctx context.Context, h *hit) {
	if a.bench.Testbed == nil {
		return
	}
	shop := a.bench.Testbed.Shops[h.shop]
	a.background.Go(func() {
		if !cameTo(ctx, shop.Trace(), h.id, h.injection.Fault.Point, func() bool { return a.hasAnswer(h) }) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.owed = append(a.owed, h.injection)
			return
		}
		a.mu.Lock()
		a.strikes++
		if a.plan.Intervene == nil {
			a.mu.Unlock()
			return
		}
		a.striking++
		a.mu.Unlock()
		at := h.shop
		if a.plan.Relieve == nil {
			at = wholeTestbed
		}
		over := a.did(a.plan.Intervention, at)
		if err := a.plan.Intervene(ctx, a.bench.Testbed, h.shop); err != nil && ctx.Err() == nil {
			a.spoiled(fmt.Errorf("strike: %w", err))
		}
		a.mu.Lock()
		a.striking--
		a.progress = time.Now()
		a.mu.Unlock()
		if a.plan.Relieve == nil {
			over()
			return
		}
		a.mu.Lock()
		h.relieved = over
		a.mu.Unlock()
	})
}

func (a *attack) hasAnswer(h *hit) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return h.outcome != ""
}

func (a *attack) spoiled(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.problems = append(a.problems, err)
}

// relieve ends what a strike began.
func (a *attack) relieve(ctx context.Context, h *hit) {
	if a.plan.Relieve == nil {
		return
	}
	a.background.Go(func() {
		if err := a.plan.Relieve(ctx, a.bench.Testbed, h.shop); err != nil && ctx.Err() == nil {
			a.spoiled(fmt.Errorf("relieve: %w", err))
		}
		a.mu.Lock()
		over := h.relieved
		a.mu.Unlock()
		if over != nil {
			over()
		}
	})
}

// cameTo follows a trace until the request has come to the point, or is given up: its answer is
// there and the trace, read once more to its end, does not know the point.
func cameTo(ctx context.Context, file, request string, p sale.Point, givenUp func() bool) bool {
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
		last = givenUp()
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

// reviveTheDead starts shops anew that a fault killed, as an orchestrator would.
func (a *attack) reviveTheDead(ctx context.Context) {
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
				a.mu.Lock()
				a.reviving++
				a.mu.Unlock()
				over := a.did(explain.Dead, i)
				err := shop.Restart(ctx)
				over()
				a.mu.Lock()
				a.reviving--
				a.progress = time.Now()
				a.mu.Unlock()
				if err != nil {
					if ctx.Err() == nil {
						a.spoiled(fmt.Errorf("restart: %w", err))
					}
					return
				}
			}
		})
	}
}

// repair brings everything back to where the next cell can start.
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
