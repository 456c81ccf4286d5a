package labmode

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"

	"stocklock/internal/shop"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/ladder"
)

// Settings are the lab's flags of cmd/shop, in kong's form.
type Settings struct {
	Lab            bool          `env:"SHOP_LAB" group:"lab" help:"Obey the X-Lab-* headers, with which every client can choose the strategy and can stop or kill this process."`
	LabAllowRemote bool          `env:"SHOP_LAB_ALLOW_REMOTE" group:"lab" help:"In the lab, listen on an address that others can reach."`
	LabWork        time.Duration `env:"SHOP_LAB_WORK" group:"lab" default:"0s" min:"0s" max:"10s" help:"Work inside every sale, after it has read the stock."`
	LabClockSkew   time.Duration `env:"SHOP_LAB_CLOCK_SKEW" group:"lab" default:"0s" help:"How far the clock of this process is wrong."`
	LabStep        string        `env:"SHOP_LAB_STEP" group:"lab" placeholder:"HOST:PORT" help:"Hold every request of a sale to Redis or MySQL until the scheduler at this address lets it go."`
	LabMySQLRead   string        `env:"SHOP_LAB_MYSQL_READ" group:"lab" placeholder:"DSN" help:"Read from this replica of the database, outside of transactions, as gorm's dbresolver does."`
	Trace          string        `env:"SHOP_TRACE" group:"lab" placeholder:"FILE" help:"Append the points of every sale to this file."`
	RedisQuorum    []string      `env:"SHOP_REDIS_QUORUM" group:"lab" placeholder:"URL" help:"Independent Redis servers for the strategy redlock, separated by commas: three or five."`
}

// Names of settings in messages.
const (
	quorumSetting = "--redis-quorum (SHOP_REDIS_QUORUM)"
	labSetting    = "--lab (SHOP_LAB=true)"
	readSetting   = "--lab-mysql-read (SHOP_LAB_MYSQL_READ)"
	stepSetting   = "--lab-step (SHOP_LAB_STEP)"
)

// Check returns an error that names the first setting that cannot be, for a shop that listens on
// addr.
func (s Settings) Check(addr string) error {
	if !s.Lab {
		if s.LabAllowRemote || s.LabWork != 0 || s.LabClockSkew != 0 || s.LabStep != "" || s.LabMySQLRead != "" || s.Trace != "" {
			return errors.New("--lab-* (SHOP_LAB_*) and --trace (SHOP_TRACE) need " + labSetting)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() || s.LabAllowRemote {
		return nil
	}
	return fmt.Errorf("%s lets every client kill this process, and the address %s can be reached from outside: "+
		"listen on 127.0.0.1, or add --lab-allow-remote (SHOP_LAB_ALLOW_REMOTE=true)", labSetting, addr)
}

// Opened is what the settings of a shop's lab name. The caller closes it after the shop.
type Opened struct {
	settings Settings
	offered  []ladder.Rung
	recorder *Recorder
	stepper  *Stepper // nil where requests are not held
	commits  *lostCommits
	replica  *stock.Store // nil without one
	quorum   []redis.UniversalClient
}

// Open opens what the settings name, for a shop that offers these strategies. [Opened.StoreOptions],
// [Opened.Equip] and [Opened.Attach] make the shop use it.
func (s Settings) Open(shopName string, offered []ladder.Rung) (*Opened, error) {
	o := &Opened{settings: s, offered: offered, commits: &lostCommits{}}
	if err := o.openQuorum(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", quorumSetting, err), o.Close())
	}
	var err error
	if s.Trace != "" {
		if o.recorder, err = OpenRecorder(s.Trace, shopName); err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	if s.LabStep != "" {
		if o.stepper, err = OpenStepper(s.LabStep, shopName); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", stepSetting, err), o.Close())
		}
	}
	if s.LabMySQLRead != "" {
		options := []stock.Option{stock.WithExtraTime(extraTime(o.stepper))}
		if o.stepper != nil {
			options = append(options, stock.WithPool(o.stepper.OpenReplica))
		}
		if o.replica, err = stock.Open(s.LabMySQLRead, options...); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", readSetting, err), o.Close())
		}
	}
	return o, nil
}

// StoreOptions returns how the store is to be opened.
func (o *Opened) StoreOptions() []stock.Option {
	options := []stock.Option{stock.WithExtraTime(extraTime(o.stepper))}
	if o.settings.Lab {
		options = append(options, stock.WithConnector(o.commits.Connector))
	}
	if o.stepper != nil {
		options = append(options, stock.WithPool(o.stepper.OpenDB))
	}
	if o.replica != nil {
		options = append(options, stock.WithGorm(o.readFromReplica))
	}
	return options
}

// readFromReplica registers the plugin that sends each SELECT outside of a transaction to the replica.
func (o *Opened) readFromReplica(db *gorm.DB) error {
	replica := mysql.New(mysql.Config{Conn: o.replica.Pool(), SkipInitializeWithVersion: true})
	return db.Use(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{replica}}))
}

// Equip changes what strategies are built on.
func (o *Opened) Equip(deps *strategy.Deps) error {
	deps.Quorum = o.quorum
	if skew := o.settings.LabClockSkew; skew != 0 {
		deps.Now = func() time.Time { return time.Now().Add(skew) }
	}
	if o.stepper != nil {
		deps.Redis.AddHook(o.stepper.RedisHook(RedisServer))
		for i, node := range o.quorum {
			node.AddHook(o.stepper.RedisHook(fmt.Sprintf("quorum-%d", i+1)))
		}
	}
	return nil
}

func (o *Opened) openQuorum() error {
	if err := shop.CheckQuorum(o.settings.RedisQuorum); err != nil {
		return err
	}
	for _, url := range o.settings.RedisQuorum {
		node, err := shop.OpenRedis(url, shop.RedisPoolSize)
		if err != nil {
			return err
		}
		o.quorum = append(o.quorum, node)
	}
	return nil
}

// Log returns the logger as it is.
func (*Opened) Log(of *slog.Logger) *slog.Logger { return of }

// Attach makes the shop obey the lab's headers, if the settings ask for the lab.
func (o *Opened) Attach(s *shop.Shop) {
	if o.settings.Lab {
		Attach(s, Config{Strategies: o.offered, Work: o.settings.LabWork, Recorder: o.recorder, Stepper: o.stepper, commits: o.commits})
	}
}

// Close closes the recorder and the clients of the quorum.
func (o *Opened) Close() error {
	var errs []error
	if o.recorder != nil {
		errs = append(errs, o.recorder.Close())
	}
	if o.stepper != nil {
		errs = append(errs, o.stepper.Close())
	}
	if o.replica != nil {
		errs = append(errs, o.replica.Close())
	}
	for _, node := range o.quorum {
		errs = append(errs, node.Close())
	}
	return errors.Join(errs...)
}
