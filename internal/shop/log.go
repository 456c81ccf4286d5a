package shop

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// These bounds hold for records with one level and one message: so many at once, and then so many a
// second. A dead server does not fill the disk with a line for each request. Rare errors and other
// messages are still written during a flood of warnings.
const (
	logBurst = 20
	logRate  = 5
)

// shopLog is a handler that applies these bounds. The first record after dropped ones has their number
// in the field dropped.
type shopLog struct {
	slog.Handler
	kinds   *sync.Map // *logKind by logKey: messages are constants, so there are few
	dropped func(slog.Level)
}

type logKey struct {
	level   slog.Level
	message string
}

type logKind struct {
	limit   *rate.Limiter
	dropped atomic.Int64 // since the last that was written
}

// newLog calls dropped with the level of each record that it drops.
func newLog(log *slog.Logger, dropped func(slog.Level)) *slog.Logger {
	return slog.New(shopLog{log.Handler(), &sync.Map{}, dropped})
}

func (l shopLog) Handle(ctx context.Context, r slog.Record) error {
	key := logKey{r.Level, r.Message}
	known, ok := l.kinds.Load(key)
	if !ok {
		known, _ = l.kinds.LoadOrStore(key, &logKind{limit: rate.NewLimiter(logRate, logBurst)})
	}
	kind := known.(*logKind)
	if !kind.limit.AllowN(time.Now(), 1) {
		kind.dropped.Add(1)
		l.dropped(r.Level)
		return nil
	}
	r = r.Clone()
	if n := kind.dropped.Swap(0); n > 0 {
		r.AddAttrs(slog.Int64("dropped", n))
	}
	return l.Handler.Handle(ctx, r)
}

func (l shopLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.Handler = l.Handler.WithAttrs(attrs)
	return l
}

func (l shopLog) WithGroup(name string) slog.Handler {
	l.Handler = l.Handler.WithGroup(name)
	return l
}
