package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// lab is what a run works with: servers and shops, its own or given ones.
type lab struct {
	chosen
	rig     *rig.Rig // nil when everything was given
	store   *stock.Store
	redis   *redis.Client // for looking, nil where it cannot
	benches []trial.Bench
	mysql   string // versions, for the report
	server  string
}

// connectPatience is how long given servers have to answer.
const connectPatience = 10 * time.Second

func openLab(ctx context.Context, ch chosen, s *status) (_ *lab, err error) {
	l := &lab{chosen: ch}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if len(ch.Shop) == 0 {
		if l.rig, err = rig.New(); err != nil {
			return nil, err
		}
	}
	dsn := ch.MySQL
	if dsn == "" {
		s.say("starting MySQL")
		server, err := l.rig.MySQL(ctx)
		if err != nil {
			return nil, err
		}
		dsn = server.DSN()
	}
	if err := l.openStore(ctx, dsn); err != nil {
		return nil, err
	}
	if err := l.openRedis(ctx); err != nil {
		return nil, err
	}
	if len(ch.Shop) > 0 {
		err = l.useShops(ctx)
	} else {
		s.say("building and starting the shops")
		err = l.startSites(ctx, dsn)
	}
	if err != nil {
		return nil, err
	}
	return l, l.askVersions(ctx)
}

func (l *lab) close() {
	if l.store != nil {
		l.store.Close()
	}
	if l.redis != nil {
		l.redis.Close()
	}
	if l.rig != nil {
		l.rig.Close()
	}
}

func (l *lab) openStore(ctx context.Context, dsn string) (err error) {
	if l.store, err = stock.Open(dsn); err != nil {
		return err
	}
	connecting, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	if err := l.store.Ping(connecting); err != nil {
		return usage("--mysql: cannot connect: %w", err)
	}
	return l.store.Migrate(ctx)
}

func (l *lab) openRedis(ctx context.Context) error {
	if l.Redis == "" {
		return nil
	}
	o, err := redis.ParseURL(l.Redis)
	if err != nil {
		return usage("--redis: want redis://host:6379: %w", err)
	}
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	l.redis = redis.NewClient(o)
	connecting, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	if err := l.redis.Ping(connecting).Err(); err != nil {
		return usage("--redis: cannot connect: %w", err)
	}
	return nil
}

// startSites starts the shops, with a Redis of their own unless one is given.
func (l *lab) startSites(ctx context.Context, dsn string) error {
	if _, err := l.rig.ShopBinary(ctx); err != nil {
		return err
	}
	o := rig.TestbedOptions{Shops: l.Shops, DSN: dsn, RedisURL: l.Redis, Env: map[string]string{
		"SHOP_LAB":   "true",
		"SHOP_LEASE": l.Lease.String(), "SHOP_WAIT": l.Wait.String(), "SHOP_RETRY": l.Retry.String(), "SHOP_LAB_WORK": l.Work.String(),
		"SHOP_LOG_LEVEL": "error",
	}}
	faults := slices.ContainsFunc(l.scenarios, func(s scenario.Scenario) bool { return s.Attacks != strategy.Exclusive })
	noQuorum := ""
	if l.Redis == "" {
		o.Faults = faults
		if slices.ContainsFunc(l.strategies, needsQuorum) {
			o.Quorum = 5
		}
	} else {
		noQuorum = "it needs several Redis servers, and --redis gives one"
	}
	o.Trace = l.Trace || faults // a fault is seen to have struck by the trace
	l.benches = make([]trial.Bench, l.Parallel)
	starting, ctx := errgroup.WithContext(ctx)
	for i := range l.benches {
		o := o
		o.Name = fmt.Sprintf("testbed%d", i+1)
		starting.Go(func() error {
			testbed, err := l.rig.Testbed(ctx, o)
			if err != nil {
				return err
			}
			l.benches[i] = trial.Bench{Store: l.store, Testbed: testbed, Redis: l.redis, Alone: len(l.benches) == 1 && l.MySQL == "", NoQuorum: noQuorum}
			for _, shop := range testbed.Shops {
				l.benches[i].Shops = append(l.benches[i].Shops, shop.URL)
			}
			return nil
		})
	}
	return starting.Wait()
}

func needsQuorum(s strategy.Strategy) bool { return s.NeedsQuorum }

// useShops checks the given shops: they must be ready, in lab mode, and on the
// database that the audit asks.
func (l *lab) useShops(ctx context.Context) error {
	bench := trial.Bench{Shops: l.Shop, Store: l.store, Redis: l.redis}
	probe := func(url, by string) error {
		waiting, cancel := context.WithTimeout(ctx, connectPatience)
		defer cancel()
		return trial.Probe(waiting, url, by, l.store)
	}
	quorum := slices.IndexFunc(l.strategies, needsQuorum)
	for _, url := range l.Shop {
		if err := probe(url, "conditional"); err != nil {
			return usage("--shop %s: %w", withoutPassword(url), err)
		}
		if quorum < 0 {
			continue
		}
		if err := probe(url, l.strategies[quorum].Name); err != nil {
			bench.NoQuorum = fmt.Sprintf("%s: %v", withoutPassword(url), err)
		}
	}
	l.benches = []trial.Bench{bench}
	return nil
}

// runAll runs every cell, several side by side where there are several benches, and
// returns what is done, in the order of the tables, even when it ends early.
func (l *lab) runAll(ctx context.Context, s *status) ([]trial.Result, error) {
	type task struct {
		at   int // the cell's place
		cell trial.Cell
	}
	var tasks []task
	cells := make([][]trial.Result, 0, len(l.strategies)*len(l.scenarios))
	for _, sc := range l.scenarios {
		for _, st := range l.strategies {
			if !l.wants(st, sc) {
				continue
			}
			for n := range l.Runs {
				tasks = append(tasks, task{len(cells), trial.Cell{Strategy: st, Scenario: sc, Seed: l.Seed + uint64(n)}})
			}
			cells = append(cells, nil)
		}
	}
	s.begin(len(tasks))
	queue := make(chan task)
	var mu sync.Mutex // guards cells
	working, workCtx := errgroup.WithContext(ctx)
	for _, bench := range l.benches {
		working.Go(func() error {
			for t := range queue {
				s.started(t.cell)
				result, err := trial.Run(workCtx, bench, t.cell, l.options)
				s.finished(t.cell, result, err)
				if err != nil {
					return err
				}
				result.Replay = l.replay(t.cell)
				mu.Lock()
				cells[t.at] = append(cells[t.at], result)
				mu.Unlock()
			}
			return nil
		})
	}
	working.Go(func() error {
		defer close(queue)
		for _, t := range tasks {
			select {
			case queue <- t:
			case <-workCtx.Done():
				return context.Cause(workCtx)
			}
		}
		return nil
	})
	err := working.Wait()
	var done []trial.Result
	for _, runs := range cells {
		if len(runs) > 0 {
			done = append(done, trial.Merge(runs))
		}
	}
	if len(done) == 0 && err == nil {
		err = errors.New("no cell was run")
	}
	return done, err
}

func (l *lab) askVersions(ctx context.Context) (err error) {
	if l.mysql, err = l.store.Version(ctx); err != nil {
		return err
	}
	client := l.redis
	if testbed := l.benches[0].Testbed; client == nil && testbed != nil {
		client = testbed.Redis().Client()
		defer client.Close()
	}
	if client != nil {
		l.server, err = redisVersion(ctx, client)
	}
	return err
}
