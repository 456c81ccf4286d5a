package schedule

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/rig"
)

// lane is where one run after the other is played.
type lane struct {
	*bed
	redis *redis.Client // for looking

	starting   errgroup.Group // shops that were killed
	failedOver bool           // the primary has died: it becomes the replica before the next run
}

// bed is the shops of the customers and the Redis behind them. Several lanes can share one.
type bed struct {
	*rig.Testbed

	mu        sync.Mutex // guards rehearsed; held for as long as a rehearsal takes
	rehearsed map[rehearsal]bool
}

// rehearsal is a sale that a shop process has made before the first run.
type rehearsal struct {
	pid      int
	strategy string
}

// restartLimit bounds how long a killed shop takes to be back.
const restartLimit = 20 * time.Second

// restart starts a killed shop again, in the background.
func (l *lane) restart(shop *rig.TestbedShop) {
	l.starting.Go(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), restartLimit)
		defer cancel()
		return shop.Restart(ctx)
	})
}

// restarted waits until every shop runs again, and gives the primary a replica after a failover.
func (l *lane) restarted(ctx context.Context) error {
	if err := l.starting.Wait(); err != nil || !l.failedOver {
		return err
	}
	l.failedOver = false
	return l.RestoreReplica(ctx)
}

// prepare keeps a run's writes from the replica that is to take over.
func (l *lane) prepare(p Plan) error {
	if !slices.Contains(p.Events, Failover) {
		return nil
	}
	return l.HoldBackReplication()
}

func (l *lane) failOver(ctx context.Context) error {
	if err := l.FailOver(ctx); err != nil {
		return err
	}
	l.failedOver = true
	before := l.redis
	l.redis = l.Redis().Client()
	return before.Close()
}
