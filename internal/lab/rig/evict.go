package rig

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"stocklock/internal/testserver"
)

// Keyspace is the channel on which a Redis announces the changes of a key, without the key.
const Keyspace = "__keyspace@0__:"

// Announced are the changes that a Redis must be told to announce, in the form of
// notify-keyspace-events. K: by key; g, $, h, x, e: DEL and EXPIRE, strings, hashes, expired and
// evicted keys.
const Announced = "Kg$hxe"

// How the memory is filled. The fillers are as small as locks and sessions are: large ones would
// evict everything that is older than they.
const (
	headroom     = 64 << 10 // bytes that are free at first
	fillerSize   = 1 << 10
	fillersAtOne = 8 // in one transaction
	fillPatience = 2 * time.Second
)

// Evict fills the memory of the primary and of one server of the quorum, under allkeys-lru, until
// each has announced that it evicted one of these keys. A server that has none of them is left
// alone, but it is an error where all are. Without keys the primary evicts anything. Then the
// servers have memory again.
func (s *Testbed) Evict(ctx context.Context, keys []string) error {
	servers := []*testserver.Redis{s.Redis()}
	if len(s.Quorum) > 0 && len(keys) > 0 {
		servers = append(servers, s.Quorum[0])
	}
	filling, ctx := errgroup.WithContext(ctx)
	evicted := make([]bool, len(servers))
	for i, server := range servers {
		filling.Go(func() (err error) {
			evicted[i], err = evict(ctx, server, keys)
			return err
		})
	}
	if err := filling.Wait(); err != nil {
		return err
	}
	for _, ok := range evicted {
		if ok {
			return nil
		}
	}
	return fmt.Errorf("rig: Redis had none of %s when its memory was to be filled", strings.Join(keys, ", "))
}

// evict reports whether it evicted a key. Without keys that is the first filler.
func evict(ctx context.Context, server *testserver.Redis, keys []string) (evicted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fillPatience)
	defer cancel()
	client := server.Client()
	defer client.Close()
	var victim string
	for _, key := range keys {
		n, err := client.Exists(ctx, key).Result()
		if err != nil {
			return false, err
		}
		if n > 0 {
			victim = key
		}
	}
	if len(keys) > 0 && victim == "" {
		return false, nil
	}
	fill := filler{client: client, prefix: "filler:" + testserver.RandomHex(4) + ":"}
	if victim == "" {
		victim = fill.prefix + "0"
	}
	defer func() { err = errors.Join(err, fill.restore(context.WithoutCancel(ctx))) }()
	return true, fill.until(ctx, victim)
}

// filler fills the memory of a server.
type filler struct {
	client *redis.Client
	prefix string
	made   int
}

func (f *filler) until(ctx context.Context, victim string) error {
	if err := f.client.ConfigSet(ctx, "notify-keyspace-events", Announced).Err(); err != nil {
		return err
	}
	announced := f.client.Subscribe(ctx, Keyspace+victim)
	defer announced.Close()
	if _, err := announced.Receive(ctx); err != nil { // the confirmation
		return err
	}
	info, err := f.client.InfoMap(ctx, "memory").Result()
	if err != nil {
		return err
	}
	used, err := strconv.Atoi(info["Memory"]["used_memory"])
	if err != nil {
		return fmt.Errorf("rig: Redis does not say how much memory it uses: %w", err)
	}
	for _, setting := range [][2]string{
		{"maxmemory-policy", "allkeys-lru"}, {"maxmemory-samples", "64"}, {"maxmemory", strconv.Itoa(used + headroom)},
	} {
		if err := f.client.ConfigSet(ctx, setting[0], setting[1]).Err(); err != nil {
			return err
		}
	}
	value := strings.Repeat("x", fillerSize)
	for there := int64(1); there > 0; {
		var left *redis.IntCmd
		_, err := f.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			for range fillersAtOne {
				p.Set(ctx, f.prefix+strconv.Itoa(f.made), value, 0)
				f.made++
			}
			left = p.Exists(ctx, victim) // which does not count as a use
			return nil
		})
		if err != nil {
			return fmt.Errorf("rig: fill the memory of Redis: %w", err)
		}
		there = left.Val()
	}
	for {
		m, err := announced.ReceiveMessage(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("rig: Redis did not announce that it evicted %s: %w", victim, err)
		case m.Payload == "evicted":
			return nil
		case m.Payload == "expired" || m.Payload == "del":
			return fmt.Errorf("rig: Redis announced %q of %s before it had to evict it", m.Payload, victim)
		}
	}
}

// restore gives the server its memory back.
func (f *filler) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fillPatience)
	defer cancel()
	_, err := f.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ConfigSet(ctx, "maxmemory", "0")
		p.ConfigSet(ctx, "maxmemory-policy", "noeviction")
		for n := range f.made {
			p.Unlink(ctx, f.prefix+strconv.Itoa(n))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("rig: give Redis its memory back: %w", err)
	}
	return nil
}
