package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"stocklock/internal/strategy"
)

const (
	rueidisModule = "github.com/redis/rueidis"
	rueidisPrefix = "rueidislock" // the library's default
)

// rueidisLock is what rueidislock declares. It gives Redis the time at which a key expires, by the
// clock of the client.
const rueidisLock = polledLock&^strategy.ClockFree | strategy.Renews | strategy.LossAware

var rueidisOne = Peer{
	Module: rueidisModule,
	Bench:  "rueidislock",
	Strategy: strategy.Strategy{
		Name:         "rueidislock",
		Doc:          "rueidislock with a majority of one key: SET NX PXAT, renewed at half of the lease, woken by client-side caching",
		Source:       "the README of rueidislock: KeyMajority 1 for one Redis, NoLoopTracking",
		Guard:        "rueidislock.WithContext, KeyMajority 1",
		Decrement:    "read-then-write",
		Telling:      "failover",
		Properties:   strategy.Properties{Has: rueidisLock, NotApplicable: strategy.Reentrant},
		Inapplicable: asksItself,
		State:        strategy.State{Locks: rueidisKeys(1)},
		OwnClient:    true,
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return rueidisOn(d, 1, d.Redis), strategy.ReadThenWrite
		},
	},
	Notes: map[string]Note{
		"failover":      oneRedis("KeyMajority 2 on servers that fail one by one: [rueidislock-two-of-three](#rueidislock-two-of-three)"),
		"redis-restart": oneRedis("KeyMajority 2 on servers that fail one by one: [rueidislock-two-of-three](#rueidislock-two-of-three)"),
		"eviction":      oneRedis("KeyMajority 2 on servers that fail one by one, or a Redis without eviction"),
		"pause":         fencing,
	},
}

var rueidisTwo = Peer{
	Module: rueidisModule,
	Strategy: strategy.Strategy{
		Name:         "rueidislock-two-of-three",
		Doc:          "rueidislock with a majority of three keys, each on a Redis server of its own, renewed at half of the lease",
		Source:       "the README of rueidislock: KeyMajority 2, which is its default; ClientBuilder sends each key to its server",
		Guard:        "rueidislock.WithContext, KeyMajority 2",
		Decrement:    "read-then-write",
		Telling:      "pause",
		Properties:   strategy.Properties{Has: rueidisLock | strategy.SurvivesDataLoss, NotApplicable: strategy.Reentrant},
		Inapplicable: asksItself,
		State:        strategy.State{Locks: rueidisKeys(3)},
		NeedsQuorum:  true,
		OwnClient:    true,
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return rueidisOn(d, 2, d.Quorum...), strategy.ReadThenWrite
		},
	},
	Notes: map[string]Note{"pause": fencing},
}

// rueidisKeys are the keys of a lock, with %s in the place of its name.
func rueidisKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s:%d:%%s", rueidisPrefix, i)
	}
	return keys
}

// rueidisOn makes a guard of rueidislock with clients of its own to the servers.
func rueidisOn(d strategy.Deps, majority int32, servers ...redis.UniversalClient) strategy.Guard {
	option := rueidislock.LockerOption{KeyPrefix: rueidisPrefix, KeyValidity: d.Lease, KeyMajority: majority, NoLoopTracking: true}
	for _, server := range servers {
		if client, ok := server.(*redis.Client); ok {
			option.ClientOption.InitAddress = append(option.ClientOption.InitAddress, client.Options().Addr)
		}
	}
	if majority > 1 {
		option.ClientBuilder = KeyByKey
	}
	locker, err := rueidislock.NewLocker(option)
	if err != nil {
		return guard{library: library{lock: func(context.Context, context.Context, string) (hold, error) { return hold{}, err }}}
	}
	return guard{wait: d.Wait, library: library{
		close: func() error {
			locker.Close()
			return nil
		},
		lock: func(ctx, waiting context.Context, key string) (hold, error) {
			// A deadline would also end the hold: the library shortens the lease to it.
			asking, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(waiting, cancel)
			held, release, err := locker.WithContext(asking, key)
			switch inTime := stop(); {
			case err == nil && inTime:
				return hold{ctx: held, release: func(context.Context) error {
					release()
					cancel()
					return nil
				}}, nil
			case err == nil:
				release()
			}
			cancel()
			return hold{}, fmt.Errorf("%w: %w", errTaken, errors.Join(err, context.Cause(waiting)))
		},
	}}
}

// KeyByKey is the ClientBuilder of a client of several independent servers: the key with the number i
// is on the server with that number. The prefix of the keys is the library's default.
func KeyByKey(option rueidis.ClientOption) (rueidis.Client, error) {
	addresses := option.InitAddress
	c := &separate{}
	for _, addr := range addresses {
		option.InitAddress, option.ForceSingleClient = []string{addr}, true
		client, err := rueidis.NewClient(option)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.servers = append(c.servers, client)
	}
	if len(c.servers) == 0 {
		return nil, errors.New("peers: rueidislock has no server")
	}
	c.Client = c.servers[0]
	return c, nil
}

// separate sends each command to the server of its key. The library sends no other commands.
type separate struct {
	rueidis.Client
	servers []rueidis.Client
}

func (c *separate) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	number := 0
	if i := slices.IndexFunc(cmd.Commands(), func(word string) bool { return strings.HasPrefix(word, rueidisPrefix+":") }); i >= 0 {
		digits, _, _ := strings.Cut(strings.TrimPrefix(cmd.Commands()[i], rueidisPrefix+":"), ":")
		number, _ = strconv.Atoi(digits)
	}
	return c.servers[number%len(c.servers)].Do(ctx, cmd)
}

func (c *separate) Close() {
	for _, server := range c.servers {
		server.Close()
	}
}
