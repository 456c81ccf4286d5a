package shop

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"net/url"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"stocklock/internal/stock"
)

// read has the methods of every resource that can be read. The server leaves out the body for HEAD.
var read = []string{http.MethodGet, http.MethodHead}

const (
	apiPrefix    = "/api/v1"
	oneItem      = "/items/:item"
	ordersOfItem = oneItem + "/orders"

	withdrawalOfItem    = oneItem + "/withdrawal"
	cancellationOfOrder = "/orders/:order/cancellation"
	// OrdersOfItems is the path to which orders of several items are posted.
	OrdersOfItems = apiPrefix + "/orders"
)

// ItemPath returns the path of an item.
func ItemPath(item uint64) string { return pathOf(oneItem, item) }

// OrdersPath returns the path to which the orders of an item are posted.
func OrdersPath(item uint64) string { return pathOf(ordersOfItem, item) }

func pathOf(route string, item uint64) string {
	return apiPrefix + strings.Replace(route, ":item", strconv.FormatUint(item, 10), 1)
}

// engine serves customers.
func (s *Shop) engine() *gin.Engine {
	e := s.customerRoutes(publicDocs)
	if s.CancelWithin > 0 {
		e.POST(apiPrefix+cancellationOfOrder, s.onlyWhenStarted, s.change(s.readOwnCancellation))
	}
	return e
}

func (s *Shop) customerRoutes(docs documentation, middleware ...gin.HandlerFunc) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.ContextWithFallback = true
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	e.UseRawPath = true          // an encoded slash is no separator
	_ = e.SetTrustedProxies(nil) // nil cannot be wrong; nobody's X-Forwarded-For is believed
	if s.Tracing != nil {
		e.Use(s.Tracing.Requests())
	}
	e.Use(middleware...)
	e.Use(s.boundAnswer, identify, s.accessLog, s.metrics.observe, s.recoverPanic, s.keepForProbes)

	e.Match(read, "/livez", s.getLive)
	e.Match(read, "/readyz", s.getReady)

	e.Match(read, "/openapi.yaml", s.answerWith(docs.contract, "application/yaml"))
	e.Match(read, "/docs", s.answerWith(docs.page, "text/html; charset=utf-8"))
	e.Match(read, "/problems/:slug", s.getProblem)

	api := e.Group(apiPrefix, s.onlyWhenStarted)
	api.Match(read, "/items", s.handle(s.getItems))
	api.Match(read, oneItem, s.handle(s.getItem))
	api.Match(read, "/orders", s.handle(s.getOrders))
	api.Match(read, "/orders/:order", s.handle(s.getOrder))
	api.POST("/orders", s.order(s.readBasket))
	api.POST(ordersOfItem, s.order(s.readSale))
	s.reservationRoutes(api)

	e.NoRoute(func(c *gin.Context) {
		s.fail(c, refusal{notFound, "there is nothing at this path"})
	})
	e.NoMethod(func(c *gin.Context) {
		s.fail(c, refusal{methodNotAllowed, fmt.Sprintf("%s is not possible here: the header Allow says what is", c.Request.Method)})
	})
	return e
}

// handle makes a handler of one that returns an error, which is answered with its problem.
func (s *Shop) handle(handler func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := handler(c); err != nil {
			s.fail(c, err)
		}
	}
}

// staffEngine serves the routes of customers, and the changes of items.
func (s *Shop) staffEngine() *gin.Engine {
	e := s.customerRoutes(staffDocs, func(c *gin.Context) { c.Set(forStaff, true) })
	staff := e.Group(apiPrefix, s.onlyWhenStarted)
	staff.POST("/items", s.change(s.readNewItem))
	staff.PATCH(oneItem, s.change(s.readRename))
	staff.POST("/items/:item/restocks", s.change(s.readRestock))
	staff.PUT("/items/:item/stock", s.change(s.readCorrection))
	staff.POST(withdrawalOfItem, s.change(s.readOffer(stock.Withdrawn)))
	staff.DELETE(withdrawalOfItem, s.change(s.readOffer(stock.Offered)))
	staff.POST(cancellationOfOrder, s.change(s.readCancellation))
	staff.POST("/orders/:order/lines/:item/cancellation", s.change(s.readLineCancellation))
	s.paymentRoutes(staff)
	return e
}

// onlyWhenStarted refuses requests until there is a schema.
func (s *Shop) onlyWhenStarted(c *gin.Context) {
	if s.draining.Load() {
		c.Header("Connection", "close") // so that the client's next request goes to another shop
	}
	if !s.health.started() {
		s.fail(c, errStarting)
		return
	}
	if query := c.Request.URL.RawQuery; query == "" {
		return
	} else if _, err := url.ParseQuery(query); err != nil {
		s.fail(c, refusal{malformed, "the query cannot be read: it has a percent sign without two hexadecimal digits, or a semicolon"})
	}
}

// internalRoutes has the routes for operators. It has the probes, too, because the other listeners
// bound their connections. It does not show the command line, because flags may hold passwords.
func (s *Shop) internalRoutes() http.Handler {
	mux := http.NewServeMux()
	probes := gin.New()
	probes.Use(identify)
	probes.Match(read, "/livez", s.getLive)
	probes.Match(read, "/readyz", s.getReady)
	mux.Handle("/livez", probes)
	mux.Handle("/readyz", probes)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelError)}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
