package tracing

import (
	"github.com/redis/go-redis/extra/redisotel/v9"

	"stocklock/internal/strategy"
)

// Equip makes every command to Redis a span.
func (e *Exporter) Equip(deps *strategy.Deps) error {
	if e.provider == nil {
		return nil
	}
	return redisotel.InstrumentTracing(deps.Redis, redisotel.WithTracerProvider(onlyChildren{e.provider}), redisotel.WithDBStatement(false))
}
