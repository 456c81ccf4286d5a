package shop

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"
)

// read has the methods of every resource that can be read. The server leaves out the body for HEAD.
var read = []string{http.MethodGet, http.MethodHead}

const (
	apiPrefix    = "/api/v1"
	ordersOfItem = "/items/:item/orders"
)

// engine serves customers.
func (s *Shop) engine() *gin.Engine { return s.customerRoutes(publicDocs) }

func (s *Shop) customerRoutes(docs documentation) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.ContextWithFallback = true
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	e.UseRawPath = true          // an encoded slash is no separator
	_ = e.SetTrustedProxies(nil) // nil cannot be wrong; nobody's X-Forwarded-For is believed
	if s.Tracing != nil {
		e.Use(s.traceRequest())
	}
	e.Use(boundAnswer, identify, s.accessLog, s.metrics.observe, s.recoverPanic)

	e.Match(read, "/livez", s.getLive)
	e.Match(read, "/readyz", s.getReady)

	e.Match(read, "/openapi.yaml", s.answerWith(docs.contract, "application/yaml"))
	e.Match(read, "/docs", s.answerWith(docs.page, "text/html; charset=utf-8"))
	e.Match(read, "/problems/:slug", s.getProblem)

	api := e.Group(apiPrefix, s.onlyWhenStarted)
	api.Match(read, "/items", s.getItems)
	api.Match(read, "/items/:item", s.getItem)
	api.Match(read, "/orders", s.getOrderByKey)
	api.Match(read, "/orders/:order", s.getOrder)
	api.POST(ordersOfItem, s.postOrder)

	e.NoRoute(func(c *gin.Context) {
		s.fail(c, refusal{notFound, "there is nothing at this path"})
	})
	e.NoMethod(func(c *gin.Context) {
		s.fail(c, refusal{methodNotAllowed, fmt.Sprintf("%s is not possible here: the header Allow says what is", c.Request.Method)})
	})
	return e
}

// staffEngine serves the routes of customers, and the changes of items.
func (s *Shop) staffEngine() *gin.Engine {
	e := s.customerRoutes(staffDocs)
	staff := e.Group(apiPrefix, s.onlyWhenStarted, s.notWhileDraining)
	staff.POST("/items", s.change(s.readNewItem))
	staff.PATCH("/items/:item", s.change(s.readRename))
	staff.POST("/items/:item/restocks", s.change(s.readRestock))
	staff.PUT("/items/:item/stock", s.change(s.readCorrection))
	staff.POST("/orders/:order/cancellation", s.change(s.readCancellation))
	return e
}

// notWhileDraining refuses changes before the end, because the internal listener has no drain.
func (s *Shop) notWhileDraining(c *gin.Context) {
	if s.draining.Load() {
		s.fail(c, errDraining)
	}
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
	if _, err := url.ParseQuery(c.Request.URL.RawQuery); err != nil {
		s.fail(c, refusal{malformed, "the query cannot be read: it has a percent sign without two hexadecimal digits, or a semicolon"})
	}
}
