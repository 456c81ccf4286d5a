// Package tracing makes spans of requests, sales, SQL statements and Redis commands, and sends them
// to an OpenTelemetry collector. Only the production shop has it: the exporter brings gRPC, which takes
// long to compile.
package tracing

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/XSAM/otelsql"
	"github.com/gin-gonic/gin"
	"github.com/go-sql-driver/mysql"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"stocklock/internal/sale"
	"stocklock/internal/shop"
	"stocklock/internal/stock"
)

const (
	service      = "stocklock-shop"
	flushTimeout = 3 * time.Second
)

// Exporter sends spans. It implements [shop.Tracing]. The zero Exporter makes none.
type Exporter struct{ provider *sdktrace.TracerProvider }

// Open returns an exporter that OpenTelemetry's own environment variables configure. The caller closes
// it after the shop.
func Open(ctx context.Context) (*Exporter, error) {
	client, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service)),
		resource.WithFromEnv(), resource.WithTelemetrySDK()) // OTEL_SERVICE_NAME wins over ours
	if err != nil {
		return nil, fmt.Errorf("OpenTelemetry: %w", err)
	}
	return &Exporter{sdktrace.NewTracerProvider(sdktrace.WithBatcher(client), sdktrace.WithResource(about))}, nil
}

// Close sends what is still here, within a bound.
func (e *Exporter) Close() error {
	if e.provider == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("OpenTelemetry: the last spans were not sent: %w", err)
	}
	return nil
}

// StoreOptions returns how the store is to be opened: every statement is a span.
func (e *Exporter) StoreOptions() []stock.Option {
	if e.provider == nil {
		return nil
	}
	return []stock.Option{stock.WithPool(func(c driver.Connector) *sql.DB {
		return otelsql.OpenDB(c,
			otelsql.WithTracerProvider(onlyChildren{e.provider}),
			otelsql.WithAttributes(attribute.String("db.system.name", "mysql")),
			// The text has question marks in place of the customers' values. That of an error of MySQL has some of them.
			otelsql.WithSpanOptions(otelsql.SpanOptions{OmitConnResetSession: true, OmitRows: true, OmitConnectorConnect: true,
				RecordError: func(err error) bool { _, has := errors.AsType[*mysql.MySQLError](err); return !has }}))
	})}
}

// Log returns a logger that names the spans of its records.
func (e *Exporter) Log(of *slog.Logger) *slog.Logger {
	if e.provider == nil {
		return of
	}
	return slog.New(log{of.Handler()})
}

// Attach makes spans of the shop's requests and sales.
func (e *Exporter) Attach(s *shop.Shop) {
	if e.provider != nil {
		s.Tracing = e
	}
}

// Requests makes every request to the API a span that continues the client's trace.
func (e *Exporter) Requests() gin.HandlerFunc {
	return otelgin.Middleware(service,
		otelgin.WithTracerProvider(e.provider),
		otelgin.WithPropagators(propagation.TraceContext{}),
		otelgin.WithGinFilter(func(c *gin.Context) bool { return strings.HasPrefix(c.FullPath(), "/api/") }),
	)
}

// Sale returns a hook that makes two spans for the lock of one sale: one of the wait, which begins
// now, and one of the hold. A basket has several locks: the wait ends with the first, and the hold
// with the last.
func (e *Exporter) Sale(ctx context.Context) sale.Hook {
	tracer := e.provider.Tracer("stocklock/internal/shop")
	asked := time.Now()
	var hold trace.Span
	locks := 0
	return func(_ context.Context, p sale.Point, facts []slog.Attr) {
		switch p {
		case sale.Acquired:
			if locks++; locks > 1 {
				return
			}
			_, wait := tracer.Start(ctx, "lock wait", trace.WithTimestamp(asked))
			wait.End()
			_, hold = tracer.Start(ctx, "lock hold")
			for _, fact := range facts {
				hold.SetAttributes(attribute.String("lock."+fact.Key, fact.Value.String()))
			}
		case sale.Released:
			if locks--; locks == 0 {
				hold.End()
				asked = time.Now() // of the second try
			}
		}
	}
}

// log adds the trace and the span of the request to each record.
type log struct{ slog.Handler }

func (l log) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return l.Handler.Handle(ctx, r)
}

func (l log) WithAttrs(attrs []slog.Attr) slog.Handler { return log{l.Handler.WithAttrs(attrs)} }

func (l log) WithGroup(name string) slog.Handler { return log{l.Handler.WithGroup(name)} }

// onlyChildren makes spans of what is done for a request, and none of the pings and
// renewals in the background.
type onlyChildren struct{ trace.TracerProvider }

func (p onlyChildren) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return childTracer{p.TracerProvider.Tracer(name, options...)}
}

type childTracer struct{ trace.Tracer }

func (t childTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, noop.Span{}
	}
	return t.Tracer.Start(ctx, name, options...)
}
