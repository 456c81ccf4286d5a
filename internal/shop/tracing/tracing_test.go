package tracing

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
)

// TestASpanNamesNoCustomer has MySQL refuse a repeated key, in a text with the key and the customer.
func TestASpanNamesNoCustomer(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	exporter := &Exporter{sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))}
	store := stocktest.Open(t, exporter.StoreOptions()...)
	item := stocktest.Item(t, store, 2)
	ctx, span := exporter.provider.Tracer("test").Start(t.Context(), "request")
	sale := stock.Sale{ItemID: item.ID, Quantity: 1, Subject: "ann-the-customer", IdempotencyKey: "key-of-ann", RequestID: "r", Shop: "shop"}
	_, first := store.Decrement(ctx, sale)
	_, second := store.Decrement(ctx, sale)
	span.End()
	if first != nil || !errors.Is(second, stock.ErrRepeated) || len(spans.Ended()) < 7 {
		t.Fatalf("%v, %v in %d spans, want a sale and a repeat", first, second, len(spans.Ended()))
	}
	for _, span := range spans.Ended() {
		facts := span.Attributes()
		for _, event := range span.Events() {
			facts = append(facts, event.Attributes...)
		}
		for _, fact := range facts {
			if text := fact.Value.String(); strings.Contains(text, sale.IdempotencyKey) || strings.Contains(text, sale.Subject) {
				t.Errorf("%s has %s: %s", span.Name(), fact.Key, text)
			}
		}
	}
}

// TestALogNamesTheSpan of a record, where there is an exporter.
func TestALogNamesTheSpan(t *testing.T) {
	var out bytes.Buffer
	exporter := &Exporter{sdktrace.NewTracerProvider()}
	ctx, span := exporter.provider.Tracer("test").Start(t.Context(), "request")
	for e, named := range map[*Exporter]bool{exporter: true, {}: false} {
		out.Reset()
		e.Log(slog.New(slog.NewTextHandler(&out, nil))).WarnContext(ctx, "a payment was not taken")
		if strings.Contains(out.String(), span.SpanContext().TraceID().String()) != named {
			t.Errorf("the log has %s", out.String())
		}
	}
}

// TestASaleThatIsTriedTwice has two waits and two holds, each of which ends before the next.
func TestASaleThatIsTriedTwice(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	hook := (&Exporter{sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))}).Sale(t.Context())
	for range 2 {
		for _, p := range []sale.Point{sale.Acquired, sale.Acquired, sale.Released, sale.Released} {
			hook(t.Context(), p, nil)
		}
	}
	var got []string
	var last time.Time
	for _, span := range spans.Ended() {
		got = append(got, span.Name())
		if span.StartTime().Before(last) {
			t.Errorf("%s begins before the one before has ended", span.Name())
		}
		last = span.EndTime()
	}
	if want := []string{"lock wait", "lock hold", "lock wait", "lock hold"}; !slices.Equal(got, want) {
		t.Errorf("spans %q, want %q", got, want)
	}
}
