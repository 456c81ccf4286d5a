package matrix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/bench"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
	"stocklock/internal/redisconn"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// testbeds are the servers and shops of a run, opened or given by address.
type testbeds struct {
	plan    Plan
	servers *bench.Bench     // nil where each scenario has those of its topology
	redis   redisconn.Client // the one given by address, or nil
	benches []*trial.Bench   // one for each cell that runs at once; nil likewise
	waits   *seen.MySQL
	calm    *trial.Bench // for the comparable cells of a plan that has others besides, or nil

	mu                                      sync.Mutex // guards the rest
	mysqlVersion, redisVersion, etcdVersion string
	unended                                 error // of the servers of topologies, which says nothing of their cells
}

// AddressError says that what a flag gave cannot be used.
type AddressError struct {
	What string // the flag that gave it: mysql, redis, shops, or shop and its URL
	Err  error
}

func (e *AddressError) Error() string { return e.What + ": " + e.Err.Error() }
func (e *AddressError) Unwrap() error { return e.Err }

// connectPatience bounds how long servers and shops that were given by address may take to answer.
const connectPatience = 10 * time.Second

func open(ctx context.Context, p Plan, status *Status) (_ *testbeds, err error) {
	t := &testbeds{plan: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if p.ofAFew() && p.Pairs[0].Scenario.Topology != nil {
		status.Say("starting the servers of the topologies")
		return t, nil
	}
	if p.MySQL == "" {
		status.Say("starting MySQL")
	} else if err := checkMySQL(ctx, p.MySQL); err != nil {
		return nil, err
	}
	o := bench.Options{Shop: p.Shop, Redis: p.RedisServer, MySQL: testserver.Settings(p.MySQLSet), DSN: p.MySQL, Given: len(p.Given) > 0}
	if t.servers, err = bench.Open(ctx, o); err != nil {
		return nil, err
	}
	if t.plan.snapshotIsolation, err = audit.SnapshotIsolation(ctx, t.servers.Store); err != nil {
		return nil, err
	}
	if t.plan.calm != nil {
		t.plan.calm.snapshotIsolation = t.plan.snapshotIsolation
	}
	t.waits = seen.NewMySQL(t.servers.Store, t.servers.MariaDB)
	if err := t.openRedis(ctx, status); err != nil {
		return nil, err
	}
	if len(p.Given) > 0 {
		err = t.use(ctx)
	} else {
		status.Say("starting the shops")
		err = t.start(ctx)
	}
	if err != nil {
		return nil, err
	}
	return t, t.askVersions(ctx)
}

// openTopology starts the servers and the shops of a task on a topology, which end with it.
func (t *testbeds) openTopology(ctx context.Context, of task) (_ *trial.Bench, done func(), err error) {
	if of.scenario.Topology.Missing() != nil {
		return &trial.Bench{}, func() {}, nil
	}
	servers, err := bench.Open(ctx, bench.Options{Shop: t.plan.Shop, Redis: t.plan.RedisServer, Topology: of.scenario.Topology})
	if err != nil {
		return nil, nil, err
	}
	b := &trial.Bench{Store: servers.Store, Database: servers.Database, Waits: seen.NewMySQL(servers.Store, servers.MariaDB)}
	done = func() {
		servers.Store = b.Store // which counts on another server after a failover
		unended := servers.Close()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.unended = errors.Join(t.unended, unended)
	}
	o := rig.TestbedOptions{Trace: true, Env: t.plan.settings()}
	if slices.ContainsFunc(of.strategies, func(s declared.Strategy) bool { return s.NeedsQuorum }) {
		o.Quorum = rig.QuorumServers
	}
	if b.Testbed, err = servers.Testbed(ctx, o); err != nil {
		done()
		return nil, nil, err
	}
	b.Shops = trial.ShopsOf(b.Testbed)
	redis, err := rig.RedisVersion(ctx, b.Testbed.Redis().Client)
	if err != nil {
		done()
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mysqlVersion, t.redisVersion = servers.Version, redis
	return b, done, nil
}

// settings are those of the shops of the plan.
func (p Plan) settings() map[string]string {
	return map[string]string{
		"SHOP_LAB":   "true",
		"SHOP_LEASE": p.Lease.String(), "SHOP_WAIT": p.Wait.String(), "SHOP_RETRY": p.Retry.String(), "SHOP_LAB_WORK": p.Work.String(),
		"SHOP_LOG_LEVEL": "error",
	}
}

func (t *testbeds) close() error {
	errs := []error{t.unended}
	if t.redis != nil {
		errs = append(errs, t.redis.Close())
	}
	if t.servers != nil {
		errs = append(errs, t.servers.Close())
	}
	return errors.Join(errs...)
}

// checkMySQL reports why a server that was given by address cannot be used.
func checkMySQL(ctx context.Context, dsn string) error {
	store, err := stock.Open(dsn)
	if err != nil {
		return err
	}
	defer store.Close()
	connecting, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	if err := store.Ping(connecting); err != nil {
		return &AddressError{"mysql", fmt.Errorf("cannot connect: %w", err)}
	}
	return nil
}

func (t *testbeds) openRedis(ctx context.Context, status *Status) (err error) {
	if t.plan.Redis == "" {
		return nil
	}
	if t.redis, err = redisconn.Open(t.plan.Redis); err != nil {
		return &AddressError{"redis", fmt.Errorf("want redis://host:6379: %w", err)}
	}
	connecting, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	if err := t.redis.Do(connecting, "PING").Err; err != nil {
		return &AddressError{"redis", fmt.Errorf("cannot connect: %w", err)}
	}
	if err := t.redis.Do(connecting, "PEXPIRETIME", "stocklock").Err; err != nil {
		return &AddressError{"redis", fmt.Errorf("want Redis 7 or later, which says when a lease ends: %w", err)}
	}
	if !announces(connecting, t.redis) {
		status.Warn("the Redis of --redis announces no changes, so explanations do not know when a lock ended: " +
			"redis-cli config set notify-keyspace-events '" + rig.Announced + "'")
	}
	return nil
}

// announces reports whether a Redis announces how locks change. A server that does not answer that
// question may do so.
func announces(ctx context.Context, client redisconn.Client) bool {
	const setting = "notify-keyspace-events"
	answer, isMap := client.Do(ctx, "CONFIG", "GET", setting).Value.(map[any]any)
	if !isMap {
		return true
	}
	flags := strings.ReplaceAll(fmt.Sprint(answer[setting]), "A", "g$hx") // A is an alias of these and others
	return !strings.ContainsFunc(rig.Announced, func(flag rune) bool { return !strings.ContainsRune(flags, flag) })
}

// start starts the testbeds, each with shops and, unless one is given, with a Redis of its own.
func (t *testbeds) start(ctx context.Context) error {
	if _, err := t.servers.ShopBinary(ctx); err != nil {
		return err
	}
	var most int
	if err := t.servers.Store.Pool().QueryRowContext(ctx, "SELECT @@max_connections").Scan(&most); err != nil {
		return fmt.Errorf("ask MySQL for its max_connections: %w", err)
	}
	pool, err := t.plan.poolSize(most)
	if err != nil {
		return &AddressError{"shops", err}
	}
	var noQuorum, noEtcd words.Text
	options := func(p *Plan) rig.TestbedOptions {
		o := rig.TestbedOptions{Shops: p.Shops, RedisURL: p.Redis, Env: p.settings(), Trace: true}
		o.Env["SHOP_MYSQL_POOL"] = strconv.Itoa(pool)
		if p.ofAFew() {
			o.EnvOf = p.Pairs[0].Scenario.Settings().Env
		}
		if slices.ContainsFunc(p.Pairs, needsEtcd) {
			if missing := testserver.HasEtcd(); missing != nil {
				noEtcd = words.Of("missing", "why", missing.Error())
			} else {
				o.Etcd = true
			}
		}
		if p.Redis == "" {
			o.Faults = !p.Comparison() && !p.ofAFew()
			if slices.ContainsFunc(p.Pairs, needsQuorum) {
				o.Quorum = rig.QuorumServers
			}
		} else {
			noQuorum = words.Of("unfit.quorum")
		}
		return o
	}
	starting, ctx := errgroup.WithContext(ctx)
	start := func(name string, p *Plan) *trial.Bench {
		o := options(p)
		o.Name = name
		into := &trial.Bench{Store: t.servers.Store, Redis: t.redis, Waits: t.waits,
			Alone: p.Parallel == 1 && p == &t.plan && p.MySQL == "", NoQuorum: noQuorum, NoEtcd: noEtcd}
		starting.Go(func() (err error) {
			if into.Testbed, err = t.servers.Testbed(ctx, o); err != nil {
				return err
			}
			into.Shops = trial.ShopsOf(into.Testbed)
			return nil
		})
		return into
	}
	for i := range t.plan.Parallel {
		t.benches = append(t.benches, start(fmt.Sprintf("testbed%d", i+1), &t.plan))
	}
	if t.plan.calm != nil {
		t.calm = start("calm", t.plan.calm)
	}
	return starting.Wait()
}

func needsQuorum(c Pair) bool { return c.Strategy.NeedsQuorum }
func needsEtcd(c Pair) bool   { return c.Strategy.NeedsEtcd }

// use checks the shops that were given by address: they must be ready, in lab mode, and on the
// database that the audit asks.
func (t *testbeds) use(ctx context.Context) error {
	given := &trial.Bench{Shops: t.plan.Given, Store: t.servers.Store, Redis: t.redis, Waits: t.waits, NoEtcd: words.Of("unfit.etcd")}
	probeWithin := func(url, by string) error {
		waiting, cancel := context.WithTimeout(ctx, connectPatience)
		defer cancel()
		return probe(waiting, url, by, t.servers.Store)
	}
	quorum := slices.IndexFunc(t.plan.Pairs, needsQuorum)
	for _, shop := range t.plan.Given {
		url := shop.URL
		err := probeWithin(url, "conditional")
		if err == nil && shop.Trace != "" {
			err = readable(shop.Trace)
		}
		if err != nil {
			return &AddressError{"shop " + Redacted(url), err}
		}
		if quorum < 0 {
			continue
		}
		if err := probeWithin(url, t.plan.Pairs[quorum].Strategy.Name); err != nil {
			given.NoQuorum = words.Of("unfit.quorum", "shop", Redacted(url), "why", err.Error())
		}
	}
	t.benches = []*trial.Bench{given}
	return nil
}

// readable returns why the trace of a shop cannot be read. The shop made the file when it started.
func readable(trace string) error {
	file, err := os.Open(trace)
	if err != nil {
		return fmt.Errorf("its trace cannot be read: %w: want the file of its SHOP_TRACE", err)
	}
	return file.Close()
}

// Redacted is an address without its password.
func Redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "***"
	}
	return u.Redacted()
}

// probe checks a shop that was given by address: it must be ready, obey the lab's headers, and sell
// by the strategy from the database that store reads. It buys one unit of an item made for that.
func probe(ctx context.Context, shop, strategy string, store *stock.Store) error {
	run, err := audit.Start(ctx, store, audit.Run{
		ID: "probe-" + time.Now().UTC().Format("150405.000000000"), Strategy: strategy, Scenario: "probe", InitialStock: 1,
	})
	if err != nil {
		return err
	}
	a := load.Send(ctx, load.Order{Shop: shop, ItemID: run.ItemID, Quantity: 1, Strategy: strategy, Run: run.ID})
	switch {
	case a.Err != nil:
		return a.Err
	case a.Status == http.StatusNotFound || a.Status == http.StatusConflict: // no such item, or another one
		return errors.New("the shop does not know the item that was just made: it sells from another database than --mysql")
	case a.Outcome != load.Sold:
		return fmt.Errorf("a sale was answered with %d %s: %s", a.Status, http.StatusText(a.Status), a.Detail())
	}
	if order, err := a.Sale(); err != nil || order.Run != run.ID || order.Strategy != strategy {
		return errors.New("the shop does not obey the lab's headers: start it with SHOP_LAB=true")
	}
	return nil
}
