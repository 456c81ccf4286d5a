package measure

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"stocklock/bench/lock"
	"stocklock/internal/lab/rig"
	"stocklock/internal/testserver"
)

// usage has the totals of the servers of a lock since their start, by their own statistics.
type usage struct {
	requests float64
	bytes    float64 // in and out
	cpu      float64 // in seconds
}

// usageOf asks the servers that a lock uses.
func (b *Bench) usageOf(ctx context.Context, l lock.Lock) (usage, error) {
	if l.Etcd {
		return usageOfEtcd(ctx, b.etcd.Addr)
	}
	var total usage
	for _, server := range b.locks[:l.Servers()] {
		u, err := usageOf(ctx, server, l.Requests)
		if err != nil {
			return usage{}, err
		}
		total = usage{total.requests + u.requests, total.bytes + u.bytes, total.cpu + u.cpu}
	}
	return total, nil
}

// usageOfEtcd reads the metrics of an etcd.
func usageOfEtcd(ctx context.Context, addr string) (usage, error) {
	total, err := rig.Metrics(ctx, "http://"+addr)
	if err != nil {
		return usage{}, fmt.Errorf("ask etcd for its usage: %w", err)
	}
	return usage{
		requests: total("grpc_server_msg_received_total"),
		bytes:    total("etcd_network_client_grpc_received_bytes_total") + total("etcd_network_client_grpc_sent_bytes_total"),
		cpu:      total("process_cpu_seconds_total"),
	}, nil
}

// usageOf asks a server for its usage.
func usageOf(ctx context.Context, server *testserver.Redis, requests []string) (usage, error) {
	info, err := server.Client.Do(ctx, "INFO", "stats", "cpu", "commandstats").Info()
	if err != nil {
		return usage{}, fmt.Errorf("ask Redis for its usage: %w", err)
	}
	return usageIn(info, requests), nil
}

// usageIn counts only the commands in requests, because Redis counts the calls of scripts under the
// same names as the commands of clients.
func usageIn(info map[string]string, requests []string) usage {
	number := func(s string) float64 {
		n, _ := strconv.ParseFloat(s, 64)
		return n
	}
	u := usage{
		bytes: number(info["total_net_input_bytes"]) + number(info["total_net_output_bytes"]),
		cpu:   number(info["used_cpu_user"]) + number(info["used_cpu_sys"]),
	}
	for _, r := range requests {
		calls, _, _ := strings.Cut(strings.TrimPrefix(info["cmdstat_"+r], "calls="), ",")
		u.requests += number(calls)
	}
	return u
}

func (u usage) since(before usage) usage {
	return usage{u.requests - before.requests, u.bytes - before.bytes, u.cpu - before.cpu}
}
