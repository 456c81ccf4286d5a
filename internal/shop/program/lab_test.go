//go:build lab

package program

import (
	"strings"
	"testing"
)

func TestTheLabSaysThatItSendsNoTraces(t *testing.T) {
	t.Setenv("SHOP_MYSQL", goodMySQL)
	t.Setenv("SHOP_REDIS", goodRedis)
	for endpoint, says := range map[string]int{"": 0, "http://127.0.0.1:1": 1} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
		code, _, stderr := command(t.Context(), "--addr=127.0.0.1:0", "--startup-timeout=1s")
		if code != exitFailed || strings.Count(stderr, "no trace is sent") != says {
			t.Errorf("a collector at %q: exit code %d, said %s", endpoint, code, stderr)
		}
	}
}
