package stage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
)

// slot is a place on a testbed in which one run after the other is played.
type slot struct {
	*testbed
	redis  *redis.Client   // for looking
	quorum []*redis.Client // for looking at the servers of a quorum; none without one

	starting   sync.WaitGroup // shops that were killed
	failedOver bool           // the primary has died: it becomes the replica before the next run
}

// testbed is the shops of the customers and the Redis behind them. Several slots can share one.
type testbed struct {
	*rig.Testbed

	mu        sync.Mutex // guards rehearsed; held for as long as a rehearsal or a restart takes
	rehearsed map[rehearsal]bool
}

// revive starts each shop again that does not run: one that has ended by itself, or that did not come
// back after it was killed.
func (b *testbed) revive(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, shop := range b.Shops {
		if shop.Alive() {
			continue
		}
		if err := shop.Restart(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dead names the shops that have ended, with their last words. Without any it is empty.
func (b *testbed) dead() string {
	var said []string
	for _, shop := range b.Shops {
		if !shop.Alive() {
			said = append(said, fmt.Sprintf("%s has ended: %s", shop.Name, cmp.Or(shop.LogLine("panic: "), lastLine(shop.LogTail()))))
		}
	}
	return strings.Join(said, "; ")
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// restartLimit bounds how long a killed shop takes to be back.
const restartLimit = 20 * time.Second

// restart starts a killed shop again, in the background. One that does not come back is started once
// more by [testbed.revive].
func (l *slot) restart(shop *rig.TestbedShop) {
	l.starting.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), restartLimit)
		defer cancel()
		_ = shop.Restart(ctx)
	})
}

// restarted waits until every shop runs again, and gives the primary a replica after a failover.
func (l *slot) restarted(ctx context.Context) error {
	l.starting.Wait()
	if err := l.revive(ctx); err != nil || !l.failedOver {
		return err
	}
	l.failedOver = false
	return l.RestoreReplica(ctx)
}

// prepare keeps a run's writes from the replica that is to take over.
func (l *slot) prepare(p Plan) error {
	if !slices.Contains(p.Events, schedule.Failover) {
		return nil
	}
	return l.HoldBackReplication()
}

func (l *slot) failOver(ctx context.Context) error {
	if err := l.FailOver(ctx); err != nil {
		return err
	}
	l.failedOver = true
	before := l.redis
	l.redis = l.Redis().Client()
	return before.Close()
}
