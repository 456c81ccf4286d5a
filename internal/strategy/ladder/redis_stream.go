package ladder

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var redisStream = Declare(strategy.Strategy{
	Name: "redis-stream",
	Doc: "a script takes the units in Redis and adds the sale to the shop's stream; " +
		"the shop writes the stream to MySQL in batches, and answers after the COMMIT",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) { return newOutbox(d, false) },
}, declared.Strategy{
	Source:     "the transactional outbox, in Redis: flash sales that were mended",
	Guard:      "nothing",
	Decrement:  "script: GET, XADD, DECRBY; batches: UPDATE ... WHERE stock >= sum, INSERT; XACK",
	Telling:    "crash",
	Servers:    declared.EveryServer,
	Background: true,
	State:      counted,
	// The counter is not a lock: nobody holds it. Data that Redis loses can leave units unsold.
	Properties: declared.Properties{
		Has: declared.Exclusive | declared.Recovers | declared.ClockFree | declared.SurvivesDataLoss | declared.PauseProof |
			declared.StorageChecked | declared.DurableAnswers | declared.Once,
		NotApplicable: declared.AtomicLease | declared.Renews | declared.OwnerChecked | declared.AtomicRelease |
			declared.Reentrant | declared.LossAware,
	},
})

// newOutbox builds the strategy. AckFirst says that messages are acknowledged before they are written.
func newOutbox(d strategy.Deps, ackFirst bool) (strategy.Guard, strategy.Decrement) {
	o := &outbox{counter: counter{d}, shop: rand.Text(), ackFirst: ackFirst, workers: NewWorkers(), added: make(chan struct{}, 1)}
	o.workers.Go(o.work)
	return o.workers, o.sell
}

var (
	//go:embed take_to_stream.lua
	takeToStreamSource string
	takeToStreamScript = redis.NewScript(takeToStreamSource)

	//go:embed drop_stream.lua
	dropStreamSource string
	dropStreamScript = redis.NewScript(dropStreamSource)

	//go:embed return_units.lua
	returnUnitsSource string
	returnUnitsScript = redis.NewScript(returnUnitsSource)
)

// The strategy keeps these in Redis besides the counters. One script changes a counter and a
// stream, which would be on different servers of a Redis Cluster.
const (
	streamsKey  = "stock:streams" // a set of the shops that have a stream
	streamGroup = "shops"         // the consumer group of each stream
	streamField = "sale"          // of a message
	streamBatch = 256             // messages that are read at once
)

func streamKey(shop string) string { return "stock:stream:" + shop }

// aliveKey exists while the shop is alive. It expires a lease after the last heartbeat. The first is
// the shop's first sale.
func aliveKey(shop string) string { return "stock:alive:" + shop }

// outbox is the stream of one shop, and the goroutine that writes it to MySQL. It also writes the
// streams of dead shops. A message can be delivered twice, so its order has an id from the
// beginning, which is unique in the database. An outbox is safe for concurrent use.
type outbox struct {
	counter
	shop     string // a name that no other process has, not even this one after a restart
	ackFirst bool   // messages are acknowledged, and then written beside the next ones
	workers  *Workers
	added    chan struct{} // buffered: there may be new messages
	waiting  sync.Map      // of *awaited: the sales of this shop, by the ids of their orders
}

// awaited is a sale of this shop whose message is to be written.
type awaited struct {
	done chan stock.Outcome // buffered
	// With ackFirst, the message is acknowledged before the sale passes the point read, and written after it
	// has passed the point write.
	acked, ready chan struct{} // closed
	isAcked      func()        // Redis can deliver a message twice
}

func (o *outbox) sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	wanted.OrderID = uuid.Must(uuid.NewV7()).String()
	message, err := json.Marshal(wanted)
	if err != nil {
		return stock.Order{}, err
	}
	this := &awaited{done: make(chan stock.Outcome, 1), acked: make(chan struct{}), ready: make(chan struct{})}
	this.isAcked = sync.OnceFunc(func() { close(this.acked) })
	o.waiting.Store(wanted.OrderID, this)
	defer o.waiting.Delete(wanted.OrderID)
	isReady := sync.OnceFunc(func() { close(this.ready) })
	defer isReady()
	keys := []string{streamKey(o.shop), streamsKey, aliveKey(o.shop)}
	left, err := o.take(ctx, wanted, takeToStreamScript, keys, o.shop, streamField, message, o.Lease.Milliseconds())
	if err != nil {
		if stock.Unreachable(err) { // the sale may be in the stream
			err = fmt.Errorf("%w: %w", stock.ErrUnknown, err)
		}
		return stock.Order{}, err
	}
	select {
	case o.added <- struct{}{}:
	default:
	}
	patience := time.NewTimer(o.Wait + o.Lease)
	defer patience.Stop()
	if o.ackFirst {
		select {
		case <-this.acked:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	sale.At(ctx, sale.Read, slog.Int64("stock", left+wanted.Quantity))
	sale.At(ctx, sale.Write)
	isReady()
	order, err := o.outcome(ctx, store, wanted, this.done)
	return strategy.Written(ctx, order, err)
}

// outcome waits until the sale is written. A sale that was written by another shop, while this one
// was paused, is found by its order.
func (o *outbox) outcome(ctx context.Context, store *stock.Store, wanted stock.Sale, done <-chan stock.Outcome) (stock.Order, error) {
	patience := time.NewTimer(o.Wait + o.Lease)
	defer patience.Stop()
	select {
	case outcome := <-done:
		return outcome.Order, outcome.Err
	case <-patience.C:
	case <-ctx.Done():
	}
	order, err := store.Order(context.WithoutCancel(ctx), wanted.OrderID)
	if err != nil {
		return stock.Order{}, fmt.Errorf("%w: the sale waits in Redis: %w", stock.ErrUnknown, err)
	}
	return order, nil
}

// work writes new messages when there are some. Four times a lease it announces that this shop is
// alive, and looks for messages that nobody has written in time.
func (o *outbox) work(ctx context.Context) {
	tick := time.NewTicker(o.Lease / 4)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := o.writeNew(ctx, o.shop)
		select {
		case <-ctx.Done():
		case <-o.added:
		case <-tick.C:
			err = errors.Join(err, o.announce(ctx), o.writeLate(ctx, o.shop), o.writeDead(ctx))
		}
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "sales wait in Redis", "error", err)
		}
	}
}

func (o *outbox) announce(ctx context.Context) error {
	_, err := o.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, streamsKey, o.shop)
		p.Set(ctx, aliveKey(o.shop), 1, o.Lease)
		return nil
	})
	return err
}

// writeDead writes the streams of dead shops, and drops those that are empty.
func (o *outbox) writeDead(ctx context.Context) error {
	shops, err := o.Redis.SMembers(ctx, streamsKey).Result()
	if err != nil {
		return err
	}
	for _, shop := range shops {
		alive, err := o.Redis.Exists(ctx, aliveKey(shop)).Result()
		if err != nil {
			return err
		}
		if alive > 0 {
			continue
		}
		if err := errors.Join(o.writeNew(ctx, shop), o.writeLate(ctx, shop)); err != nil {
			return err
		}
		keys := []string{streamKey(shop), streamsKey, aliveKey(shop)}
		if err := dropStreamScript.Run(ctx, o.Redis, keys, shop).Err(); err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes the messages of a stream that no shop has read.
func (o *outbox) writeNew(ctx context.Context, shop string) error {
	for {
		streams, err := o.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: streamGroup, Consumer: o.shop, Streams: []string{streamKey(shop), ">"}, Count: streamBatch, Block: -1,
		}).Result()
		switch {
		case errors.Is(err, redis.Nil) || err == nil && len(streams) == 0:
			return nil
		case redis.HasErrorPrefix(err, "NOGROUP"): // new, or lost with Redis's data
			err = o.Redis.XGroupCreateMkStream(ctx, streamKey(shop), streamGroup, "0").Err()
			if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
				return err
			}
			continue
		case err != nil:
			return err
		}
		messages := streams[0].Messages
		write := o.write
		if o.ackFirst {
			write = o.acknowledge
		}
		if err := write(ctx, shop, messages); err != nil || len(messages) < streamBatch {
			return err
		}
	}
}

// writeLate writes the messages of a stream that a shop has read and has not written for a lease.
func (o *outbox) writeLate(ctx context.Context, shop string) error {
	for start := "0-0"; ; {
		messages, next, err := o.Redis.XAutoClaim(ctx, &redis.XAutoClaimArgs{
			Stream: streamKey(shop), Group: streamGroup, Consumer: o.shop, MinIdle: o.Lease, Start: start, Count: streamBatch,
		}).Result()
		if redis.HasErrorPrefix(err, "NOGROUP") {
			return nil
		}
		if err != nil {
			return err
		}
		if err := o.write(ctx, shop, messages); err != nil || next == "0-0" {
			return err
		}
		start = next
	}
}

// write writes messages of a stream to MySQL, removes those with a known outcome from the stream,
// and then gives the outcomes to the waiting sales.
func (o *outbox) write(ctx context.Context, shop string, messages []redis.XMessage) error {
	var items []uint64 // in the order of their first message
	sales, ids := map[uint64][]stock.Sale{}, map[uint64][]string{}
	for _, m := range messages {
		var wanted stock.Sale
		text, _ := m.Values[streamField].(string)
		if err := json.Unmarshal([]byte(text), &wanted); err != nil {
			return fmt.Errorf("message %s of %s: %w", m.ID, streamKey(shop), err)
		}
		item := wanted.ItemID
		if sales[item] == nil {
			items = append(items, item)
		}
		sales[item], ids[item] = append(sales[item], wanted), append(ids[item], m.ID)
	}
	for _, item := range items {
		outcomes, err := o.Store.DecrementBatch(ctx, item, sales[item])
		if err != nil && !errors.Is(err, stock.ErrNotFound) && !errors.Is(err, stock.ErrRepeated) {
			return err // they stay in the stream
		}
		if err != nil {
			outcomes = make([]stock.Outcome, len(sales[item]))
			for i := range outcomes {
				outcomes[i].Err = err
			}
		}
		if err := o.settle(ctx, shop, ids[item], sales[item], outcomes); err != nil {
			return err
		}
	}
	return nil
}

// settle removes the messages with a known outcome from the stream, and answers their sales.
func (o *outbox) settle(ctx context.Context, shop string, ids []string, sales []stock.Sale, outcomes []stock.Outcome) error {
	var failed error
	var known []int
	for i := range outcomes {
		if err := outcomes[i].Err; errors.Is(err, stock.ErrRepeated) || errors.Is(err, stock.ErrSoldOut) {
			// An earlier delivery may have made the order.
			switch order, err := o.Store.Order(ctx, sales[i].OrderID); {
			case err == nil:
				outcomes[i] = stock.Outcome{Order: order}
			case !errors.Is(err, stock.ErrNotFound):
				outcomes[i].Err = err
			}
		}
		if err := outcomes[i].Err; errors.Is(err, stock.ErrConflict) || errors.Is(err, stock.ErrUnknown) || stock.Unreachable(err) {
			failed = err // it stays in the stream
			continue
		}
		known = append(known, i)
	}
	_, err := o.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, i := range known {
			if err := outcomes[i].Err; errors.Is(err, stock.ErrRepeated) || errors.Is(err, stock.ErrSoldOut) {
				returnUnitsScript.Eval(ctx, p, []string{streamKey(shop), counterKey(sales[i].ItemID)}, streamGroup, ids[i], sales[i].Quantity, o.ackFirst)
				continue
			}
			if !o.ackFirst {
				p.XAck(ctx, streamKey(shop), streamGroup, ids[i])
				p.XDel(ctx, streamKey(shop), ids[i])
			}
		}
		return nil
	})
	for _, i := range known { // durable, even where Redis did not answer
		if this, ok := o.waiting.LoadAndDelete(sales[i].OrderID); ok { // it is one of this shop's
			this.(*awaited).done <- outcomes[i]
		}
	}
	return errors.Join(failed, err)
}
