// Package shop is the HTTP service that sells. It has the routes and handlers, the answers to
// errors, the health checks, and the life of a shop from start to drain.
//
// Package strategy decides how a sale is made and protected.
//
// # Decisions
//
// A request does not end when its client closes its side, unless its sale has to wait. A client
// that has sent all may still read, and a server cannot tell it from one that has left. So the shop
// goes on with what it has begun. A sale in a queue ends, because customers who have left must
// not keep others waiting.
//
// Staff changes items on a listener of its own. A header that marks the staff would open all
// changes wherever a gateway forgets to remove it. A listener that customers cannot reach fails
// closed. It is not that of the metrics: who may scrape may not restock. A header that names who
// asks is required, because an audit without a name proves nothing.
//
// Times are those of the database, by a measured distance. The answer to a sale shows when it was
// made, and only a further round trip could ask for that. So each probe of MySQL bounds how far its
// clock is from the shop's, and the shop corrects its own by no more than it must.
//
// A correction names the item that was seen, in If-Match. A correction by a difference would be a
// restock with a sign. A correction without an ETag would undo the sales since the count. Clients
// of REST interfaces know ETag and If-Match; 412 and 428 are the answers that HTTP defines. A
// version alone does not identify what was seen. After the failover to a replica that was behind,
// versions come again. The ETag therefore covers all that is shown, and optimistic compares the
// stock, too.
//
// Request ids, the access log and the metrics of the Redis pool are the shop's own code. No
// maintained library fits:
//
//   - gin-contrib/requestid passes on any id that a client sends, of any length and with any
//     characters. The shop stores the id with the order and logs it, so it must check the id
//     first.
//   - samber/slog-gin logs the query of each request. The query of GET /api/v1/orders has the
//     idempotency key, which is a secret.
//   - redisprometheus of go-redis reports neither the waits for a connection nor the bound of the
//     pool.
//
// golang.org/x/time/rate limits the log.
package shop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Config has the parts of a shop and its settings.
type Config struct {
	Name     string            // recorded in every order; at most 64 bytes
	Strategy strategy.Strategy // how sales are protected
	Deps     strategy.Deps     // what strategies work on; closed by the caller, after the shop
	Log      *slog.Logger

	SchemaIsManaged bool // somebody else migrates the database: the shop only waits until it is done

	MaxInFlight    int64 // how many sales, and changes by customers, may be under way; more wait a moment for a place. 0 rejects all
	MaxConnections int64 // how many connections may be open on the public listener; more are closed, with 0 all but those of probes

	// ExtraTime is added to the time that a request has until its write begins. Only a lab that
	// makes sales slow needs it.
	ExtraTime time.Duration

	// Subject names the customer of a request: see [SubjectHeader]. It may verify a token instead. It returns
	// an empty name where the request names nobody. The text of its error is shown to the client, as a request
	// that cannot be read. It is called by several requests at once. Nil means that nobody is named.
	Subject func(*http.Request) (string, error)
	// Anonymous serves requests without a subject, too. They make orders that are nobody's, and which
	// everybody can read who knows the id. Where there is a Limit, it has no effect.
	Anonymous bool

	KeyTTL time.Duration // how long idempotency keys are kept; 0 for no end
	// Limit is how many units of one item a customer may have in orders that stand; 0 for any number. It needs a Subject.
	Limit int64

	// CancelWithin is for how long after an order its customer may cancel it. 0 lets only the staff cancel. It needs
	// a Subject, and a mixable strategy.
	CancelWithin time.Duration

	// Staff names who asks on the listener of the staff, as Subject does on the public one. There, a request
	// that names nobody makes no change. Changes need a mixable strategy.
	Staff func(*http.Request) (string, error)

	// Reservations are the terms of reservations. Nil offers none. They need a Subject, no Anonymous, a Limit,
	// Staff and a mixable strategy.
	Reservations *Reservations

	StartupTimeout time.Duration // how long to wait for MySQL and Redis; with 0 not at all
	DrainDelay     time.Duration // how long to serve on after readiness has ended
	DrainTimeout   time.Duration // how long sales under way may take to finish

	// Only the following have a default, for 0.
	RequestMargin time.Duration // until a request's write begins, besides the wait for the lock
	AnswerTimeout time.Duration // to write an answer, from its first byte
	PingInterval  time.Duration // from one probe of MySQL or Redis to the next
	PingTimeout   time.Duration // for the answer to a probe
	KeyInterval   time.Duration // from one look for expired keys to the next
	SweepInterval time.Duration // from one look for overdue reservations to the next; below 0 for never

	Tracing Tracing // nil for none
}

// Shop is one process of the service.
type Shop struct {
	Config
	store   *stock.Store
	seller  *strategy.Seller
	sellBy  Sell         // the seller's, around which there may be a lab
	view    View         // the store's, around which there may be a lab
	holds   stock.Holder // remembering, around which there may be a lab
	money   *slog.Logger // as configured: of money, no record is dropped
	list    func(ctx context.Context, after uint64, limit int) ([]stock.Item, error)
	show    func(stock.Order) any // what is shown of an order
	lab     Lab                   // nil in production
	locks   *locks                // what it has of Redis
	health  *health
	metrics *metrics

	sales    *slots          // for MaxInFlight requests
	changes  *slots          // for as many requests of the staff as reads
	payments *slots          // for as many again, which wait for no item unless TakeLate; nil without reservations
	reads    *slots          // for maxReads requests
	inFlight atomic.Int64    // slots that are taken
	serving  context.Context // ends when the sales under way are to end
	advised  sync.Map        // when each advice was last logged, by its text
	draining atomic.Bool     // not ready any more, still selling
}

// check returns why there can be no such shop, in the words of the program's settings.
func (c Config) check() error {
	switch {
	case !isLabel(c.Name, maxNameLength):
		return fmt.Errorf("--name (SHOP_NAME): the name %q is not fit: want 1 to %d printable ASCII characters without space", c.Name, maxNameLength)
	case c.Limit > 0 && c.Subject == nil:
		return errors.New("--limit (SHOP_LIMIT) needs --subject-header (SHOP_SUBJECT_HEADER)")
	case c.CancelWithin > 0 && c.Subject == nil:
		return errors.New("--cancel-within (SHOP_CANCEL_WITHIN) needs --subject-header (SHOP_SUBJECT_HEADER)")
	case (c.Staff != nil || c.CancelWithin > 0) && !c.Strategy.Mixable:
		mixable := slices.DeleteFunc(strategy.All(), func(s strategy.Strategy) bool { return !s.Mixable })
		return fmt.Errorf("--staff-addr (SHOP_STAFF_ADDR) and --cancel-within (SHOP_CANCEL_WITHIN): %s writes over what was restocked, or keeps its stock elsewhere: want %s",
			c.Strategy.Name, strings.Join(strategy.Names(mixable), ", "))
	}
	return cmp.Or(c.Strategy.Check(c.Deps), c.Reservations.check(c))
}

// New prepares a shop. It opens no connection before [Shop.Serve]. Its errors name the settings of the program, which are
// called as the fields of its Config.
func New(cfg Config) (*Shop, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	store := cfg.Deps.Store
	prepare := store.Migrate
	if cfg.SchemaIsManaged {
		prepare = store.Migrated
	}
	cfg.RequestMargin = cmp.Or(cfg.RequestMargin, requestMargin)
	cfg.AnswerTimeout = cmp.Or(cfg.AnswerTimeout, answerTimeout)
	cfg.PingInterval = cmp.Or(cfg.PingInterval, pingInterval)
	cfg.PingTimeout = cmp.Or(cfg.PingTimeout, pingTimeout)
	cfg.KeyInterval = cmp.Or(cfg.KeyInterval, keyInterval)
	s := &Shop{Config: cfg, store: store, money: cfg.Log, sales: newSlots(cfg.MaxInFlight), serving: context.Background()}
	s.reads, s.changes = newSlots(s.maxReads()), newSlots(s.maxReads())
	s.Log = newLog(cfg.Log, func(level slog.Level) { s.metrics.logDropped.WithLabelValues(strings.ToLower(level.String())).Inc() })
	dependencies := []*dependency{
		{name: "mysql", where: store.Addr(), prepare: func(ctx context.Context) error { return prepare(ctx, s.Log) }, there: store.Ping, ping: func(ctx context.Context) error {
			return store.CanSell(ctx, cfg.Reservations != nil)
		}},
	}
	s.locks = newLocks(&s.Deps, s.Log)
	if !cfg.Strategy.WithoutRedis {
		dependencies = append(dependencies, s.locks.dependency())
	}
	s.health = newHealth(s.Log, cfg.PingInterval, cfg.PingTimeout, dependencies...)
	s.health.commitStall = store.CommitStall
	s.metrics = newMetrics(s)
	s.Deps.Batched = s.metrics.batched
	s.seller = strategy.New(cfg.Strategy, s.Deps)
	s.sellBy, s.view, s.list, s.show = s.seller.Sell, store.Read, store.Items, showToCustomer
	s.offerReservations()
	return s, nil
}

// maxNameLength is the length of the column orders.shop.
const maxNameLength = 64

// Tracing makes spans of what a shop does.
type Tracing interface {
	// Requests returns a handler that makes every request to the API a span.
	Requests() gin.HandlerFunc
	// Sale returns a hook that makes spans of the lock of one sale, which begins now.
	Sale(ctx context.Context) sale.Hook
}

// Lab decorates a shop. A shop in production has none.
type Lab interface {
	// Requests returns a handler around the shop's own.
	Requests(shop http.Handler) http.Handler
	// Sales returns a function that sells, around the shop's own. Its errors are answered like
	// those of a sale, and those of [Malformed] as malformed.
	Sales(shop Sell) Sell
	// Views returns a function that shows an item, around the shop's own.
	Views(shop View) View
	// Holds returns what makes and ends reservations, around the shop's own.
	Holds(shop stock.Holder) stock.Holder
	// Order returns the JSON value that is shown of an order.
	Order(stock.Order) any
	// Close frees the lab's resources. No sale may begin after it.
	Close() error
}

// UseLab puts a lab around the shop. It must be called before [Shop.Serve], which closes the lab.
func (s *Shop) UseLab(l Lab) {
	s.lab, s.sellBy, s.view, s.holds, s.show = l, l.Sales(s.sellBy), l.Views(s.view), l.Holds(s.holds), l.Order
}

// Seller returns the seller of the shop's strategy.
func (s *Shop) Seller() *strategy.Seller { return s.seller }
