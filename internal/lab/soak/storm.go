package soak

import (
	"context"
	"net"
	"net/url"
	"time"
)

// stormConnections is more than the shop lets in (300 requests) and MySQL has (1000 connections).
const stormConnections = 1200

// A connection of a storm sends one of these before it waits.
const (
	slowSender = "POST /api/v1/items/1/orders HTTP/1.1\r\nHost: shop\r\nContent-Length: 1\r\n" // and never the rest
	reader     = "GET /api/v1/items HTTP/1.1\r\nHost: shop\r\n\r\n"
)

func stormShop(ctx context.Context, s *soak, f fault) (time.Time, error) {
	at, err := url.Parse(s.testbed.Shops[f.shop].URL)
	if err != nil {
		return time.Time{}, err
	}
	return storm(ctx, at.Host, f.lasts, slowSender, reader), nil
}

// stormMySQL takes all connections that the server has: the shops can open no new ones.
func stormMySQL(ctx context.Context, s *soak, f fault) (time.Time, error) {
	return storm(ctx, s.mysql.Addr, f.lasts, ""), nil
}

func stormRedis(ctx context.Context, s *soak, f fault) (time.Time, error) {
	return storm(ctx, s.testbed.Redis().Addr, f.lasts, "PING\r\n"), nil
}

// storm opens all connections at once, sends one of the words through each, and keeps them open.
// The server may refuse some.
func storm(ctx context.Context, addr string, lasts time.Duration, words ...string) (ended time.Time) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	connections := make(chan net.Conn, stormConnections)
	for i := range stormConnections {
		go func() {
			var dialer net.Dialer
			conn, err := dialer.DialContext(ctx, "tcp", addr)
			if err != nil {
				connections <- nil
				return
			}
			_, _ = conn.Write([]byte(words[i%len(words)]))
			connections <- conn
		}()
	}
	<-ctx.Done()
	for range stormConnections {
		if conn := <-connections; conn != nil {
			_ = conn.Close()
		}
	}
	return time.Now()
}
