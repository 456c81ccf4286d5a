package matrix

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/redisconn"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// testbeds are the servers and shops of a run, started or given by address.
type testbeds struct {
	plan    Plan
	rig     *rig.Rig // nil where all was given
	store   *stock.Store
	redis   redisconn.Client // the one given by address, or nil
	benches []trial.Bench    // one for each cell that runs at once
	waits   *trial.MySQLWaits
	calm    *trial.Bench // for the comparable cells of a plan that has others besides, or nil

	mysqlVersion, redisVersion, etcdVersion string
}

// AddressError says that what was given by address cannot be used.
type AddressError struct {
	What string // mysql, redis, or shop and its URL
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
			t.close()
		}
	}()
	if len(p.Given) == 0 {
		if t.rig, err = rig.New(p.Shop); err != nil {
			return nil, err
		}
		t.rig.RedisProgram = p.RedisServer
	}
	dsn := p.MySQL
	if dsn == "" {
		status.Say("starting MySQL")
		server, err := t.rig.MySQL(ctx, p.mysqlOptions()...)
		if err != nil {
			return nil, err
		}
		dsn = server.DSN()
	}
	if err := t.openStore(ctx, dsn); err != nil {
		return nil, err
	}
	if err := t.openRedis(ctx, status); err != nil {
		return nil, err
	}
	if len(p.Given) > 0 {
		err = t.use(ctx)
	} else {
		status.Say("starting the shops")
		err = t.start(ctx, dsn)
	}
	if err != nil {
		return nil, err
	}
	return t, t.askVersions(ctx)
}

func (t *testbeds) close() {
	if t.store != nil {
		t.store.Close()
	}
	if t.redis != nil {
		t.redis.Close()
	}
	if t.rig != nil {
		t.rig.Close()
	}
}

func (t *testbeds) openStore(ctx context.Context, dsn string) (err error) {
	if t.store, err = stock.Open(dsn, stock.WithPoolSize(labPool)); err != nil {
		return err
	}
	connecting, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	if err := t.store.Ping(connecting); err != nil {
		return &AddressError{"mysql", fmt.Errorf("cannot connect: %w", err)}
	}
	if t.mysqlVersion, err = t.store.Version(connecting); err != nil {
		return err
	}
	if t.plan.snapshotIsolation, err = audit.SnapshotIsolation(connecting, t.store); err != nil {
		return err
	}
	if t.plan.calm != nil {
		t.plan.calm.snapshotIsolation = t.plan.snapshotIsolation
	}
	t.waits = trial.NewMySQLWaits(t.store, strings.Contains(t.mysqlVersion, "MariaDB"))
	return t.store.Migrate(ctx, slog.New(slog.DiscardHandler))
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
	if t.plan.Trace && !announces(connecting, t.redis) {
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
	for _, flag := range rig.Announced {
		if !strings.ContainsRune(flags, flag) {
			return false
		}
	}
	return true
}

// start starts the testbeds, each with shops and, unless one is given, with a Redis of its own.
func (t *testbeds) start(ctx context.Context, dsn string) error {
	if _, err := t.rig.ShopBinary(ctx); err != nil {
		return err
	}
	var most int
	if err := t.store.Pool().QueryRowContext(ctx, "SELECT @@max_connections").Scan(&most); err != nil {
		return fmt.Errorf("ask MySQL for its max_connections: %w", err)
	}
	pool, err := t.plan.poolSize(most)
	if err != nil {
		return &AddressError{"mysql", err}
	}
	noQuorum, noEtcd := "", ""
	options := func(p *Plan) rig.TestbedOptions {
		injects := !p.Comparison()
		o := rig.TestbedOptions{
			Shops: p.Shops, DSN: dsn, RedisURL: p.Redis, Env: map[string]string{
				"SHOP_LAB":   "true",
				"SHOP_LEASE": p.Lease.String(), "SHOP_WAIT": p.Wait.String(), "SHOP_RETRY": p.Retry.String(), "SHOP_LAB_WORK": p.Work.String(),
				"SHOP_LOG_LEVEL": "error", "SHOP_MYSQL_POOL": strconv.Itoa(pool),
			},
			Trace: p.Trace || injects, // the trace tells that a request has reached its fault's point
		}
		if slices.ContainsFunc(p.Pairs, needsEtcd) {
			if missing := testserver.HasEtcd(); missing != nil {
				noEtcd = missing.Error()
			} else {
				o.Etcd = true
			}
		}
		if p.Redis == "" {
			o.Faults = injects
			if slices.ContainsFunc(p.Pairs, needsQuorum) {
				o.Quorum = rig.QuorumServers
			}
		} else {
			noQuorum = "needs several Redis servers, and --redis gives one"
		}
		return o
	}
	starting, ctx := errgroup.WithContext(ctx)
	start := func(name string, p *Plan, into *trial.Bench) {
		o := options(p)
		o.Name = name
		starting.Go(func() error {
			testbed, err := t.rig.Testbed(ctx, o)
			if err != nil {
				return err
			}
			*into = trial.Bench{Store: t.store, Testbed: testbed, Redis: t.redis, Waits: t.waits,
				Alone: p.Parallel == 1 && p == &t.plan && p.MySQL == "", NoQuorum: noQuorum, NoEtcd: noEtcd}
			for _, shop := range testbed.Shops {
				into.Shops = append(into.Shops, trial.Shop{URL: shop.URL, Trace: shop.Trace()})
			}
			return nil
		})
	}
	t.benches = make([]trial.Bench, t.plan.Parallel)
	for i := range t.benches {
		start(fmt.Sprintf("testbed%d", i+1), &t.plan, &t.benches[i])
	}
	if t.plan.calm != nil {
		t.calm = &trial.Bench{}
		start("calm", t.plan.calm, t.calm)
	}
	return starting.Wait()
}

func needsQuorum(c Pair) bool { return c.Strategy.NeedsQuorum }
func needsEtcd(c Pair) bool   { return c.Strategy.NeedsEtcd }

// use checks the shops that were given by address: they must be ready, in lab mode, and on the
// database that the audit asks.
func (t *testbeds) use(ctx context.Context) error {
	bench := trial.Bench{Shops: t.plan.Given, Store: t.store, Redis: t.redis, Waits: t.waits, NoEtcd: "needs an etcd that loadtest has started"}
	probeWithin := func(url, by string) error {
		waiting, cancel := context.WithTimeout(ctx, connectPatience)
		defer cancel()
		return probe(waiting, url, by, t.store)
	}
	quorum := slices.IndexFunc(t.plan.Pairs, needsQuorum)
	for _, shop := range t.plan.Given {
		url := shop.URL
		if err := probeWithin(url, "conditional"); err != nil {
			return &AddressError{"shop " + Redacted(url), err}
		}
		if shop.Trace != "" && t.plan.Trace {
			if err := readable(shop.Trace); err != nil {
				return &AddressError{"shop " + Redacted(url), err}
			}
		}
		if quorum < 0 {
			continue
		}
		if err := probeWithin(url, t.plan.Pairs[quorum].Strategy.Name); err != nil {
			bench.NoQuorum = fmt.Sprintf("needs several Redis servers. %s: %v", Redacted(url), err)
		}
	}
	t.benches = []trial.Bench{bench}
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
