package labmode

import (
	"context"
	"fmt"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/shop"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/ladder"
)

// The steps of a lock whose requests are not held: see [declared.Strategy.AtPoints].
const (
	AcquireStep = "acquire"
	ReleaseStep = "release"
	// AcquiredAnswer is the answer to an AcquireStep that got the lock.
	AcquiredAnswer = "acquired"
)

// atPoints holds a sale before it asks for its lock, and at the point releasing: each is one step,
// whatever the lock sends for it. It returns how to sell, and the sale's hook.
func (s *Stepper) atPoints(of ladder.Rung, sell shop.Sell, hook sale.Hook) (shop.Sell, sale.Hook) {
	server := RedisServer
	switch {
	case of.Declared.NeedsEtcd:
		server = EtcdServer
	case of.NeedsQuorum:
		server = QuorumServer
	}
	step := func(name string) *pointStep {
		return &pointStep{stepper: s, request: request{server: server, name: name, text: name + ", as a whole", whole: true}}
	}
	acquire, release := step(AcquireStep), step(ReleaseStep)
	held := func(ctx context.Context, wanted stock.Sale) (stock.Order, error) {
		ctx.Value(stepKey{}).(*stepped).atPoints = true
		acquire.begin(ctx)
		order, err := sell(ctx, wanted)
		acquire.end(ctx, fmt.Sprint("not acquired: ", err))
		release.end(ctx, "")
		return order, err
	}
	return held, func(ctx context.Context, p sale.Point, facts []slog.Attr) {
		hook(ctx, p, facts)
		switch p {
		case sale.Acquired:
			acquire.end(ctx, AcquiredAnswer)
		case sale.Releasing:
			release.begin(ctx)
		case sale.Released:
			release.end(ctx, "released")
		}
	}
}

// pointStep is a step between two points of one sale, in whose goroutine it is used.
type pointStep struct {
	stepper *Stepper
	request request
	number  uint64 // 0 before it begins and after it has ended
}

func (p *pointStep) begin(ctx context.Context) { p.number, _ = p.stepper.wait(ctx, p.request) }

func (p *pointStep) end(ctx context.Context, answer string) {
	if p.number != 0 {
		_ = p.stepper.done(ctx, p.request, p.number, StepOrder{}, answer, nil)
	}
	p.number = 0
}
