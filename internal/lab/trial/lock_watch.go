package trial

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/rig"
	"stocklock/internal/redisconn"
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
	if a.Testbed == nil || a.Testbed.Redis() == nil {
		if a.Redis == nil {
			return nil
		}
		return a.watch(ctx, explain.Primary, a.Redis)
	}
	watched := map[string]*testserver.Redis{explain.Primary: a.Testbed.Redis()}
	if quorum := a.Testbed.Quorum; a.Of.NeedsQuorum {
		clear(watched)
		for i, server := range quorum {
			watched[explain.QuorumServer(i, len(quorum))] = server
		}
	} else if replica := a.Testbed.Replica(); replica != nil && a.Scenario.Attacks == declared.SurvivesDataLoss {
		watched[explain.Replica] = replica
	}
	for name, server := range watched {
		if err := server.Client.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", rig.Announced).Err; err != nil {
			return fmt.Errorf("make %s announce changes: %w", name, err)
		}
		if err := a.watch(ctx, name, server.Client); err != nil {
			return err
		}
	}
	return nil
}

// watch records what a server announces.
func (a *attack) watch(ctx context.Context, name string, client redisconn.Client) error {
	keyspace := fmt.Sprintf("__keyspace@%d__:", client.DB())
	var channels []string
	for _, key := range lockKeys(a.item) {
		channels = append(channels, keyspace+key)
	}
	announced, err := client.Subscribe(ctx, channels...)
	if err != nil {
		return fmt.Errorf("listen to %s: %w", name, err)
	}
	a.background.Go(func() {
		for m := range announced {
			a.record.changed(explain.Change{Time: time.Now(), Server: name, Key: strings.TrimPrefix(m.Channel, keyspace), What: explain.RedisEvent(m.Payload)})
		}
		if ctx.Err() == nil {
			a.record.changed(explain.Change{Time: time.Now(), Server: name, What: explain.Gone})
		}
	})
	return nil
}
