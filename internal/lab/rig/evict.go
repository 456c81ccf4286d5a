package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/redisconn"
	"stocklock/internal/testserver"
)

// Keyspace is the channel on which a Redis announces the changes of a key, without the key.
const Keyspace = "__keyspace@0__:"

// Announced is the value of notify-keyspace-events with which Redis announces how locks change: K, by
// key; g, $, h and x: DEL and EXPIRE, strings, hashes, and keys that expire.
const Announced = "Kg$hx"

// How the memory is filled. Redis counts the use of a key in whole seconds, and the lock was used in
// the last one: the fillers are few, so that it soon is the lock's turn among them.
const (
	headroom     = 2 << 20 // bytes that are free at first: the backlog of the replication needs one half
	fillerSize   = 32 << 10
	fillersAtOne = 4 // in one transaction
	fillPatience = 2 * time.Second
)

// Evict fills the memory of the primary and of one server of the quorum, under allkeys-lru, until
// those of these keys that a server has are gone. The first of them goes by an eviction that the server has
// announced. A server that has none of the keys is left alone. It is an error where no server has any. Without
// keys the primary evicts anything. Then the servers have memory again.
func (s *Testbed) Evict(ctx context.Context, keys []string) error {
	servers := []*testserver.Redis{s.Redis()}
	if len(s.Quorum) > 0 && len(keys) > 0 {
		servers = append(servers, s.Quorum[0])
	}
	filling, ctx := errgroup.WithContext(ctx)
	evicted := make([]bool, len(servers))
	for i, server := range servers {
		filling.Go(func() (err error) {
			evicted[i], err = Evict(ctx, server, keys)
			return err
		})
	}
	if err := filling.Wait(); err != nil {
		return err
	}
	if slices.Contains(evicted, true) {
		return nil
	}
	return fmt.Errorf("rig: Redis had none of %s when its memory was to be filled", strings.Join(keys, ", "))
}

// Evict fills the memory of one server as [Testbed.Evict] does, and reports whether it evicted a key. Without
// keys that is the first filler.
func Evict(ctx context.Context, server *testserver.Redis, keys []string) (evicted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, fillPatience)
	defer cancel()
	fill := filler{client: server.Client, prefix: "filler:" + testserver.RandomHex(4) + ":"}
	for _, key := range keys {
		n, err := server.Client.Do(ctx, "EXISTS", key).Int64()
		if err != nil {
			return false, err
		}
		if n > 0 {
			fill.victims = append(fill.victims, key)
		}
	}
	switch {
	case len(keys) == 0:
		fill.victims = []string{fill.prefix + "0"}
	case len(fill.victims) == 0:
		return false, nil
	}
	defer func() { err = errors.Join(err, fill.restore(context.WithoutCancel(ctx))) }()
	return true, fill.run(ctx)
}

// filler fills the memory of a server.
type filler struct {
	client  redisconn.Client
	victims []string // keys that are to go
	prefix  string   // of the keys that it makes
	made    int
}

func (f *filler) run(ctx context.Context) error {
	if err := f.client.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", Announced+"e").Err; err != nil { // e: evicted keys
		return err
	}
	var channels []string
	for _, key := range f.victims {
		channels = append(channels, Keyspace+key)
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	announced, err := f.client.Subscribe(ctx, channels...)
	if err != nil {
		return err
	}
	if err := f.limit(ctx); err != nil {
		return err
	}
	gone := map[string]string{} // how a key went, by the key
	for evicted := false; !evicted || len(gone) < len(f.victims); {
		if err := f.write(ctx, gone); err != nil {
			return err
		}
		select {
		case m, open := <-announced:
			if !open {
				return fmt.Errorf("rig: Redis did not evict %s: %w", f.victims[0], cmp.Or(context.Cause(ctx), io.ErrUnexpectedEOF))
			}
			key := strings.TrimPrefix(m.Channel, Keyspace)
			switch m.Payload {
			case "evicted", "expired", "del":
				gone[key] = m.Payload
			}
			if key == f.victims[0] && (m.Payload == "expired" || m.Payload == "del") {
				return fmt.Errorf("rig: Redis announced %q of %s before it evicted it", m.Payload, key)
			}
			evicted = evicted || gone[f.victims[0]] == "evicted"
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// limit leaves little free memory.
func (f *filler) limit(ctx context.Context) error {
	info, err := f.client.Do(ctx, "INFO", "memory").Info()
	if err != nil {
		return err
	}
	used, err := strconv.Atoi(info["used_memory"])
	if err != nil {
		return fmt.Errorf("rig: Redis does not say how much memory it uses: %w", err)
	}
	for _, setting := range [][2]string{
		{"maxmemory-policy", "allkeys-lru"}, {"maxmemory-samples", "64"}, {"maxmemory", strconv.Itoa(used + headroom)},
	} {
		if err := f.client.Do(ctx, "CONFIG", "SET", setting[0], setting[1]).Err; err != nil {
			return err
		}
	}
	return nil
}

// write writes a few fillers, unless all victims are gone, and adds those that are.
func (f *filler) write(ctx context.Context, gone map[string]string) error {
	if len(gone) == len(f.victims) {
		return nil
	}
	var commands []redisconn.Command
	for range fillersAtOne {
		commands = append(commands, redisconn.Command{"SET", f.prefix + strconv.Itoa(f.made), strings.Repeat("x", fillerSize)})
		f.made++
	}
	for _, key := range f.victims {
		commands = append(commands, redisconn.Command{"EXISTS", key}) // which does not count as a use
	}
	replies, err := f.client.Transaction(ctx, commands...)
	if err != nil {
		return fmt.Errorf("rig: fill the memory of Redis: %w", err)
	}
	for i, key := range f.victims {
		if replies[fillersAtOne+i].Value == int64(0) && gone[key] == "" {
			gone[key] = "not there"
		}
	}
	return nil
}

func (f *filler) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fillPatience)
	defer cancel()
	commands := []redisconn.Command{{"CONFIG", "SET", "maxmemory", "0"}, {"CONFIG", "SET", "maxmemory-policy", "noeviction"}}
	for n := range f.made {
		commands = append(commands, redisconn.Command{"UNLINK", f.prefix + strconv.Itoa(n)})
	}
	if _, err := f.client.Pipeline(ctx, commands...); err != nil {
		return fmt.Errorf("rig: free the memory of Redis: %w", err)
	}
	return nil
}
