// Package rig starts testbeds: real servers, proxies between them, and shop processes. It controls
// them (pause, kill, cut off, heal, promote) and leaves nothing behind.
package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"stocklock/internal/lab/words"
	"stocklock/internal/redisconn"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// Rig owns the servers, shops and proxies of a run. It is safe for concurrent use.
type Rig struct {
	*testserver.Group

	given     string // the shop to start, empty for the one of the checkout
	buildOnce sync.Once
	binary    string
	buildErr  error

	mu     sync.Mutex            // guards lacked
	lacked map[string]words.Text // what Lacks has found out, by the commands
}

// New makes an empty rig. It starts the program shop as its shops, or for an empty path the one that
// [Rig.ShopBinary] finds.
func New(shop string) (_ *Rig, err error) {
	if shop != "" {
		if shop, err = ShopAt(shop); err != nil {
			return nil, err
		}
	}
	group, err := testserver.New()
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	return &Rig{Group: group, given: shop, lacked: map[string]words.Text{}}, nil
}

// RedisVersion is what the server calls itself, such as "Redis 8.0.2".
func RedisVersion(ctx context.Context, client redisconn.Client) (string, error) {
	info, err := client.Do(ctx, "INFO", "server").Info()
	if err != nil {
		return "", fmt.Errorf("ask Redis for its version: %w", err)
	}
	if v := info["valkey_version"]; v != "" {
		return "Valkey " + v, nil
	}
	return "Redis " + info["redis_version"], nil
}

// Lacks says why a Redis server cannot run a strategy: it knows none of the commands that the strategy
// needs one of, as [declared.Strategy.NeedsCommand] lists them. It is empty where the server can.
func Lacks(ctx context.Context, client redisconn.Client, commands []string) (why words.Text, err error) {
	if len(commands) == 0 {
		return why, nil
	}
	if known, err := declared.KnownCommand(ctx, client, commands); err != nil || known != "" {
		return why, err
	}
	version, err := RedisVersion(ctx, client)
	if err != nil {
		return why, err
	}
	return words.Of("unfit.command", "commands", strings.Join(commands, " or "), "version", version), nil
}

// Lacks says why the Redis servers that the rig starts cannot run a strategy. It starts one to ask it, once.
func (r *Rig) Lacks(ctx context.Context, commands []string) (why words.Text, err error) {
	if len(commands) == 0 {
		return why, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := strings.Join(commands, " ")
	if why, known := r.lacked[key]; known {
		return why, nil
	}
	server, err := r.Redis(ctx, testserver.RedisOptions{})
	if err != nil {
		return why, err
	}
	why, err = Lacks(ctx, server.Client, commands)
	if err = errors.Join(err, server.Stop()); err == nil {
		r.lacked[key] = why
	}
	return why, err
}
