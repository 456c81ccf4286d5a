package shop

import (
	"fmt"

	"github.com/gin-gonic/gin"
)

func (s *Shop) engine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.ContextWithFallback = true
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false
	_ = e.SetTrustedProxies(nil) // nil cannot be wrong; nobody's X-Forwarded-For is believed
	if s.Tracing != nil {
		e.Use(s.traceRequest())
	}
	e.Use(identify, s.accessLog, s.metrics.observe, s.recoverPanic)

	e.GET("/livez", s.getLive)
	e.HEAD("/livez", s.getLive)
	e.GET("/readyz", s.getReady)
	e.HEAD("/readyz", s.getReady)

	e.GET("/openapi.yaml", getContract)
	e.GET("/docs", s.getDocs)
	e.GET("/problems/:slug", s.getProblem)

	api := e.Group("/api/v1", s.onlyWhenStarted, s.limitInFlight)
	api.GET("/items", s.getItems)
	api.GET("/items/:item", s.getItem)
	api.POST("/items/:item/orders", s.postOrder)
	api.GET("/orders", s.getOrderByKey)
	api.GET("/orders/:order", s.getOrder)

	e.NoRoute(func(c *gin.Context) {
		s.fail(c, refusal{notFound, "there is nothing at this path"})
	})
	e.NoMethod(func(c *gin.Context) {
		s.fail(c, refusal{methodNotAllowed, fmt.Sprintf("%s is not possible here: the header Allow says what is", c.Request.Method)})
	})
	return e
}

// onlyWhenStarted turns requests away before there is a schema to sell on.
func (s *Shop) onlyWhenStarted(c *gin.Context) {
	if s.draining.Load() {
		c.Header("Connection", "close") // so that the client's next request goes to another shop
	}
	if !s.health.started() {
		s.fail(c, errStarting)
	}
}

// limitInFlight sheds load before it costs memory: a request that waits for a
// lock or a connection holds on to its buffers.
func (s *Shop) limitInFlight(c *gin.Context) {
	defer s.inFlight.Add(-1)
	if s.inFlight.Add(1) > s.MaxInFlight {
		s.fail(c, errCrowded)
		return
	}
	c.Next()
}
