package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
	Staff    string // the URL of its staff, where SHOP_STAFF_SUBJECT_HEADER is set
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

// ShopAt returns the absolute path of a program, or why it cannot be started.
func ShopAt(path string) (string, error) {
	absolute, err := ProgramAt(path)
	if err != nil {
		return "", fmt.Errorf("the shop cannot be started: %w", err)
	}
	return absolute, nil
}

// ProgramAt returns the absolute path of a program, or why it cannot be started.
func ProgramAt(path string) (string, error) {
	absolute, err := exec.LookPath(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(absolute)
}

// ShopBinary brings bin/shop up to date, in the checkout that the working directory is in, and returns
// the path of a copy, which a later build does not change. Without a checkout, as in a container, it
// returns the program shop beside this one.
func (r *Rig) ShopBinary(ctx context.Context) (string, error) {
	if r.given != "" {
		return r.given, nil
	}
	r.buildOnce.Do(func() { r.binary, r.buildErr = r.buildShop(ctx) })
	return r.binary, r.buildErr
}

func (r *Rig) buildShop(ctx context.Context) (string, error) {
	beside, err := ShopBeside()
	if err != nil || beside != "" {
		return beside, err
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	bin, program := filepath.Join(root, "bin"), filepath.Join(r.Dir(), "shop")
	err = testserver.Alone(ctx, bin, func() error {
		shop := filepath.Join(bin, "shop")
		if err := r.Run(GoCommand(ctx, root, "build", "-o", shop, "./cmd/shop")); err != nil {
			return err
		}
		if os.Link(shop, program) == nil {
			return nil
		}
		return r.Run(exec.CommandContext(ctx, "cp", shop, program)) // to another file system
	})
	if err != nil && ctx.Err() == nil { // it can do without, whatever is wrong with the folder
		err = r.Run(GoCommand(ctx, root, "build", "-o", program, "./cmd/shop"))
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("rig: build the shop: %w", err)
	}
	return program, nil
}

// GoCommand is the go command in a checkout, with the flags by which the lab is built there. It removes what it has in the
// folder for temporary files only where it is asked to end.
func GoCommand(ctx context.Context, root string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "scripts/lab-go.sh", args...)
	cmd.Dir = root
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	return cmd
}

// Overlay writes the file for the flag -overlay of the go command into a folder. Files of the checkout, named from its
// root, are replaced or added.
func Overlay(dir, root string, files map[string]string) (overlay string, err error) {
	root, err = filepath.Abs(root)
	replace := map[string]string{}
	for file, content := range files {
		laid := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(file)))
		replace[filepath.Join(root, file)] = laid
		err = errors.Join(err, os.WriteFile(laid, []byte(content), 0o600))
	}
	list, malformed := json.Marshal(map[string]any{"Replace": replace})
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(err, malformed, os.WriteFile(overlay, list, 0o600))
}

// ShopBuilt returns the path of bin/shop as it was built last, in the checkout that the working
// directory is in. It is empty if there is none.
func ShopBuilt() string {
	root, err := ModuleRoot()
	if err != nil {
		return ""
	}
	program, err := ProgramAt(filepath.Join(root, "bin", "shop"))
	if err != nil {
		return ""
	}
	return program
}

// ShopBeside returns the program shop beside this one where there is no checkout to build it from, as
// in a container. In a checkout it returns nothing.
func ShopBeside() (string, error) {
	_, noCheckout := ModuleRoot()
	if noCheckout == nil {
		return "", nil
	}
	beside, err := programBeside()
	if err != nil {
		return "", fmt.Errorf("rig: no shop to start: %w, and no program shop beside this one", noCheckout)
	}
	return beside, nil
}

func programBeside() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	beside := filepath.Join(filepath.Dir(self), "shop")
	_, err = os.Stat(beside)
	return beside, err
}

// ModuleRoot is the folder of the checkout that the working directory is in.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && bytes.HasPrefix(mod, []byte("module stocklock\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not in a checkout of stocklock")
		}
		dir = parent
	}
}
