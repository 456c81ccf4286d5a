package measure

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// usage has the totals of a Redis server since its start, by its own statistics.
type usage struct {
	requests float64
	bytes    float64 // in and out
	cpu      float64 // in microseconds
}

// usageOf asks a server for its usage. It counts only the commands in requests, because Redis
// counts the calls of scripts under the same names as the commands of clients.
func usageOf(ctx context.Context, server *redis.Client, requests []string) (usage, error) {
	text, err := server.Info(ctx, "stats", "cpu", "commandstats").Result()
	if err != nil {
		return usage{}, fmt.Errorf("ask Redis for its usage: %w", err)
	}
	return parseUsage(text, requests), nil
}

func parseUsage(info string, requests []string) usage {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	number := func(s string) float64 {
		n, _ := strconv.ParseFloat(s, 64)
		return n
	}
	u := usage{
		bytes: number(fields["total_net_input_bytes"]) + number(fields["total_net_output_bytes"]),
		cpu:   1e6 * (number(fields["used_cpu_user"]) + number(fields["used_cpu_sys"])),
	}
	for _, r := range requests {
		calls, _, _ := strings.Cut(strings.TrimPrefix(fields["cmdstat_"+r], "calls="), ",")
		u.requests += number(calls)
	}
	return u
}

func (u usage) since(before usage) usage {
	return usage{u.requests - before.requests, u.bytes - before.bytes, u.cpu - before.cpu}
}
