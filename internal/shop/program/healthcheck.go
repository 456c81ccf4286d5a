package program

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const healthcheckTimeout = 3 * time.Second

type healthcheckCommand struct {
	Live bool `help:"Ask only whether the process answers, as an image's HEALTHCHECK does."`
}

// Run fails when the shop is not ready, or not live. It asks the internal listener if there is one.
func (h *healthcheckCommand) Run(ctx context.Context, set *settings) error {
	setting, addr := "--addr (SHOP_ADDR)", set.Addr
	if set.InternalAddr != "" {
		setting, addr = "--internal-addr (SHOP_INTERNAL_ADDR)", set.InternalAddr
	}
	host, port, err := splitAddr(setting, addr)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens on all addresses, this one included
	}
	path, what := "/readyz", "ready"
	if h.Live {
		path, what = "/livez", "live"
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+path, nil)
	if err != nil {
		return usageError{err}
	}
	client := http.Client{Transport: &http.Transport{}} // without a proxy: it asks this machine
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("not %s: %s: %s", what, response.Status, body)
	}
	return nil
}
