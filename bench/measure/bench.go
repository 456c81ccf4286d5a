// Package measure runs processes that compete for a lock, and measures them and Redis.
package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"stocklock/bench/lock"
	"stocklock/bench/section"
	"stocklock/bench/worker"
	"stocklock/internal/lab/rig"
	"stocklock/internal/redisconn"
	"stocklock/internal/testserver"
)

// Bench owns the servers. Locks and sections use different Redis servers, so that every request to
// those of the locks comes from a lock.
type Bench struct {
	rig       *rig.Rig
	locks     []*testserver.Redis // as many servers as a lock needs, at least one
	dataRedis *testserver.Redis
	mysql     *testserver.MySQL // nil unless a section needs one
	etcd      *testserver.Etcd  // nil unless a lock needs one
	serial    int
}

// Open starts the servers that these locks need. It starts MySQL only if needMySQL is set.
func Open(ctx context.Context, locks []lock.Lock, needMySQL bool) (_ *Bench, err error) {
	r, err := rig.New("")
	if err != nil {
		return nil, err
	}
	b := &Bench{rig: r}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	args := testserver.RedisOptions{Args: []string{"--maxclients", "20000"}}
	servers, needEtcd := 1, false
	for _, l := range locks {
		servers, needEtcd = max(servers, l.Quorum), needEtcd || l.Etcd
	}
	for range servers {
		server, err := r.Redis(ctx, args)
		if err != nil {
			return nil, err
		}
		b.locks = append(b.locks, server)
	}
	if b.dataRedis, err = r.Redis(ctx, args); err != nil {
		return nil, err
	}
	if needMySQL {
		if b.mysql, err = r.MySQL(ctx); err != nil {
			return nil, err
		}
	}
	if needEtcd {
		b.etcd, err = r.Etcd(ctx)
	}
	return b, err
}

// Close stops the servers and removes their files.
func (b *Bench) Close() error { return b.rig.Close() }

// Environment returns the configuration of the results.
func (b *Bench) Environment(ctx context.Context) []benchfmt.Config {
	version, _ := rig.RedisVersion(ctx, b.locks[0].Client)
	etcd := ""
	if b.etcd != nil {
		etcd, _ = b.etcd.Version(ctx)
	}
	return append(Machine(), Configure("redis", strings.TrimPrefix(version, "Redis "), "etcd", etcd)...)
}

// Trial is one measurement of one lock in one shape around one section.
type Trial struct {
	Lock    lock.Lock
	Shape   Shape
	Section section.Section
	Lease   time.Duration
	For     time.Duration
}

const startPatience = 60 * time.Second

// Run runs a trial.
func (b *Bench) Run(ctx context.Context, t Trial) (Sample, error) {
	s, err := b.run(ctx, t)
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	if err != nil {
		return s, fmt.Errorf("%s, %s, %s: %w", t.Lock.Name, t.Shape.Name, t.Section.Name, err)
	}
	return s, nil
}

func (b *Bench) run(ctx context.Context, t Trial) (_ Sample, err error) {
	shape := t.Shape
	if t.Lock.Local {
		shape = shape.local()
	}
	b.serial++
	order := worker.Order{
		Lock: t.Lock.Name, Section: t.Section.Name, Key: fmt.Sprintf("bench-%d", b.serial), Lease: t.Lease,
		DataRedis:  b.dataRedis.Addr,
		Goroutines: shape.Goroutines, For: t.For, Pause: shape.Pause, Hold: shape.Hold,
	}
	if shape.Pairs {
		order.Beside, order.Form = []string{Raw, lock.BSM.Name}, shape.Form
	}
	if b.mysql != nil {
		order.MySQL = b.mysql.DSN()
	}
	for _, server := range b.locks[:t.Lock.Servers()] {
		if err := server.Client.Do(ctx, "FLUSHALL").Err; err != nil {
			return Sample{}, err
		}
		order.Servers = append(order.Servers, server.Addr)
	}
	if t.Lock.Etcd {
		order.Etcd = b.etcd.Addr
	}
	job, err := t.Section.Open(section.Config{Redis: order.DataRedis, MySQL: order.MySQL, Goroutines: 1})
	if err != nil {
		return Sample{}, err
	}
	defer job.Close()
	if err := job.Reset(ctx, order.Key); err != nil {
		return Sample{}, err
	}
	if shape.Delay > 0 {
		addresses := []*string{&order.DataRedis}
		for i := range order.Servers {
			addresses = append(addresses, &order.Servers[i])
		}
		if order.Etcd != "" {
			addresses = append(addresses, &order.Etcd)
		}
		for _, addr := range addresses {
			proxy, err := delayed(*addr, shape.Delay)
			if err != nil {
				return Sample{}, err
			}
			defer proxy.Close()
			*addr = proxy.Addr
		}
	}
	roundTrip, err := roundTripTo(ctx, order.Servers[0])
	if err != nil {
		return Sample{}, err
	}
	results, used, err := b.work(ctx, t, order, shape.Processes)
	if err != nil {
		return Sample{}, err
	}
	total, err := job.Total(ctx, order.Key)
	if err != nil {
		return Sample{}, err
	}
	if shape.Pairs {
		return pairsOf(results[0]), nil
	}
	sample, err := merge(t, results, used, total)
	sample.add(roundTrip, TripSec)
	return sample, err
}

// roundTripTo returns the median of some PINGs, in seconds. A delay of the trial is part of it.
func roundTripTo(ctx context.Context, addr string) (float64, error) {
	const times = 51
	client, err := redisconn.Open("redis://" + addr)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var took []float64
	for range times {
		begun := time.Now()
		if err := client.Do(ctx, "PING").Err; err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun).Seconds())
	}
	slices.Sort(took)
	return took[times/2], nil
}

// work starts the workers, lets them work at the same time, and stops them.
func (b *Bench) work(ctx context.Context, t Trial, order worker.Order, processes int) (_ []worker.Result, _ usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience+2*t.For)
	defer cancel()
	var workers []*process
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, w.end())
		}
	}()
	for range processes {
		w, err := startProcess(ctx, order)
		if err != nil {
			return nil, usage{}, err
		}
		workers = append(workers, w)
	}
	for _, w := range workers {
		var ready string
		if err := w.answer(&ready); err != nil {
			return nil, usage{}, err
		}
	}
	before, err := b.usageOf(ctx, t.Lock)
	if err != nil {
		return nil, usage{}, err
	}
	for _, w := range workers {
		if err := w.begin(); err != nil {
			return nil, usage{}, err
		}
	}
	results := make([]worker.Result, len(workers))
	for i, w := range workers {
		if err := w.answer(&results[i]); err != nil {
			return nil, usage{}, err
		}
	}
	after, err := b.usageOf(ctx, t.Lock)
	return results, after.since(before), err
}
