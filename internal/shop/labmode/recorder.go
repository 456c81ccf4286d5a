package labmode

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"stocklock/internal/sale"
)

// Recorder appends events to a file, one JSON line each. A line is one write to
// a file opened for appending, so that it is complete however the process ends,
// and several processes may share the file. It is safe for concurrent use.
type Recorder struct {
	file   *os.File
	lines  slog.Handler
	broken sync.Once // the first failed write is reported, the others are like it
}

// OpenRecorder appends to the file at path, created when missing, in the name
// of a shop.
func OpenRecorder(path, shop string) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	lines := slog.NewJSONHandler(file, &slog.HandlerOptions{ReplaceAttr: asEvent})
	return &Recorder{file: file, lines: lines.WithAttrs([]slog.Attr{slog.String("shop", shop)})}, nil
}

// asEvent turns the fields of a log line into those of an [Event].
func asEvent(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey:
		return slog.Int64("t", a.Value.Time().UnixNano())
	case slog.LevelKey:
		return slog.Attr{}
	case slog.MessageKey:
		a.Key = "point"
	}
	return a
}

// Sale returns the hook that records the points of one sale.
func (r *Recorder) Sale(request string, item uint64, strategy, run string) sale.Hook {
	lines := r.lines.WithAttrs([]slog.Attr{
		slog.String("request", request), slog.Uint64("item", item),
		slog.String("strategy", strategy), slog.String("run", run),
	})
	return func(ctx context.Context, p sale.Point, facts []slog.Attr) {
		event := slog.NewRecord(time.Now(), slog.LevelInfo, string(p), 0)
		event.AddAttrs(facts...)
		if err := lines.Handle(ctx, event); err != nil {
			r.broken.Do(func() { slog.Error("the trace cannot be written", "error", err) })
		}
	}
}

// Close closes the file. No sale may be under way.
func (r *Recorder) Close() error { return r.file.Close() }
