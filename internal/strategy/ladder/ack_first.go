package ladder

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ackFirst = Declare(strategy.Strategy{
	Name:  "ack-first",
	Doc:   "redis-stream whose consumer acknowledges what it has read, and then writes it: a message that is lost in between never comes again",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) { return newOutbox(d, true) },
}, declared.Strategy{
	Source:     "consumers with automatic acknowledgement: XREADGROUP with NOACK, autoAck, auto-commit",
	Guard:      "nothing",
	Decrement:  "script: GET, XADD, DECRBY; XACK; batches: UPDATE ... WHERE stock >= sum, INSERT",
	Telling:    "crash",
	Servers:    declared.EveryServer,
	Background: true,
	State:      counted,
	Properties: declared.Properties{
		Has: redisStream.Declared.Has &^ declared.Recovers, NotApplicable: redisStream.Declared.NotApplicable,
	},
})

// acknowledge acknowledges messages of a stream, and has them written beside the next ones.
func (o *outbox) acknowledge(ctx context.Context, shop string, messages []redis.XMessage) error {
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	_, err := o.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.XAck(ctx, streamKey(shop), streamGroup, ids...)
		p.XDel(ctx, streamKey(shop), ids...)
		return nil
	})
	o.workers.Go(func(ctx context.Context) {
		for _, m := range messages {
			o.passed(ctx, m)
		}
		err := stock.ErrConflict
		for errors.Is(err, stock.ErrConflict) && ctx.Err() == nil {
			err = o.write(ctx, shop, messages)
		}
		if err != nil {
			slog.ErrorContext(ctx, "sales that were acknowledged are lost", "messages", len(messages), "error", err)
		}
	})
	return err
}

// passed tells the sale of a message that it is acknowledged, if it is one of this shop's, and waits until it
// has passed its points.
func (o *outbox) passed(ctx context.Context, m redis.XMessage) {
	var wanted stock.Sale
	text, _ := m.Values[streamField].(string)
	if json.Unmarshal([]byte(text), &wanted) != nil {
		return // write says so
	}
	if this, ok := o.waiting.Load(wanted.OrderID); ok {
		this.(*awaited).isAcked()
		select {
		case <-this.(*awaited).ready:
		case <-ctx.Done():
		}
	}
}
