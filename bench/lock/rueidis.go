package lock

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
)

// Rueidis is rueidislock with a majority of one key, on one server.
var Rueidis = Lock{
	Name:     "rueidislock",
	Doc:      "github.com/redis/rueidis/rueidislock v1.0.79: waits for invalidations of client-side caching",
	Tuning:   "KeyMajority 1 for one server, and NoLoopTracking; both as its README says",
	Requests: []string{"evalsha", "eval"},
	Keeps:    true,
	Open:     func(c Config) (Locker, error) { return openRueidis(c, rueidislock.LockerOption{KeyMajority: 1}) },
}

// RueidisTwo is rueidislock with a majority of three keys, each on a server of its own.
var RueidisTwo = Lock{
	Name:     "rueidislock-two-of-three",
	Doc:      "github.com/redis/rueidis/rueidislock v1.0.79 with three keys, each on a server of its own",
	Tuning:   "KeyMajority 2, which is its default, and NoLoopTracking",
	Requests: Rueidis.Requests,
	Quorum:   3,
	Open: func(c Config) (Locker, error) {
		return openRueidis(c, rueidislock.LockerOption{KeyMajority: 2, ClientBuilder: keyByKey})
	},
}

const rueidisPrefix = "rueidislock" // the library's default

// RueidisKeys are the keys of a lock with so many keys, with %s in the place of its name.
func RueidisKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s:%d:%%s", rueidisPrefix, i)
	}
	return keys
}

// openRueidis opens clients of the library's own to the servers.
func openRueidis(c Config, o rueidislock.LockerOption) (Locker, error) {
	build := o.ClientBuilder
	if build == nil {
		build = rueidis.NewClient
	}
	o.ClientBuilder = func(option rueidis.ClientOption) (rueidis.Client, error) {
		client, err := build(option)
		return refusableClient{client, int(o.KeyMajority)}, err
	}
	o.KeyPrefix, o.KeyValidity, o.NoLoopTracking = rueidisPrefix, c.Lease, true
	for _, server := range c.Redis {
		if client, ok := server.(*redis.Client); ok {
			o.ClientOption.InitAddress = append(o.ClientOption.InitAddress, client.Options().Addr)
		}
	}
	locker, err := rueidislock.NewLocker(o)
	if err != nil {
		return Locker{}, err
	}
	return Locker{
		Lock: func(ctx, waiting context.Context, key string) (Hold, error) {
			// A deadline would also end the hold: the library shortens the lease to it.
			asking, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(waiting, cancel)
			held, release, err := locker.WithContext(asking, key)
			switch inTime := stop(); {
			case err == nil && inTime:
				return Hold{Context: held, Release: func(context.Context) error {
					lost := held.Err()
					release()
					cancel()
					return lost
				}}, nil
			case err == nil:
				release()
			}
			cancel()
			return Hold{}, fmt.Errorf("%w: %w", ErrTaken, errors.Join(err, context.Cause(waiting)))
		},
		Close: func() error {
			locker.Close()
			return nil
		},
	}, nil
}

// refusableClient sees the answers to the library's script that acquires a key: nil if the key is
// taken. The library then asks for no other key of that try. A nil for one of the first keys, as many as
// the majority, is therefore a refusal. Keys behind them are asked for when the lock is held already.
type refusableClient struct {
	rueidis.Client
	majority int
}

func (c refusableClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	number := keyNumber(cmd) // the client reuses cmd
	answer := c.Client.Do(ctx, cmd)
	if refused := refusalOf(ctx); refused != nil && number < c.majority && rueidis.IsRedisNil(answer.Error()) {
		refused()
	}
	return answer
}

// keyNumber is the number of the key in a command.
func keyNumber(cmd rueidis.Completed) int {
	i := slices.IndexFunc(cmd.Commands(), func(word string) bool { return strings.HasPrefix(word, rueidisPrefix+":") })
	if i < 0 {
		return 0
	}
	digits, _, _ := strings.Cut(strings.TrimPrefix(cmd.Commands()[i], rueidisPrefix+":"), ":")
	number, _ := strconv.Atoi(digits)
	return number
}

// keyByKey is the ClientBuilder of a client of several independent servers: the key with the number i
// is on the server with that number.
func keyByKey(option rueidis.ClientOption) (rueidis.Client, error) {
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
		return nil, errors.New("rueidislock has no server")
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
	return c.servers[keyNumber(cmd)%len(c.servers)].Do(ctx, cmd)
}

func (c *separate) Close() {
	for _, server := range c.servers {
		server.Close()
	}
}
