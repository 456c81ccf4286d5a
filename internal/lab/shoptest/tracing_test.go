package shoptest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestOneTraceShowsTheWholeSale has a shop send its spans to a collector.
func TestOneTraceShowsTheWholeSale(t *testing.T) {
	var mu sync.Mutex
	var spans []*otlp.Span
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(r.Body); err != nil {
				t.Error(err)
				return
			}
		}
		var batch collector.ExportTraceServiceRequest
		if raw, err := io.ReadAll(body); err != nil || proto.Unmarshal(raw, &batch) != nil {
			t.Errorf("%s %s cannot be read: %v", r.Method, r.URL.Path, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, of := range batch.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				spans = append(spans, scope.Spans...)
			}
		}
	}))
	defer server.Close()

	l := openShops(t, 1, "OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	const id = "0af7651916cd43dd8448eb211c80319c"
	header := http.Header{"Traceparent": {"00-" + id + "-b7ad6b7169203331-01"}}
	if got := post(t.Context(), l.shops[0], l.item(1), header, ""); got == nil || got.StatusCode != 201 {
		t.Fatalf("the sale: %+v", got)
	}
	if err := l.shops[0].Stop(); err != nil { // sends what is still there
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	seen := map[string]int{}
	for _, span := range spans {
		seen[span.Name]++
		if len(span.TraceId) != 16 || span.TraceId[0] != 0x0a || len(span.ParentSpanId) == 0 {
			t.Errorf("the span %s is not part of the client's trace", span.Name)
		}
	}
	for _, name := range []string{"POST /api/v1/items/:item/orders", "lock wait", "lock hold", "evalsha", "sql.conn.begin_tx", "sql.conn.exec"} {
		if seen[name] == 0 {
			t.Errorf("no span %q among %v", name, seen)
		}
	}
}
