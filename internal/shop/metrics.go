package shop

import (
	"context"
	"log/slog"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"stocklock/internal/redislock"
	"stocklock/internal/sale"
)

// metrics is what a shop counts. Each shop has a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	lockWait prometheus.Histogram
	lockHold prometheus.Histogram
	handoffs *prometheus.CounterVec
	renewals prometheus.Counter
	losses   prometheus.Counter

	batchSize prometheus.Histogram
	batchWait prometheus.Histogram
}

// latencies go from a read in memory to the longest wait for a lock.
var latencies = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20}

func newMetrics(s *Shop) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shop_request_duration_seconds", Buckets: latencies,
			Help: "Time to answer, by route and outcome: ok, sold, replayed, client-gone, or the problem's type.",
		}, []string{"route", "outcome"}),
		lockWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "shop_lock_wait_seconds", Buckets: latencies,
			Help: "Time from asking for an item's lock to having it.",
		}),
		lockHold: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "shop_lock_hold_seconds", Buckets: latencies,
			Help: "Time from having an item's lock to having given it back.",
		}),
		handoffs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shop_lock_handoffs_total",
			Help: "Locks taken, by where they came from: free, local (passed on in this process) or remote (passed on by Redis).",
		}, []string{"from"}),
		renewals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shop_lock_renewals_total", Help: "Leases that were renewed while their holder worked.",
		}),
		losses: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shop_lock_losses_total", Help: "Locks that were lost while they were held.",
		}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "shop_batch_size", Buckets: prometheus.ExponentialBuckets(1, 2, 9),
			Help: "Sales that were made in one transaction, by the strategy batched. Its count is the number of batches.",
		}),
		batchWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "shop_batch_wait_seconds", Buckets: latencies,
			Help: "Time from the arrival of a batch's first sale to the beginning of its transaction.",
		}),
	}
	for _, from := range []redislock.Handoff{redislock.Free, redislock.Local, redislock.Remote} {
		m.handoffs.WithLabelValues(string(from)) // shown as 0 from the beginning
	}
	// So are these: a rate does not see the value that a series begins with, and a sale may be
	// fenced off once in the life of a shop.
	for _, outcome := range []string{"sold", "replayed", soldOut.slug, fencedOff.slug, busy.slug, conflict.slug, lockLost.slug, unavailable.slug, internalError.slug} {
		m.requests.WithLabelValues(apiPrefix+ordersOfItem, outcome)
	}
	m.registry.MustRegister(
		m.requests, m.lockWait, m.lockHold, m.handoffs, m.renewals, m.losses, m.batchSize, m.batchWait,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shop_requests_in_flight", Help: "API requests under way.",
		}, func() float64 { return float64(s.inFlight.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shop_requests_in_flight_max", Help: "API requests that may be under way before more are turned away.",
		}, func() float64 { return float64(s.MaxInFlight) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shop_info", Help: "Always 1: how this shop sells.", ConstLabels: prometheus.Labels{"name": s.Name, "strategy": s.Strategy.Name},
		}, func() float64 { return 1 }),
		dependencyGauges{s.health},
		redisPool{s.Deps.Redis},
		collectors.NewDBStatsCollector(s.store.Pool(), "mysql"),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

const outcomeKey = "outcome"

// observe measures every request.
func (m *metrics) observe(c *gin.Context) {
	began := time.Now()
	c.Next()
	route, outcome := c.FullPath(), c.GetString(outcomeKey)
	if route == "" {
		route = "none" // never the path itself: clients could make up any number of them
	}
	if outcome == "" {
		outcome = "ok"
	}
	m.requests.WithLabelValues(route, outcome).Observe(time.Since(began).Seconds())
}

// lockHooks count what the reference lock does. Its wait and hold are measured as
// those of any lock are, by sale.
func (m *metrics) lockHooks() redislock.Hooks {
	return redislock.Hooks{
		Acquired: func(_ context.Context, e redislock.Event) { m.handoffs.WithLabelValues(string(e.From)).Inc() },
		Renewed:  func(context.Context, redislock.Event) { m.renewals.Inc() },
		Lost:     func(context.Context, redislock.Event) { m.losses.Inc() },
	}
}

// batched counts a batch of sales.
func (m *metrics) batched(size int, waited time.Duration) {
	m.batchSize.Observe(float64(size))
	m.batchWait.Observe(waited.Seconds())
}

// sale returns a hook that measures the lock of one sale, which begins now.
func (m *metrics) sale() sale.Hook {
	asked := time.Now()
	var held time.Time
	return func(_ context.Context, p sale.Point, _ []slog.Attr) {
		switch {
		case p == sale.Acquired && held.IsZero():
			held = time.Now()
			m.lockWait.Observe(held.Sub(asked).Seconds())
		case p == sale.Released && !held.IsZero():
			m.lockHold.Observe(time.Since(held).Seconds())
		}
	}
}
