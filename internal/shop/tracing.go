package shop

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"

	"stocklock/internal/sale"
)

// traceRequest makes every request to the API a span that continues the client's trace.
func (s *Shop) traceRequest() gin.HandlerFunc {
	return otelgin.Middleware("stocklock-shop",
		otelgin.WithTracerProvider(s.Tracing),
		otelgin.WithPropagators(propagation.TraceContext{}),
		otelgin.WithGinFilter(func(c *gin.Context) bool { return strings.HasPrefix(c.FullPath(), "/api/") }),
	)
}

// traceLock returns a hook that makes two spans for the lock of one sale: one of the wait, which
// begins now, and one of the hold. Of the locks of a basket, the spans are those of [metrics.sale].
func (s *Shop) traceLock(ctx context.Context) sale.Hook {
	tracer := s.Tracing.Tracer("stocklock/internal/shop")
	asked := time.Now()
	var hold oteltrace.Span
	locks := 0
	return func(_ context.Context, p sale.Point, facts []slog.Attr) {
		switch p {
		case sale.Acquired:
			if locks++; hold != nil {
				return
			}
			_, wait := tracer.Start(ctx, "lock wait", oteltrace.WithTimestamp(asked))
			wait.End()
			_, hold = tracer.Start(ctx, "lock hold")
			for _, fact := range facts {
				hold.SetAttributes(attribute.String("lock."+fact.Key, fact.Value.String()))
			}
		case sale.Released:
			if locks--; locks == 0 {
				hold.End()
			}
		}
	}
}
