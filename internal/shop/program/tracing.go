package program

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/extra/redisotel/v9"
	goredis "github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"stocklock/internal/stock"
)

// tracing sends spans to an OpenTelemetry collector. It is off, and its provider
// nil, unless the environment names one in OpenTelemetry's own variables.
type tracing struct {
	provider trace.TracerProvider
	shutdown func(context.Context) error
}

const tracingFlushTimeout = 3 * time.Second

func startTracing(ctx context.Context) (*tracing, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return &tracing{}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, usage("OpenTelemetry: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "stocklock-shop")),
		resource.WithFromEnv(), resource.WithTelemetrySDK()) // OTEL_SERVICE_NAME wins over ours
	if err != nil {
		return nil, usage("OpenTelemetry: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &tracing{provider, provider.Shutdown}, nil
}

// Close sends what is still here, within a bound.
func (t *tracing) Close() error {
	if t.shutdown == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), tracingFlushTimeout)
	defer cancel()
	if err := t.shutdown(ctx); err != nil {
		return fmt.Errorf("OpenTelemetry: the last spans were not sent: %w", err)
	}
	return nil
}

func (t *tracing) store() []stock.Option {
	if t.provider == nil {
		return nil
	}
	return []stock.Option{stock.WithTracing(onlyChildren{t.provider})}
}

func (t *tracing) redis(client goredis.UniversalClient) error {
	if t.provider == nil {
		return nil
	}
	return redisotel.InstrumentTracing(client, redisotel.WithTracerProvider(onlyChildren{t.provider}), redisotel.WithDBStatement(false))
}

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
