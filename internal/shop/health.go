package shop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
)

// How often every dependency is probed by default, how long it may take to answer, and how many failures in a
// row make it missing. One failure is not enough, because all shops see the same server and would
// become unready at once.
const (
	pingInterval = time.Second
	pingTimeout  = 2 * time.Second
	maxFailures  = 3
)

// A shop is unready, whatever the probes say, after so many failures of sales because of the servers, with no sale made in
// between and no pause of this time.
const (
	maxFailedSales    = 20
	failedSalesExpire = 10 * time.Second
)

// maxCommitStall is for how long COMMITs may have no answer until the shop is unready. A server can
// answer everything but COMMITs: it waits for a replica, or for the members of its cluster.
const maxCommitStall = 3 * time.Second

// health knows which dependencies a sale could use now. It probes them in the background and
// answers from memory. A hanging database, or many probes, therefore delay nothing.
type health struct {
	log          *slog.Logger
	interval     time.Duration // between two probes of a dependency
	timeout      time.Duration // of a probe
	dependencies []*dependency

	commitStall func() time.Duration // for how long no COMMIT was answered

	failedSales atomic.Int64 // since a sale was made, or a pause
	lastFailure atomic.Int64 // when the last of them failed, in Unix nanoseconds
}

// noteSale notes a sale that was made, or that failed because of the servers.
func (h *health) noteSale(failed bool) {
	if !failed {
		h.failedSales.Store(0)
		return
	}
	now := time.Now().UnixNano()
	if last := h.lastFailure.Swap(now); now-last > int64(failedSalesExpire) {
		h.failedSales.Store(0) // that row was over
	}
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

func newHealth(log *slog.Logger, interval, timeout time.Duration, dependencies ...*dependency) *health {
	for _, d := range dependencies {
		d.prepared = make(chan struct{})
		d.err = errors.New("no answer yet")
	}
	return &health{log: log, interval: interval, timeout: timeout, dependencies: dependencies}
}

// watch keeps asking all dependencies until ctx ends.
func (h *health) watch(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	for _, d := range h.dependencies {
		watching.Go(func() { h.watchOne(ctx, d) })
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
				giveUp = time.Now().Add(h.interval / 10)
			}
		}
	}
	return nil
}

// starts waits until every dependency has been prepared. It reports false if ctx ends first.
func (h *health) starts(ctx context.Context) bool {
	for _, d := range h.dependencies {
		select {
		case <-d.prepared:
		case <-ctx.Done():
			return false
		}
	}
	return true
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

// missing names the dependencies that are not usable now. If all are, it names "sales" if sales still
// fail, or "commits" if those are not answered.
func (h *health) missing() []string {
	var names []string
	for _, d := range h.dependencies {
		if d.state() != nil {
			names = append(names, d.name)
		}
	}
	switch {
	case len(names) > 0:
	case h.salesFail():
		names = append(names, "sales")
	case h.commitStall() > maxCommitStall:
		names = append(names, "commits")
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

func (h *health) watchOne(ctx context.Context, d *dependency) {
	log := h.log.With("dependency", d.name, "address", d.where)
	prepared, began := false, time.Now()
	for {
		err := d.ask(ctx, h.timeout, prepared)
		if ctx.Err() != nil {
			return
		}
		before := d.setState(err)
		switch {
		case !prepared && err != nil:
			why := []any{"error", err, "seconds", int(time.Since(began).Seconds())}
			if text := advice(err); text != "" {
				why = append(why, "advice", text)
			}
			log.Warn("waiting for "+d.name, why...)
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
		case <-time.After(h.interval):
		case <-ctx.Done():
			return
		}
	}
}

func (d *dependency) ask(ctx context.Context, timeout time.Duration, prepared bool) error {
	pinging, cancel := context.WithTimeout(ctx, timeout)
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

// getLive says that the process answers. It checks no dependency, because a restart of the shop
// does not repair its database.
func (s *Shop) getLive(c *gin.Context) {
	c.JSON(http.StatusOK, gin.H{"status": "live"})
}

// getReady says whether requests should be sent here. If not, it names the missing dependency. The
// reason is in the log.
func (s *Shop) getReady(c *gin.Context) {
	if s.draining.Load() {
		refuse(c, errDraining)
		return
	}
	if names := s.health.missing(); len(names) > 0 {
		refuse(c, refusal{Unavailable, "missing: " + strings.Join(names, ", ")})
		return
	}
	c.JSON(http.StatusOK, gin.H{"status": "ready", "name": s.Name, "strategy": s.Strategy.Name})
}

// unreachable reports whether err means that a server did not answer, or that it cannot work now.
func unreachable(err error) bool { return stock.Unreachable(err) || redisUnreachable(err) }

// advice tells an operator what to do about a server that is up but cannot work now, or returns "".
func advice(err error) string { return cmp.Or(stock.Advice(err), redisAdvice(err)) }

// adviceInterval is the time between two log records of one advice.
const adviceInterval = time.Minute

// advise logs the advice for err, at most once in adviceInterval.
func (s *Shop) advise(ctx context.Context, err error) {
	text := advice(err)
	if text == "" {
		return
	}
	now := time.Now()
	if last, seen := s.advised.Load(text); seen && now.Sub(last.(time.Time)) < adviceInterval {
		return
	}
	s.advised.Store(text, now)
	s.Log.ErrorContext(ctx, "a server cannot work now", "advice", text, "error", err)
}
