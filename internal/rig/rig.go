// Package rig starts real servers and shop processes for a run, commands them
// (pause, kill, cut off, heal, promote), and leaves nothing behind.
//
// Everything lives in one temporary folder and listens on free loopback ports.
// It ends with [Rig.Close]; and if this process dies in a way in which it cannot
// call Close (kill -9, a crash), a reaper that was started before everything
// else ends the processes and removes the folder.
package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Rig owns a temporary folder and the processes and proxies of a run. Its
// methods are safe for concurrent use.
type Rig struct {
	dir    string
	reaper *reaper

	mu      sync.Mutex // guards the rest
	closed  bool
	serial  int
	closers []func() error // in the order of their start

	buildOnce sync.Once
	binary    string
	buildErr  error
}

// New makes an empty rig.
func New() (*Rig, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("stocklock-%d-%s", os.Getpid(), randomHex(4)))
	// The reaper comes first: whatever is made after it is certain to be cleaned up.
	reaper, err := startReaper(dir)
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("rig: %w", err), reaper.finish())
	}
	return &Rig{dir: dir, reaper: reaper}, nil
}

// Dir is the rig's folder, removed by Close.
func (r *Rig) Dir() string { return r.dir }

// Close ends all processes and proxies, the youngest first, and removes the
// folder. It may be called more than once.
func (r *Rig) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	closers := r.closers
	r.mu.Unlock()
	var errs []error
	for i := len(closers) - 1; i >= 0; i-- {
		errs = append(errs, closers[i]())
	}
	return errors.Join(append(errs, r.reaper.finish())...)
}

var errClosed = errors.New("rig: closed")

// onClose registers what Close must end. It fails when the rig is closed
// already: the caller must then end it itself.
func (r *Rig) onClose(end func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.closers = append(r.closers, end)
	return nil
}

// folder makes a folder for one process.
func (r *Rig) folder(kind string) (string, error) {
	r.mu.Lock()
	r.serial++
	dir := filepath.Join(r.dir, fmt.Sprintf("%s-%d", kind, r.serial))
	r.mu.Unlock()
	return dir, os.Mkdir(dir, 0o700)
}
