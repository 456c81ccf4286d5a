package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"stocklock/internal/testserver"
)

// Shop is one shop process.
type Shop struct {
	*testserver.Process
	URL      string
	Staff    string // the URL of the listener of its staff, where SHOP_STAFF_SUBJECT_HEADER is set
	Internal string // the URL of its metrics and profiles
}

var panicked = regexp.MustCompile(`(?:panic|fatal error): [^\n\\"]*`)

// Panicked is the last panic that a shop's log tells of, or the last error by which Go ended it. It is empty without one.
func Panicked(log string) string {
	all := panicked.FindAllString(log, -1)
	return strings.Join(all[max(0, len(all)-1):], "")
}

// Panic is that of this shop.
func (s *Shop) Panic() string {
	return Panicked(s.LogLine("panic: ") + "\n" + s.LogLine("fatal error: "))
}

// ShopOptions are the settings of a shop.
type ShopOptions struct {
	Name    string            // SHOP_NAME
	Env     map[string]string // more SHOP_ variables; an empty one is not set, so that the shop's default counts
	Live    bool              // do not wait until the shop is ready, only until it answers
	Program string            // empty for that of [Rig.ShopBinary]
}

// Shop starts a shop and waits until it is ready. It drains without a delay unless o.Env says
// otherwise.
func (r *Rig) Shop(ctx context.Context, o ShopOptions) (*Shop, error) {
	var err error
	if o.Program == "" {
		if o.Program, err = r.ShopBinary(ctx); err != nil {
			return nil, err
		}
	}
	dir, err := r.Folder("shop")
	if err != nil {
		return nil, err
	}
	shop := &Shop{}
	err = r.WithPort(func(port int) error {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		shop.URL = "http://" + addr
		settings := map[string]string{"SHOP_NAME": o.Name, "SHOP_ADDR": addr, "SHOP_DRAIN_DELAY": "0s"}
		others := map[string]*string{"SHOP_INTERNAL_ADDR": &shop.Internal}
		if o.Env["SHOP_STAFF_SUBJECT_HEADER"] != "" {
			others["SHOP_STAFF_ADDR"] = &shop.Staff
		}
		for setting, url := range others {
			port, err := r.FreePort()
			if err != nil {
				return err
			}
			settings[setting] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			*url = "http://" + settings[setting]
		}
		maps.Copy(settings, o.Env)
		var env []string
		for name, value := range settings {
			if value != "" {
				env = append(env, name+"="+value)
			}
		}
		probe := "/readyz"
		if o.Live {
			probe = "/livez"
		}
		shop.Process = &testserver.Process{Program: testserver.Program{
			Name: "shop " + o.Name, Args: []string{o.Program}, Env: env, Dir: dir,
			Ready: func(ctx context.Context) error { return ask(ctx, shop.URL+probe) },
		}}
		return r.Launch(ctx, shop.Process)
	})
	return shop, err
}

// Ready returns nil when the shop at url is ready.
func Ready(ctx context.Context, url string) error { return ask(ctx, url+"/readyz") }

func ask(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err := get(ctx, url)
	return err
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, answer.Status, bytes.TrimSpace(body[:min(len(body), 1<<10)]))
	}
	return body, err
}

// Metrics reads the metrics of a shop, or of another program. The function that it returns adds up the
// gauges or the counters of a name: those with a label of this value, or all.
func Metrics(ctx context.Context, url string) (sum func(name string, label ...string) float64, err error) {
	exposed, err := get(ctx, url+"/metrics")
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	metrics, err := parser.TextToMetricFamilies(bytes.NewReader(exposed))
	return func(name string, label ...string) (sum float64) {
		for _, m := range metrics[name].GetMetric() {
			if len(label) == 0 || slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == label[0] }) {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		return sum
	}, err
}
