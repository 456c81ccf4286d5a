// Package rig starts testbeds: real servers, proxies between them, and shop processes. It controls
// them (pause, kill, cut off, heal, promote) and leaves nothing behind.
//
// testbed.go sets up servers, proxies and shops. proxy.go starts a proxy. shop.go builds and starts
// a shop.
package rig

import (
	"fmt"
	"sync"

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

// New makes an empty rig.
func New() (*Rig, error) {
	group, err := testserver.New()
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	return &Rig{Group: group}, nil
}
