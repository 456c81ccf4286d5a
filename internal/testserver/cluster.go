package testserver

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// RedisCluster is the masters of one Redis Cluster, without replicas.
type RedisCluster []*Redis

// RedisCluster starts so many masters, shares the slots out among them, and waits until all agree.
func (g *Group) RedisCluster(ctx context.Context, masters int) (RedisCluster, error) {
	c := make(RedisCluster, masters)
	starting, startCtx := errgroup.WithContext(ctx)
	for i := range c {
		starting.Go(func() (err error) {
			c[i], err = g.Redis(startCtx, RedisOptions{Cluster: true})
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(c[0].Addr)
	const slots = 16384
	for i, node := range c {
		err := node.Client.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1).Err
		if err == nil && i > 0 {
			err = node.Client.Do(ctx, "CLUSTER", "MEET", host, port, c[0].bus).Err
		}
		if err != nil {
			return nil, fmt.Errorf("testserver: make a cluster of %s: %w", node.Name, err)
		}
	}
	for _, node := range c {
		err := node.await(ctx, fmt.Sprintf("in a cluster of %d", masters), func() (bool, error) {
			info, err := node.Client.Do(ctx, "CLUSTER", "INFO").Info()
			return info["cluster_state"] == "ok" && info["cluster_size"] == strconv.Itoa(masters), err
		})
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// URL is the address in the form that the shop takes.
func (c RedisCluster) URL() string {
	url := c[0].URL() + "?cluster=true"
	for _, node := range c[1:] {
		url += "&addr=" + node.Addr
	}
	return url
}
