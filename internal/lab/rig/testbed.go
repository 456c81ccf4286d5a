package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"stocklock/internal/testserver"

	"golang.org/x/sync/errgroup"
)

// Testbed is a set of shops with Redis servers of their own. Several testbeds can share one MySQL
// and run side by side.
type Testbed struct {
	Shops  []*TestbedShop
	Quorum []*testserver.Redis // independent servers, for locks that need a majority
	Etcd   *testserver.Etcd    // nil without TestbedOptions.Etcd

	rig         *Rig
	replication *Proxy // between the replica and the primary

	mu      sync.Mutex // guards the rest
	primary *testserver.Redis
	replica *testserver.Redis // nil without TestbedOptions.Faults; dead between a failover and the repair
}

// TestbedShop is a shop with the proxies between it and its servers, where the testbed has them.
type TestbedShop struct {
	*Shop
	redis   *Proxy
	proxies []*Proxy // redis, those to the quorum, and that to etcd
	mysql   *Proxy   // nil without ProxyMySQL
	env     map[string]string
}

// QuorumServers is how many servers a lock has that needs several.
const QuorumServers = 5

// TestbedOptions are the settings of a testbed.
type TestbedOptions struct {
	Name  string // the shops are called NAME-1, NAME-2 and so on
	Shops int    // how many
	DSN   string // their MySQL
	// DSNOf is the MySQL of each shop, where that is not the same. It may be nil.
	DSNOf func(shop int) string
	Env   map[string]string // additional SHOP_ variables
	// EnvOf has more of them for each shop. It may be nil.
	EnvOf func(shop int) map[string]string
	// RedisURL is a Redis that is not the testbed's own, and that it cannot control. Empty starts
	// one.
	RedisURL string
	Quorum   int  // how many independent Redis servers, 0 for none
	Etcd     bool // an etcd, for the locks that are in it
	// Faults puts a proxy between each shop and each Redis, and a replica behind the primary. Shops
	// can then be cut off, and the primary can fail.
	Faults bool
	// ProxyMySQL puts a proxy between each shop and MySQL too.
	ProxyMySQL bool
	Trace      bool // the shops write traces
}

// Testbed starts Redis servers, proxies and shops. After an error, what it has started ends with
// the rig.
func (r *Rig) Testbed(ctx context.Context, o TestbedOptions) (*Testbed, error) {
	s := &Testbed{rig: r, Quorum: make([]*testserver.Redis, o.Quorum), Shops: make([]*TestbedShop, o.Shops)}
	starting, startCtx := errgroup.WithContext(ctx)
	if o.RedisURL == "" {
		starting.Go(func() error { return s.startPrimary(startCtx, o.Faults) })
	}
	for i := range s.Quorum {
		starting.Go(func() (err error) {
			s.Quorum[i], err = r.Redis(startCtx, testserver.RedisOptions{})
			return err
		})
	}
	if o.Etcd {
		starting.Go(func() (err error) {
			s.Etcd, err = r.Etcd(startCtx)
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		return nil, err
	}
	starting, startCtx = errgroup.WithContext(ctx)
	for i := range s.Shops {
		starting.Go(func() (err error) {
			of := o
			if o.DSNOf != nil {
				of.DSN = o.DSNOf(i)
			}
			if o.EnvOf != nil {
				of.Env = maps.Clone(o.Env)
				maps.Copy(of.Env, o.EnvOf(i))
			}
			s.Shops[i], err = s.startShop(startCtx, of, fmt.Sprintf("%s-%d", o.Name, i+1))
			return err
		})
	}
	return s, starting.Wait()
}

func (s *Testbed) startPrimary(ctx context.Context, withReplica bool) (err error) {
	if s.primary, err = s.rig.Redis(ctx, testserver.RedisOptions{}); err != nil || !withReplica {
		return err
	}
	if s.replication, err = s.rig.Proxy(s.primary.Addr); err != nil {
		return err
	}
	s.replica, err = s.rig.Redis(ctx, testserver.RedisOptions{ReplicaOf: &testserver.Redis{Addr: s.replication.Addr}})
	return err
}

func (s *Testbed) startShop(ctx context.Context, o TestbedOptions, name string) (*TestbedShop, error) {
	shop := &TestbedShop{env: maps.Clone(o.Env)}
	if shop.env == nil {
		shop.env = map[string]string{}
	}
	through := func(server string) (string, error) {
		if !o.Faults {
			return server, nil
		}
		proxy, err := s.rig.Proxy(server)
		if err != nil {
			return "", err
		}
		shop.proxies = append(shop.proxies, proxy)
		return proxy.Addr, nil
	}
	primary := o.RedisURL
	if s.primary != nil {
		addr, err := through(s.primary.Addr)
		if err != nil {
			return nil, err
		}
		primary = "redis://" + addr
	}
	var quorum []string
	for _, server := range s.Quorum {
		addr, err := through(server.Addr)
		if err != nil {
			return nil, err
		}
		quorum = append(quorum, "redis://"+addr)
	}
	if s.Etcd != nil {
		addr, err := through(s.Etcd.Addr)
		if err != nil {
			return nil, err
		}
		shop.env["SHOP_ETCD"] = addr
	}
	if o.Faults {
		shop.redis = shop.proxies[0]
	}
	dsn := o.DSN
	if o.ProxyMySQL {
		var err error
		if shop.mysql, dsn, err = s.rig.ProxyMySQL(o.DSN); err != nil {
			return nil, err
		}
	}
	shop.env["SHOP_MYSQL"], shop.env["SHOP_REDIS"], shop.env["SHOP_REDIS_QUORUM"] = dsn, primary, strings.Join(quorum, ",")
	if o.Trace {
		dir, err := s.rig.Folder("trace")
		if err != nil {
			return nil, err
		}
		shop.env["SHOP_TRACE"] = dir + "/trace.jsonl"
	}
	var err error
	shop.Shop, err = s.rig.Shop(ctx, ShopOptions{Name: name, Env: shop.env})
	return shop, err
}

// Trace returns the file that the shop writes its trace to, empty without one.
func (s *TestbedShop) Trace() string { return s.env["SHOP_TRACE"] }

// RestartWith restarts the shop with one SHOP_ variable set, or without it for an empty value.
func (s *TestbedShop) RestartWith(ctx context.Context, name, value string) error {
	env := slices.DeleteFunc(slices.Clone(s.Env), func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if value != "" {
		env = append(env, name+"="+value)
	}
	s.Env = env
	if err := s.Process.Stop(); err != nil {
		return err
	}
	return s.Process.Restart(ctx)
}

// CutOff silences every connection between the shop and Redis or etcd. Those to MySQL stay.
func (s *TestbedShop) CutOff() error {
	var errs []error
	for _, p := range s.proxies {
		errs = append(errs, p.Cut())
	}
	return errors.Join(errs...)
}

// Reconnect undoes CutOff.
func (s *TestbedShop) Reconnect() {
	for _, p := range s.proxies {
		p.Heal()
	}
}

// ToRedis returns the proxy between the shop and the primary, nil without one.
func (s *TestbedShop) ToRedis() *Proxy { return s.redis }

// ToMySQL returns the proxy between the shop and MySQL, nil without one.
func (s *TestbedShop) ToMySQL() *Proxy { return s.mysql }

// Redis returns the primary, which has the locks. It is nil where it was given by address.
func (s *Testbed) Redis() *testserver.Redis {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.primary
}

// Replica returns the server that takes over when the primary dies, nil without one.
func (s *Testbed) Replica() *testserver.Redis {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replica
}

// CommandsServers reports whether the testbed can cut off, kill and promote its Redis servers.
func (s *Testbed) CommandsServers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replica != nil
}

// HoldBackReplication silences the replication: later writes do not reach the replica.
func (s *Testbed) HoldBackReplication() error { return s.replication.Cut() }

// FailOver kills the primary and promotes the replica, with the writes that had reached it. It also
// kills one server of the quorum, which stays dead until the repair: Redlock wants a server that
// lost its data to stay away for a lease. Without a living replica FailOver changes nothing, and fails.
func (s *Testbed) FailOver(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.replica.Alive() {
		return errors.New("rig: no replica of Redis lives that could take over")
	}
	errs := []error{s.primary.Kill(), s.replica.Promote(ctx)}
	s.primary, s.replica = s.replica, s.primary
	for _, shop := range s.Shops {
		errs = append(errs, shop.redis.Lead(s.primary.Addr))
	}
	if len(s.Quorum) > 0 {
		errs = append(errs, s.Quorum[0].Kill())
	}
	return errors.Join(errs...)
}

// RestartRedis kills the primary and one server of the quorum, and starts them again without their
// data.
func (s *Testbed) RestartRedis(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	restarting, ctx := errgroup.WithContext(ctx)
	restarting.Go(func() error { return s.primary.Restart(ctx) })
	if len(s.Quorum) > 0 {
		restarting.Go(func() error { return s.Quorum[0].Restart(ctx) })
	}
	return restarting.Wait()
}

// Repair ends every fault. It resumes and restarts shops and servers, heals proxies, and gives the
// primary a replica again.
func (s *Testbed) Repair(ctx context.Context) error {
	repairing, ctx := errgroup.WithContext(ctx)
	for _, shop := range s.Shops {
		shop.Reconnect()
		if shop.mysql != nil {
			shop.mysql.Heal()
		}
		repairing.Go(func() error { return shop.Revive(ctx) })
	}
	for _, server := range s.Quorum {
		repairing.Go(func() error { return server.Revive(ctx) })
	}
	if s.Etcd != nil {
		repairing.Go(func() error { return s.Etcd.Revive(ctx) })
	}
	if s.CommandsServers() {
		repairing.Go(func() error {
			if err := s.revivePrimary(ctx); err != nil {
				return err
			}
			return s.RestoreReplica(ctx)
		})
	}
	return repairing.Wait()
}

// revivePrimary starts a primary that has ended: a cell can end in the middle of RestartRedis.
func (s *Testbed) revivePrimary(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.primary.Revive(ctx)
}

// RestoreReplica undoes HoldBackReplication, and gives the primary a replica again after FailOver.
func (s *Testbed) RestoreReplica(ctx context.Context) error {
	s.replication.Heal()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replica.Alive() {
		return nil
	}
	if err := errors.Join(s.replication.Lead(s.primary.Addr), s.replica.Restart(ctx)); err != nil {
		return err
	}
	if err := s.replica.Follow(ctx, s.replication.Addr); err != nil {
		return errors.Join(err, s.replica.Kill()) // so that the next call tries again
	}
	return nil
}
