package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How often every dependency is probed, how long it may take to answer, and how many failures in a
// row make it missing. One failure is not enough, because all shops see the same server and would
// become unready at once.
const (
	pingInterval = time.Second
	pingTimeout  = 2 * time.Second
	maxFailures  = 3
)

// A shop is unready, whatever the probes say, after so many sales in a row that failed because of
// the servers, the last of them within this time.
const (
	maxFailedSales    = 20
	failedSalesExpire = 10 * time.Second
)

// health knows which dependencies a sale could use now. It probes them in the background and
// answers from memory. A hanging database, or many probes, therefore delay nothing.
type health struct {
	log          *slog.Logger
	dependencies []*dependency

	failedSales atomic.Int64 // in a row
	lastFailure atomic.Int64 // when the last of them failed, in Unix nanoseconds
}

// sold notes whether a sale failed because of the servers.
func (h *health) sold(failed bool) {
	if !failed {
		h.failedSales.Store(0)
		return
	}
	h.lastFailure.Store(time.Now().UnixNano())
	h.failedSales.Add(1)
}

// salesFail reports whether enough sales in a row failed because of the servers, the last recently.
func (h *health) salesFail() bool {
	return h.failedSales.Load() >= maxFailedSales && time.Since(time.Unix(0, h.lastFailure.Load())) < failedSalesExpire
}

// dependency is a server that the shop cannot work without.
type dependency struct {
	name    string
	where   string                      // its address, for people
	prepare func(context.Context) error // done once, after the first answer; may be nil
	there   func(context.Context) error // whether it answers, before it is prepared; nil for ping
	ping    func(context.Context) error // whether a sale could use it

	prepared  chan struct{} // closed when it answered and was prepared
	preparing atomic.Bool   // it answered, and is being prepared: that may take as long as it needs

	mu       sync.Mutex
	err      error // guarded by mu: why it is not usable, nil when it is
	failures int   // guarded by mu: in a row
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

// wait returns when all dependencies have answered and are prepared. It fails if one that is not
// being prepared is missing after the patience, or if ctx ends.
func (h *health) wait(ctx context.Context, patience time.Duration) error {
	giveUp := time.Now().Add(patience)
	for _, d := range h.dependencies {
		for ready := false; !ready; {
			select {
			case <-d.prepared:
				ready = true
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Until(giveUp)):
				if !d.preparing.Load() {
					return fmt.Errorf("not there in time: %s", h.reasons())
				}
				giveUp = time.Now().Add(pingInterval / 10)
			}
		}
	}
	return nil
}

// started reports whether every dependency has been prepared, so that there is a schema.
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

// missing names the dependencies that are not usable now, and "sales" if sales fail all the same.
func (h *health) missing() []string {
	var names []string
	for _, d := range h.dependencies {
		if d.state() != nil {
			names = append(names, d.name)
		}
	}
	if len(names) == 0 && h.salesFail() {
		names = append(names, "sales")
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
		case d.state() != nil && before == nil:
			log.Error(d.name+" is gone", "error", err, "advice", advice(err))
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
	if prepared || d.prepare == nil {
		return d.ping(pinging)
	}
	if err := d.there(pinging); err != nil {
		return err
	}
	d.preparing.Store(true)
	defer d.preparing.Store(false)
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
	before = d.err
	if d.failures++; err == nil {
		d.failures = 0
	}
	if err == nil || before != nil || d.failures >= maxFailures {
		d.err = err
	}
	return before
}
