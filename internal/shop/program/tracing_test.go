//go:build !lab

package program

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// TestOneTraceShowsTheWholeSale has a shop send its spans to a collector, and name them in its log.
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

	dsn := testserver.Database(t)
	t.Setenv("SHOP_MYSQL", dsn)
	t.Setenv("SHOP_REDIS", "redis://"+testserver.RedisAddr(t))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	port, err := testserver.Start(t).FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr, logged := fmt.Sprintf("127.0.0.1:%d", port), filepath.Join(t.TempDir(), "log")
	log, err := os.Create(logged)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"--addr=" + addr, "--drain-delay=0s", "--log-level=debug"}, io.Discard, log)
	}()
	const trace = "0af7651916cd43dd8448eb211c80319c"
	ask := func(method, path, body string) (status int) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Traceparent": {"00-" + trace + "-b7ad6b7169203331-01"}, "Content-Type": {"application/json"}}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	testserver.Await(t, "the shop to be ready", func() bool { return ask(http.MethodGet, "/readyz", "") == http.StatusOK })
	store := stocktest.OpenAt(t, dsn)
	item := stocktest.Item(t, store, 1)
	if got := ask(http.MethodPost, fmt.Sprintf("/api/v1/items/%d/orders", item.ID), `{"quantity":1}`); got != http.StatusCreated {
		t.Fatalf("the sale: %d", got)
	}
	for path, message := range map[string]string{"/api/v1/items/77": "request failed", "/api/v1/items": "request"} {
		testserver.Await(t, "the record of "+path, func() bool { // the probes before have filled the log's bounds
			ask(http.MethodGet, path, "")
			text, err := os.ReadFile(logged)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(text) {
				var record map[string]any
				if err := json.Unmarshal(line, &record); err != nil {
					return false // it is being written
				}
				span, _ := record["span_id"].(string)
				if record["msg"] == message && record["path"] == path && record["trace_id"] == trace && len(span) == 16 {
					return true
				}
			}
			return false
		})
	}
	end() // which sends what is still there
	if code := <-ended; code != exitOK {
		t.Fatalf("exit code %d", code)
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
