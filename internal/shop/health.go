package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// How often every dependency is asked whether it is there, and how long it may
// take to answer.
const (
	pingInterval = time.Second
	pingTimeout  = 2 * time.Second
)

// health knows which dependencies answer. It asks in the background: a probe is answered from memory, so that neither a
// hanging database nor a crowd of probes holds anything up.
type health struct {
	log          *slog.Logger
	dependencies []*dependency
}

// dependency is a server that the shop cannot work without.
type dependency struct {
	name    string
	where   string                      // its address, for people
	prepare func(context.Context) error // done once, after the first answer; may be nil
	ping    func(context.Context) error

	prepared chan struct{} // closed when it answered and was prepared

	mu  sync.Mutex
	err error // guarded by mu: why it is not usable, nil when it is
}

func newHealth(log *slog.Logger, dependencies ...*dependency) *health {
	for _, d := range dependencies {
		d.prepared = make(chan struct{})
		d.err = errors.New("no answer yet")
	}
	return &health{log: log, dependencies: dependencies}
}

// watch keeps asking all dependencies until ctx ends.
func (h *health) watch(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	for _, d := range h.dependencies {
		watching.Go(func() { d.watch(ctx, h.log) })
	}
}

// wait returns when all dependencies were there and prepared, or says which
// ones are missing and why when ctx ends first.
func (h *health) wait(ctx context.Context) error {
	for _, d := range h.dependencies {
		select {
		case <-d.prepared:
		case <-ctx.Done():
			return fmt.Errorf("not there in time: %s", h.reasons())
		}
	}
	return nil
}

// started says whether all dependencies have been there since the start, so
// that there is a schema to sell on.
func (h *health) started() bool {
	for _, d := range h.dependencies {
		select {
		case <-d.prepared:
		default:
			return false
		}
	}
	return true
}

// missing names the dependencies that are not usable now.
func (h *health) missing() []string {
	var names []string
	for _, d := range h.dependencies {
		if d.state() != nil {
			names = append(names, d.name)
		}
	}
	return names
}

// reasons says why dependencies are not usable now.
func (h *health) reasons() string {
	var all []string
	for _, d := range h.dependencies {
		if err := d.state(); err != nil {
			all = append(all, fmt.Sprintf("%s at %s: %v", d.name, d.where, err))
		}
	}
	return strings.Join(all, "; ")
}

func (d *dependency) watch(ctx context.Context, log *slog.Logger) {
	log = log.With("dependency", d.name, "address", d.where)
	prepared, began := false, time.Now()
	for {
		err := d.ask(ctx, prepared)
		if ctx.Err() != nil {
			return
		}
		before := d.setState(err)
		switch {
		case !prepared && err != nil:
			log.Warn("waiting for "+d.name, "error", err, "seconds", int(time.Since(began).Seconds()))
		case !prepared:
			prepared = true
			close(d.prepared)
			log.Info(d.name + " is there")
		case err != nil && before == nil:
			log.Error(d.name+" is gone", "error", err)
		case err == nil && before != nil:
			log.Info(d.name + " is back")
		}
		select {
		case <-time.After(pingInterval):
		case <-ctx.Done():
			return
		}
	}
}

func (d *dependency) ask(ctx context.Context, prepared bool) error {
	pinging, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := d.ping(pinging); err != nil || prepared || d.prepare == nil {
		return err
	}
	return d.prepare(ctx)
}

func (d *dependency) state() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *dependency) setState(err error) (before error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, d.err = d.err, err
	return before
}
