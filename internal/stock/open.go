package stock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Store keeps items and orders in MySQL or MariaDB. It is safe for concurrent use.
type Store struct {
	db     *gorm.DB
	pool   *sql.DB // the one that db works on
	apart  *sql.DB // one connection for probes, which must not wait for the pool
	addr   string
	config *mysqldriver.Config
	extra  time.Duration // see WithExtraTime

	commits *commits
	expired *atomic.Int64 // the holds that it has ended because they were overdue
	repeats *atomic.Int64 // how often batches still look for orders under their keys first
	ahead   *atomic.Int64 // by how many nanoseconds the database's clock is ahead of the process's

	pinned *sql.Conn // what db works on, nil for the pool

	leftAt *atomic.Int64 // the second in which the store last left connections that lacked a right
}

// PoolSize is the default number of connections that a store opens at most. See [WithPoolSize]. An idle
// one is closed after idleConn.
const PoolSize = 50

// Option changes how [Open] opens a store.
type Option func(*opening)

type opening struct {
	extra time.Duration
	wrap  func(driver.Connector) driver.Connector
	pool  func(driver.Connector) *sql.DB
	size  int
	use   func(*gorm.DB) error
}

// WithPoolSize replaces [PoolSize] by another number, 1 or more. Probes and migrations have further connections of their own.
func WithPoolSize(connections int) Option {
	return func(o *opening) { o.size = connections }
}

// WithExtraTime adds to the timeout of every transaction, and to how long one may be idle. Only a lab that stops
// programs in the middle of a transaction needs it.
func WithExtraTime(extra time.Duration) Option {
	return func(o *opening) { o.extra = extra }
}

// WithConnector puts a connector around the driver's. Only a lab needs it that breaks connections.
func WithConnector(wrap func(driver.Connector) driver.Connector) Option {
	return func(o *opening) { o.wrap = wrap }
}

// WithPool replaces [sql.OpenDB] for opening the store's connections.
func WithPool(open func(driver.Connector) *sql.DB) Option {
	return func(o *opening) { o.pool = open }
}

// WithGorm passes the opened gorm to use, which can register a plugin. Only a lab needs it that reads from a
// replica.
func WithGorm(use func(*gorm.DB) error) Option {
	return func(o *opening) { o.use = use }
}

// The driver's timeouts, unless the DSN sets others. All are shorter than a production lease, so
// that the holder of a lock notices a database that hangs.
const (
	dialTimeout = 3 * time.Second
	ioTimeout   = 8 * time.Second
)

// connLifetime bounds the life of a connection, so that all of them find servers that were added.
const connLifetime = 5 * time.Minute

// idleTime is how long a session may be idle before the server ends it, and its transaction with it: wait_timeout. Else
// the rows that a host had locked when it lost power stay locked for two hours, until TCP notices. A transaction takes
// less: see [RowTimeout] and ioTimeout. The store closes its own idle connections before, after idleConn.
const (
	idleTime = 60 * time.Second
	idleConn = 45 * time.Second
)

// rowLockPatience is how many seconds a statement waits for a locked row before the server gives up
// with [ErrConflict]. It is below ioTimeout, so the server answers. The server counts anew for each
// row: a statement that locks several can outlast ioTimeout, and then fails as if MySQL hung.
const rowLockPatience = "5"

// Open prepares a store on a DSN in go-sql-driver's form, such as
// "user:password@tcp(host:3306)/stocklock". It does not connect: see [Store.Ping]. Errors never
// contain the DSN, because it has a password.
func Open(dsn string, options ...Option) (*Store, error) {
	how := opening{pool: sql.OpenDB, size: PoolSize}
	for _, option := range options {
		option(&how)
	}
	cfg, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		// The cause is left out, because it quotes the unreadable part, which may be the password.
		return nil, errors.New("stock: the MySQL DSN cannot be read: want user:password@tcp(host:3306)/database")
	}
	if cfg.DBName == "" {
		return nil, errors.New("stock: the MySQL DSN names no database: want user:password@tcp(host:3306)/database")
	}
	if hasOtherCharset(dsn, cfg) {
		return nil, errors.New("stock: the MySQL DSN has another character set than UTF-8: leave it out")
	}
	cfg.ParseTime = true
	cfg.Loc = time.UTC
	// An UPDATE that matches a row but changes nothing must count as one row, so that a fence can
	// be raised to the value it has.
	cfg.ClientFoundRows = true
	// One round trip a statement. Server-side prepared statements take two or three.
	cfg.InterpolateParams = true
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	if cfg.Params["innodb_lock_wait_timeout"] == "" {
		cfg.Params["innodb_lock_wait_timeout"] = rowLockPatience
	}
	if cfg.Params["wait_timeout"] == "" {
		cfg.Params["wait_timeout"] = strconv.Itoa(int((idleTime + how.extra).Seconds()))
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = dialTimeout
	}
	if cfg.ReadTimeout == 0 {
		cfg.ReadTimeout = ioTimeout
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = ioTimeout
	}
	cfg.Logger = driverLog{}
	connector, err := mysqldriver.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("stock: open MySQL: %w", err)
	}
	forSales := connector
	if how.wrap != nil {
		forSales = how.wrap(connector)
	}
	pool := how.pool(patientConnector{forSales, cfg.Timeout})
	pool.SetMaxOpenConns(how.size)
	pool.SetMaxIdleConns(how.size)
	pool.SetConnMaxLifetime(connLifetime)
	pool.SetConnMaxIdleTime(idleConn)
	ahead := &atomic.Int64{}
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: pool, SkipInitializeWithVersion: true}), &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard,
		NowFunc: func() time.Time {
			return time.Now().Add(time.Duration(ahead.Load())).UTC().Truncate(time.Microsecond)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("stock: open MySQL: %w", err)
	}
	if how.use != nil {
		if err := how.use(db); err != nil {
			return nil, errors.Join(fmt.Errorf("stock: open MySQL: %w", err), pool.Close())
		}
	}
	apart := sql.OpenDB(connector)
	apart.SetMaxOpenConns(1)
	apart.SetConnMaxLifetime(connLifetime)
	apart.SetConnMaxIdleTime(idleConn)
	return &Store{db: db, pool: pool, apart: apart, addr: cfg.Addr, config: cfg, extra: how.extra, commits: &commits{}, expired: &atomic.Int64{}, repeats: &atomic.Int64{}, ahead: ahead, leftAt: &atomic.Int64{}}, nil
}

// driverLog receives the lines that the driver would print to standard error.
type driverLog struct{}

func (driverLog) Print(v ...any) { slog.Debug("mysql driver", "message", fmt.Sprint(v...)) }

// Ping reports whether MySQL answers, on a connection apart from those of sales. It sets the store's
// clock to that of the database.
func (s *Store) Ping(ctx context.Context) error { return s.probe(ctx) }

// CanSell is [Store.Ping] that also reports whether a sale could be written now: the tables exist, the
// user has the rights, and the server accepts writes. It touches no row. It rolls back, so the binlog
// gets nothing. With holds, it is the same for those.
func (s *Store) CanSell(ctx context.Context, holds bool) (err error) {
	defer func() { s.leave(err) }()
	statements := []string{
		"UPDATE items SET stock = stock - 1, version = version + 1, fence = 0 WHERE FALSE",
		"INSERT INTO orders (item_id, quantity, stock_read, stock_written, strategy, shop, request_id) SELECT 0, 0, 0, 0, '', '', '' FROM DUAL WHERE FALSE",
	}
	if holds {
		statements = append(statements, holdWrites...)
	}
	return s.probe(ctx, statements...)
}

// probe sends statements in a transaction, and rolls it back. There it reads the clock, too: a proxy that splits reads
// from writes sends a plain SELECT to any replica. The isolation is that of [Store.Transact], which a server with a
// binlog of statements refuses.
func (s *Store) probe(ctx context.Context, statements ...string) (err error) {
	tx, err := s.apart.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	var now time.Time
	asked := time.Now()
	if err := tx.QueryRowContext(ctx, "SELECT UTC_TIMESTAMP(6)").Scan(&now); err != nil {
		return err
	}
	// What is known may be right: the answer does not say when the clock was read. So times do not jump.
	least, most := time.Until(now), now.Sub(asked)+time.Microsecond
	s.ahead.Store(int64(min(max(time.Duration(s.ahead.Load()), least), most)))
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// leave closes the idle connections if err belongs to their sessions. New ones find the new primary
// behind the same name or proxy, and have the rights and the password of today. A right may be missing for one route,
// which a customer can ask again and again. For rights, leave closes them at most once in a second.
func (s *Store) leave(err error) {
	if _, number := classOf(err); slices.Contains(ofSessions, number) {
		if now := time.Now().Unix(); slices.Contains(noRights, number) && s.leftAt.Swap(now) == now {
			return
		}
		for _, pool := range []*sql.DB{s.pool, s.apart} {
			size := pool.Stats().MaxOpenConnections
			pool.SetMaxIdleConns(0)
			pool.SetMaxIdleConns(size)
		}
	}
}

// Addr returns the address of the server, such as "db:3306" or the path of a socket.
func (s *Store) Addr() string { return s.addr }

// Pool returns the connections, for metrics and for SQL that is not the shop's.
func (s *Store) Pool() *sql.DB { return s.pool }

// hasOtherCharset finds a character set for which the driver's escaping is not safe, or in which names are garbled.
func hasOtherCharset(dsn string, cfg *mysqldriver.Config) bool {
	names := []string{cfg.Collation, cfg.Params["character_set_client"]}
	_, params, _ := strings.Cut(dsn[strings.LastIndexByte(dsn, '/'):], "?")
	for param := range strings.SplitSeq(params, "&") { // as the driver reads it, which keeps it to itself
		if value, is := strings.CutPrefix(param, "charset="); is {
			names = append(names, strings.Split(value, ",")...)
		}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		name = strings.ToLower(strings.Trim(name, `'"`))
		return name != "" && !strings.HasPrefix(name, "utf8")
	})
}

// Now returns the time by the database's clock, as the last [Store.Ping] knew it.
func (s *Store) Now() time.Time { return s.db.NowFunc() }

// Crowded reports whether a transaction has to wait for a connection now.
func (s *Store) Crowded() bool {
	now := s.pool.Stats()
	return now.InUse >= now.MaxOpenConnections
}

// Version returns the server's version, such as "8.4.3" or "10.11.19-MariaDB". MariaDB adds -log where it writes one.
func (s *Store) Version(ctx context.Context) (string, error) {
	var version string
	err := s.db.WithContext(ctx).Raw("SELECT VERSION()").Scan(&version).Error
	return strings.TrimSuffix(version, "-log"), err
}

// Close ends all connections.
func (s *Store) Close() error {
	return errors.Join(s.pool.Close(), s.apart.Close())
}
