package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the HTTP server. The time to write an answer is bounded by [Shop.boundAnswer], because the
// server's own WriteTimeout would include the wait for the lock.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	answerTimeout     = 10 * time.Second // by default
	idleTimeout       = 75 * time.Second // above the usual 60 s of a load balancer, which must be the one to close
	profileTimeout    = 2 * time.Minute  // for the internal listener: the longest that a profile may take
	maxHeaderBytes    = 8 << 10          // net/http adds 4 KiB, and as much again on a connection that was used before
)

// abortGrace is how long sales that were cancelled at the end of the drain may take to release
// their locks.
const abortGrace = 2 * time.Second

// Serve answers on the public listener from the first moment, waits for MySQL and Redis, sells
// until ctx ends, or the listener of customers or of the staff fails, and then drains. In a drain, readiness ends
// first, sales under way finish, and locks are released. Serve then returns within DrainDelay, DrainTimeout and two seconds more, also
// beside a Redis that is silent. It returns nil only if ctx ended, every sale finished, and every lock was
// released.
//
// The listener of the staff has the same bounds and drain. It may be nil, and must be without Config.Staff.
// The internal listener serves metrics, profiles and probes until the very end. It may be nil.
func (s *Shop) Serve(ctx context.Context, public, staff, internal net.Listener) error {
	watching, stopWatching := context.WithCancel(context.Background())
	selling, abort := context.WithCancelCause(context.Background())
	defer abort(nil)
	s.serving = selling

	ending, end := context.WithCancel(context.Background())
	var background sync.WaitGroup
	defer func() { // what waits for MySQL then, such as a sweep, ends with the process
		go func() { background.Wait(); end() }()
		<-ending.Done()
	}()
	defer stopWatching()
	background.Go(func() { s.health.watch(watching) })
	background.Go(func() { s.clear(watching, orderKeys, s.KeyTTL, s.store.ClearKeys) })
	background.Go(func() { s.endReservations(watching) })
	served := make(chan error, 2)
	var fronts fronts
	front := func(listener net.Listener, handler http.Handler, serving string) {
		server := s.server(handler)
		server.BaseContext = func(net.Listener) context.Context { return selling }
		bounded := &boundedListener{Listener: listener, most: s.MaxConnections, open: map[net.Conn]*place{}}
		server.ConnState, server.ConnContext = bounded.count, bounded.context
		fronts = append(fronts, server)
		background.Go(func() { served <- server.Serve(bounded) })
		s.Log.Info(serving, "addr", listener.Addr().String())
	}
	front(public, s.inLab(s.engine()), "listening")
	if staff != nil {
		front(staff, s.inLab(s.staffEngine()), "listening for staff")
	}
	if internal != nil {
		metrics := s.server(neverKept(s.internalRoutes()))
		metrics.WriteTimeout = profileTimeout
		background.Go(func() { _ = metrics.Serve(internal) })
		defer metrics.Close()
		s.Log.Info("metrics and profiles", "addr", internal.Addr().String())
	}

	err := s.waitForDependencies(ctx)
	started := err == nil
	if started {
		select {
		case <-ctx.Done():
		case err = <-served:
			s.Log.Error("a listener failed", "error", err)
		}
	}
	time.AfterFunc(s.DrainDelay+s.DrainTimeout+abortGrace, end)
	if started {
		err = errors.Join(err, s.drain(ending, fronts, abort))
	}
	stopWatching()
	err = errors.Join(err, fronts.Close(), s.seller.Close(ending), s.locks.Close())
	if s.lab != nil {
		err = errors.Join(err, s.lab.Close())
	}
	return err
}

// inLab answers the requests on a listener, inside the lab where there is one.
func (s *Shop) inLab(routes http.Handler) http.Handler {
	routes = neverKept(routes)
	if s.lab != nil {
		return s.lab.Requests(routes)
	}
	return routes
}

// fronts are the servers with a drain.
type fronts []*http.Server

// Shutdown shuts all down, and waits for their requests.
func (f fronts) Shutdown(ctx context.Context) (err error) {
	ended := make(chan error)
	for _, server := range f {
		go func() { ended <- server.Shutdown(ctx) }()
	}
	for range f {
		err = errors.Join(err, <-ended)
	}
	return err
}

// Close closes all, with their connections.
func (f fronts) Close() (err error) {
	for _, server := range f {
		err = errors.Join(err, server.Close())
	}
	return err
}

// neverKept keeps answers out of caches, and keeps browsers from guessing their types.
func neverKept(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

func (s *Shop) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
}

// waitForDependencies returns nil early when ctx ends.
func (s *Shop) waitForDependencies(ctx context.Context) error {
	if err := s.health.wait(ctx, s.StartupTimeout); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("gave up after %s: %w", s.StartupTimeout, err)
	}
	s.Log.Info("ready", "name", s.Name, "strategy", s.Strategy.Name, "lab", s.lab != nil)
	return nil
}

// drain lets the sales under way finish. It cancels those that take too long, which still releases
// their locks. It returns when ending ends, at the latest.
func (s *Shop) drain(ending context.Context, server fronts, abort context.CancelCauseFunc) error {
	s.Log.Info("draining", "delay", s.DrainDelay.String(), "timeout", s.DrainTimeout.String())
	s.draining.Store(true)
	time.Sleep(s.DrainDelay)
	finishing, cancel := context.WithTimeout(ending, s.DrainTimeout)
	defer cancel()
	if server.Shutdown(finishing) == nil {
		s.Log.Info("drained")
		return nil
	}
	abort(errDraining)
	if err := server.Shutdown(ending); err != nil {
		return fmt.Errorf("drain: some sales did not even end when they were cancelled after %s", s.DrainTimeout)
	}
	return fmt.Errorf("drain: some sales were cancelled after %s", s.DrainTimeout)
}
