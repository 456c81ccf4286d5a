package shop

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
)

// RequestIDHeader names the request in the answer, the order and the log.
const RequestIDHeader = "X-Request-Id"

const (
	maxRequestIDLength = 64 // what orders.request_id can hold
	requestIDKey       = "request id"
)

// identify gives the request the client's id, or a new one if the client sent no usable id. The
// answer has the id, too.
func identify(c *gin.Context) {
	id := c.GetHeader(RequestIDHeader)
	if !isLabel(id, maxRequestIDLength) {
		id = rand.Text()
	}
	c.Set(requestIDKey, id)
	c.Header(RequestIDHeader, id)
}

func requestID(c *gin.Context) string { return c.GetString(requestIDKey) }

// isLabel says whether s is 1 to most printable ASCII characters without space.
func isLabel(s string, most int) bool {
	return s != "" && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// accessLog notes every request, at debug level.
func (s *Shop) accessLog(c *gin.Context) {
	ctx := c.Request.Context()
	if !s.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	began := time.Now()
	c.Next()
	s.Log.DebugContext(ctx, "request", "method", c.Request.Method, "path", c.Request.URL.Path,
		"status", c.Writer.Status(), "duration", time.Since(began), "request", requestID(c), "remote", c.ClientIP())
}

// recoverPanic answers a request whose handler panicked, and lets the shop go on.
func (s *Shop) recoverPanic(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		s.fail(c, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}()
	c.Next()
}
