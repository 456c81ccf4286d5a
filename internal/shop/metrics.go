package shop

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"stocklock/internal/sale"
)

// metrics are those of a shop. Each shop has a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	answered sync.Map // the histogram of requests by answered: a look-up by one key
	lockWait prometheus.Histogram
	lockHold prometheus.Histogram

	logDropped *prometheus.CounterVec
	notCleared *prometheus.CounterVec

	reservationMetrics

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
			Help: "Time to answer, by method, route, status and outcome: ok, sold, replayed, client-gone, or the problem's type.",
		}, []string{"method", "route", "outcome", "status"}),
		lockWait: newHistogram("shop_lock_wait_seconds", latencies, "Time from asking for an item's lock to having it."),
		lockHold: newHistogram("shop_lock_hold_seconds", latencies, "Time from having an item's lock to its release."),
		notCleared: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shop_clearing_failures_total", Help: "Rounds of clearing what is too old that failed, by what that is: order-keys, reservation-keys, or reservations. Others of this shop, or of another one, may clear it.",
		}, []string{"what"}),
		logDropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shop_log_dropped_total", Help: "Log records that were left out of a flood of the same, by level.",
		}, []string{"level"}),
		batchSize: newHistogram("shop_batch_size", prometheus.ExponentialBuckets(1, 2, 9), "Sales that were made in one transaction, by the strategy batched. Its count is the number of batches."),
		batchWait: newHistogram("shop_batch_wait_seconds", latencies, "Time from the arrival of a batch's first sale to the beginning of its transaction."),
	}
	// They are shown as 0 from the beginning, because a rate misses the first value of a series, and a sale may be fenced off
	// only once in the life of a shop.
	for _, route := range []string{apiPrefix + ordersOfItem, OrdersOfItems} {
		for _, p := range []Problem{
			{Slug: "sold", Status: http.StatusCreated}, {Slug: "replayed", Status: http.StatusCreated},
			SoldOut, LimitReached, FencedOff, Busy, Conflict, LockLost, Unavailable, internalError,
		} {
			m.requests.WithLabelValues(http.MethodPost, route, p.Slug, strconv.Itoa(p.Status))
		}
	}
	for _, what := range []string{orderKeys, reservationKeys, oldReservations} {
		m.notCleared.WithLabelValues(what)
	}
	for _, level := range []string{"debug", "info", "warn", "error"} {
		m.logDropped.WithLabelValues(level)
	}
	m.reservationMetrics.open(s, m.registry)
	m.registry.MustRegister(
		m.requests, m.lockWait, m.lockHold, m.logDropped, m.notCleared, m.batchSize, m.batchWait,
		newGauge("shop_requests_in_flight", "API requests under way.", nil, func() float64 { return float64(s.inFlight.Load()) }),
		newGauge("shop_requests_in_flight_max", "API requests that may be under way: sales, reads, changes by staff, and payments, each in places apart.", nil, func() float64 {
			most := s.MaxInFlight + s.maxReads()
			if s.Staff != nil {
				most += s.maxReads()
			}
			if s.payments != nil {
				most += s.maxReads()
			}
			return float64(most)
		}),
		newGauge("shop_info", "Always 1: how this shop sells.", prometheus.Labels{"name": s.Name, "strategy": s.Strategy.Name}, func() float64 { return 1 }),
		newGauge("shop_commit_stall_seconds", "Time for which COMMITs have been under way and none was answered; 0 if none is under way.", nil, func() float64 { return s.store.CommitStall().Seconds() }),
		newCounter("shop_deadlocks_total", "Transactions that MySQL has ended to resolve a deadlock, or because another node of its cluster was faster. They are repeated.", func() float64 { return float64(s.store.Deadlocks()) }),
		collectors.NewDBStatsCollector(s.store.Pool(), "mysql"),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.registry.MustRegister(s.serverMetrics()...)
	return m
}

func newHistogram(name string, buckets []float64, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Buckets: buckets, Help: help})
}

func newGauge(name, help string, labels prometheus.Labels, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
}

func newCounter(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
}

const outcomeKey = "outcome"

// methods are the values of the label, because clients could invent any number of others.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// observe measures every request.
func (m *metrics) observe(c *gin.Context) {
	began := time.Now()
	defer func() {
		this := answered{c.Request.Method, c.FullPath(), c.GetString(outcomeKey), c.Writer.Status()}
		if !slices.Contains(methods, this.method) {
			this.method = "other"
		}
		histogram, ok := m.answered.Load(this)
		if !ok {
			histogram, _ = m.answered.LoadOrStore(this, this.in(m.requests))
		}
		histogram.(prometheus.Observer).Observe(time.Since(began).Seconds())
	}()
	c.Next()
}

// answered has the labels of a request's histogram.
type answered struct {
	method, route, outcome string
	status                 int
}

func (a answered) in(requests *prometheus.HistogramVec) prometheus.Observer {
	return requests.WithLabelValues(a.method, cmp.Or(a.route, "none"), cmp.Or(a.outcome, "ok"), strconv.Itoa(a.status))
}

// batched counts a batch of sales.
func (m *metrics) batched(size int, waited time.Duration) {
	m.batchSize.Observe(float64(size))
	m.batchWait.Observe(waited.Seconds())
}

// sale returns a hook that measures the lock of one sale, which begins now. A basket has several: the
// wait ends with the first, and the hold with the last. A sale that is tried twice has two waits and two holds.
func (m *metrics) sale() sale.Hook {
	asked := time.Now()
	var held time.Time
	locks := 0
	return func(_ context.Context, p sale.Point, _ []slog.Attr) {
		switch p {
		case sale.Acquired:
			if locks++; locks == 1 {
				held = time.Now()
				m.lockWait.Observe(held.Sub(asked).Seconds())
			}
		case sale.Released:
			if locks--; locks == 0 {
				asked = time.Now() // of the second try
				m.lockHold.Observe(asked.Sub(held).Seconds())
			}
		}
	}
}

// serverMetrics show what the health of the shop knows, and what is known of locks.
func (s *Shop) serverMetrics() (all []prometheus.Collector) {
	for _, d := range s.health.dependencies {
		all = append(all, newGauge("shop_dependency_up", "1 when the dependency answers.", prometheus.Labels{"dependency": d.name}, func() float64 {
			if d.state() != nil {
				return 0
			}
			return 1
		}))
	}
	return append(all, s.locks.collectors()...)
}
