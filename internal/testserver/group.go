// Package testserver starts private Redis and MySQL servers and leaves nothing behind.
//
// All files are in one temporary folder, and all servers listen on free loopback ports.
// [Group.Close] ends them. If this process dies without Close (kill -9, a crash), a reaper ends the
// servers and removes the folder. The reaper is started before everything else.
//
// Tests call [Database] and [RedisAddr]. Each test binary starts one server of a kind, when the
// first test asks for it.
package testserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Group owns a temporary folder and the processes in it. Its methods are safe for concurrent use.
type Group struct {
	// RedisProgram is what [Group.Redis] starts, empty for the redis-server that the machine has. It is set
	// before the first server is started.
	RedisProgram string

	dir    string
	reaper *reaper

	mu      sync.Mutex // guards the rest
	closed  bool
	serial  int
	closers []func() error // in the order of their start
}

// New makes an empty group.
func New() (*Group, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("stocklock-%d-%s", os.Getpid(), RandomHex(4)))
	// The reaper comes first, so that it cleans up whatever is made after it.
	reaper, err := startReaper(dir)
	if err != nil {
		return nil, fmt.Errorf("testserver: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("testserver: %w", err), reaper.finish())
	}
	return &Group{dir: dir, reaper: reaper}, nil
}

// Dir is the group's folder. Close removes it.
func (g *Group) Dir() string { return g.dir }

// Close ends all processes, the youngest first, and removes the folder. It may be called more than
// once.
func (g *Group) Close() error {
	g.mu.Lock()
	closers, again := g.closers, g.closed
	g.closed = true
	g.mu.Unlock()
	if again {
		return nil
	}
	var errs []error
	for i := len(closers) - 1; i >= 0; i-- {
		errs = append(errs, closers[i]())
	}
	return errors.Join(append(errs, g.reaper.finish())...)
}

var errClosed = errors.New("testserver: closed")

// OnClose registers what Close must end. It fails when the group is closed already: the caller must
// then end it itself.
func (g *Group) OnClose(end func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errClosed
	}
	g.closers = append(g.closers, end)
	return nil
}

// Folder makes a folder for one process.
func (g *Group) Folder(kind string) (string, error) {
	g.mu.Lock()
	g.serial++
	dir := filepath.Join(g.dir, fmt.Sprintf("%s-%d", kind, g.serial))
	g.mu.Unlock()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("testserver: %w", err)
	}
	return dir, nil
}
