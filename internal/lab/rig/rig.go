// Package rig starts testbeds: real servers, proxies between them, and shop processes. It commands
// them (pause, kill, cut off, heal, promote), and leaves nothing behind.
package rig

import (
	"fmt"
	"sync"

	"stocklock/internal/testserver"
)

// Rig owns the servers, shops and proxies of a run. Its methods are safe for concurrent use.
type Rig struct {
	*testserver.Group

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
