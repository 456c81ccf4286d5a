package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/rig"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// watchLocks records every change of the item's lock that the Redis servers announce, until ctx
// ends. It makes the testbed's own servers announce them. A server that was given by address keeps
// its settings. Without traces it watches nothing: the two are read together.
func (a *attack) watchLocks(ctx context.Context) error {
	if len(a.traces) == 0 {
		return nil
	}
	if a.bench.Testbed == nil || a.bench.Testbed.Redis() == nil {
		if a.bench.Redis == nil {
			return nil
		}
		return a.watch(ctx, explain.Primary, a.bench.Redis, func() {})
	}
	watched := map[string]*testserver.Redis{explain.Primary: a.bench.Testbed.Redis()}
	if quorum := a.bench.Testbed.Quorum; a.cell.Strategy.NeedsQuorum {
		clear(watched)
		for i, server := range quorum {
			watched[explain.QuorumServer(i, len(quorum))] = server
		}
	} else if replica := a.bench.Testbed.Replica(); replica != nil && a.cell.Scenario.Attacks == declared.SurvivesDataLoss {
		watched[explain.Replica] = replica
	}
	for name, server := range watched {
		client := server.Client()
		if err := client.ConfigSet(ctx, "notify-keyspace-events", rig.Announced).Err(); err != nil {
			client.Close()
			return fmt.Errorf("make %s announce changes: %w", name, err)
		}
		if err := a.watch(ctx, name, client, func() { client.Close() }); err != nil {
			return err
		}
	}
	return nil
}

// watch records what a server announces, and calls done at the end.
func (a *attack) watch(ctx context.Context, name string, client *redis.Client, done func()) error {
	keyspace := fmt.Sprintf("__keyspace@%d__:", client.Options().DB)
	var channels []string
	copies := declared.KeysOf(a.item.State.Copies, a.item.ItemID)
	for _, key := range append(lockKeys(a.item), copies...) {
		channels = append(channels, keyspace+key)
	}
	announced := client.Subscribe(ctx, channels...)
	if _, err := announced.Receive(ctx); err != nil { // the confirmation of the first channel
		announced.Close()
		done()
		return fmt.Errorf("listen to %s: %w", name, err)
	}
	stop := context.AfterFunc(ctx, func() { announced.Close() })
	a.background.Go(func() {
		defer done()
		defer stop()
		defer announced.Close()
		for {
			m, err := announced.ReceiveMessage(ctx)
			change := explain.Change{Time: time.Now(), Server: name}
			if ctx.Err() != nil {
				return
			}
			change.What = explain.Gone
			if err == nil {
				change.Key, change.What = strings.TrimPrefix(m.Channel, keyspace), explain.RedisEvent(m.Payload)
			}
			a.record.changed(change, slices.Contains(copies, change.Key))
			if err != nil {
				return
			}
		}
	})
	return nil
}
