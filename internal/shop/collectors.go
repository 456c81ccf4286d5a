package shop

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// dependencyGauges shows what the health of the shop knows.
type dependencyGauges struct{ *health }

var dependencyUp = prometheus.NewDesc("shop_dependency_up", "1 when the dependency answers.", []string{"dependency"}, nil)

func (h dependencyGauges) Describe(out chan<- *prometheus.Desc) { out <- dependencyUp }

func (h dependencyGauges) Collect(out chan<- prometheus.Metric) {
	for _, d := range h.dependencies {
		up := 0.0
		if d.state() == nil {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(dependencyUp, prometheus.GaugeValue, up, d.name)
	}
}

// redisPool shows the saturation of the connections to Redis.
type redisPool struct{ client redis.UniversalClient }

var (
	redisOpen     = prometheus.NewDesc("redis_pool_connections", "Connections to Redis, by whether they are in use.", []string{"state"}, nil)
	redisMax      = prometheus.NewDesc("redis_pool_connections_max", "Connections that may be open to one Redis server.", nil, nil)
	redisWaits    = prometheus.NewDesc("redis_pool_waits_total", "Commands that waited for a connection.", nil, nil)
	redisWaited   = prometheus.NewDesc("redis_pool_wait_seconds_total", "Time that commands waited for a connection.", nil, nil)
	redisTimeouts = prometheus.NewDesc("redis_pool_timeouts_total", "Commands that got no connection in time.", nil, nil)
)

func (r redisPool) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{redisOpen, redisMax, redisWaits, redisWaited, redisTimeouts} {
		out <- d
	}
}

func (r redisPool) Collect(out chan<- prometheus.Metric) {
	stats := r.client.PoolStats()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	gauge(redisOpen, float64(stats.IdleConns), "idle")
	gauge(redisOpen, float64(stats.TotalConns-min(stats.IdleConns, stats.TotalConns)), "used")
	gauge(redisMax, float64(poolSize(r.client)))
	count(redisWaits, float64(stats.WaitCount))
	count(redisWaited, time.Duration(stats.WaitDurationNs).Seconds())
	count(redisTimeouts, float64(stats.Timeouts))
}
