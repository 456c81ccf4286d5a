// Package rig starts testbeds: real servers, proxies between them, and shop processes. It controls
// them (pause, kill, cut off, heal, promote) and leaves nothing behind.
//
// testbed.go sets up servers, proxies and shops. proxy.go starts a proxy. shop.go builds and starts
// a shop.
package rig

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/testserver"
)

// Rig owns the servers, shops and proxies of a run. It is safe for concurrent use.
type Rig struct {
	*testserver.Group

	given     string // the shop to start, empty for the one of the checkout
	buildOnce sync.Once
	binary    string
	buildErr  error
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
	return &Rig{Group: group, given: shop}, nil
}

// RedisVersion is what the server calls itself, such as "Redis 8.0.2".
func RedisVersion(ctx context.Context, client *redis.Client) (string, error) {
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("ask Redis for its version: %w", err)
	}
	if v := info["Server"]["valkey_version"]; v != "" {
		return "Valkey " + v, nil
	}
	return "Redis " + info["Server"]["redis_version"], nil
}
