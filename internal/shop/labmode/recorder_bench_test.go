package labmode

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"stocklock/internal/sale"
)

// BenchmarkSale records the seven points of a sale.
func BenchmarkSale(b *testing.B) {
	recorder, err := OpenRecorder(filepath.Join(b.TempDir(), "trace.jsonl"), "shop-1")
	if err != nil {
		b.Fatal(err)
	}
	defer recorder.Close()
	b.ReportAllocs()
	for b.Loop() {
		ctx := sale.WithHook(context.Background(), recorder.Sale("123-4567", 123, "fenced", "fenced-contention-1-150405.000000"))
		for _, p := range sale.Points {
			sale.At(ctx, p, slog.Int64("token", 1<<61))
		}
	}
}
