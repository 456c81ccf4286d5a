package ladder

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ownerDelex = readsUnder(strategy.Strategy{
	Name: "owner-delex",
	Doc:  "SET NX PX with a value of one's own, freed by the server's own command that deletes only that value: as right as the script, and as wrong",
}, declared.Strategy{
	Source:       "redis.io, Distributed Locks with Redis, since Redis 8.4; Valkey 9, DELIFEQ",
	Guard:        "SET NX PX; DELEX IFEQ, or DELIFEQ",
	Telling:      "overrun",
	Properties:   ownerChecked.Declared.Properties,
	NeedsCommand: deletes,
}, func(d strategy.Deps) strategy.Guard {
	command, take := &deleteCommand{}, setOwner(d)
	return polledBy(d, func(ctx context.Context, key, owner string) (bool, error) {
		if err := command.ask(d.Redis); err != nil { // before it has a lock that it cannot free
			return false, err
		}
		return take(ctx, key, owner)
	}, command.deleteIfEqual)
})

// deletes are the commands by which a server deletes a key that has a value. A server knows one of them, or
// none.
var deletes = []string{"DELEX (Redis 8.4)", "DELIFEQ (Valkey 9)"}

// deleteCommand is the one that the server knows.
type deleteCommand struct {
	known atomic.Value // its name, empty or nil before the server was asked
}

func (c *deleteCommand) name() string {
	name, _ := c.known.Load().(string)
	return name
}

// askWithin bounds the question which commands a server knows.
const askWithin = 3 * time.Second

// ask asks the server, once. The question belongs to no sale. A server that knows none is asked again by the
// next sale: a later version may have replaced it.
func (c *deleteCommand) ask(client redis.UniversalClient) error {
	if c.name() != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	name, err := declared.KnownCommand(ctx, client, deletes)
	if err == nil && name == "" {
		err = errNoDelete
	}
	if err == nil {
		c.known.Store(name)
	}
	return err
}

var errNoDelete = errors.New("strategy: the server knows neither DELEX (Redis 8.4) nor DELIFEQ (Valkey 9)")

// deleteIfEqual frees the lock in one command, and only its own.
func (c *deleteCommand) deleteIfEqual(client redis.UniversalClient, key, owner string) release {
	return func(ctx context.Context) error {
		sale.At(ctx, sale.Releasing)
		command := []any{"DELEX", key, "IFEQ", owner}
		if c.name() == "DELIFEQ" {
			command = []any{"DELIFEQ", key, owner}
		}
		err := client.Do(ctx, command...).Err()
		if err != nil && strings.HasPrefix(err.Error(), "ERR unknown command") {
			c.known.Store("") // another server than the one that was asked, as after a failover
		}
		return err
	}
}
