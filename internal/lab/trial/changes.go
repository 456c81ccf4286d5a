package trial

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/strategy"
	"stocklock/internal/testserver"
)

// watchLocks records every change of the item's lock that the testbed's own Redis servers announce,
// until ctx ends. It changes their settings, so it leaves servers alone that were given by address.
// Without traces it watches nothing: the two are read together.
func (a *attack) watchLocks(ctx context.Context) error {
	if len(a.traces) == 0 || a.bench.Testbed.Redis() == nil {
		return nil
	}
	watched := map[string]*testserver.Redis{explain.Primary: a.bench.Testbed.Redis()}
	if quorum := a.bench.Testbed.Quorum; a.cell.Strategy.NeedsQuorum {
		clear(watched)
		for i, server := range quorum {
			watched[fmt.Sprintf("redis %d of %d", i+1, len(quorum))] = server
		}
	} else if replica := a.bench.Testbed.Replica(); replica != nil && a.cell.Scenario.Attacks == strategy.SurvivesDataLoss {
		watched[explain.Replica] = replica
	}
	for name, server := range watched {
		if err := a.watch(ctx, name, server); err != nil {
			return err
		}
	}
	return nil
}

const keyspace = "__keyspace@0__:"

func (a *attack) watch(ctx context.Context, name string, server *testserver.Redis) error {
	client := server.Client()
	// K: by key; g, $, h, x: DEL and EXPIRE, strings, hashes, expired keys.
	if err := client.ConfigSet(ctx, "notify-keyspace-events", "Kg$hx").Err(); err != nil {
		client.Close()
		return fmt.Errorf("make %s announce changes: %w", name, err)
	}
	var channels []string
	for _, key := range lockKeys(a.item) {
		channels = append(channels, keyspace+key)
	}
	announced := client.Subscribe(ctx, channels...)
	if _, err := announced.Receive(ctx); err != nil { // the confirmation of the first channel
		client.Close()
		return fmt.Errorf("listen to %s: %w", name, err)
	}
	stop := context.AfterFunc(ctx, func() { announced.Close() })
	a.background.Go(func() {
		defer client.Close()
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
			a.record.changed(change)
			if err != nil {
				return
			}
		}
	})
	return nil
}
