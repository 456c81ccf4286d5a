// Package browsertest opens pages in a headless Chromium, for tests. It keeps the lines of the
// console and the requests to other hosts.
package browsertest

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// Elsewhere is a name of this machine that is no loopback name: what a phone opens.
const Elsewhere = "class.test"

// programs are the names of Chromium on different systems.
var programs = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"}

// Page is a page in a headless Chromium. Its context is for chromedp.
type Page struct {
	context.Context
	t testing.TB

	mu       sync.Mutex // guards the rest
	errors   []string
	requests []string
}

// Open starts a Chromium that ends with the test, after patience at the latest. It skips a short
// test, and fails one on a machine without Chromium.
func Open(t testing.TB, patience time.Duration) *Page {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser: not run with -short")
	}
	program := ""
	for _, name := range programs {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Fatal("no Chromium here: install it with scripts/servers.sh chromium, or apt-get install chromium-headless-shell")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 900), chromedp.Flag("host-resolver-rules", "MAP "+Elsewhere+" 127.0.0.1"), chromedp.WSURLReadTimeout(time.Minute), chromedp.ModifyCmdFunc(endWithItsChildren))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancelTimeout := context.WithTimeout(ctx, patience)
	t.Cleanup(cancelTimeout)
	p := &Page{Context: ctx, t: t}
	chromedp.ListenTarget(ctx, p.note)
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable()); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return p
}

// Beside opens another page of the same Chromium, without the cookies and the storage of the first: another
// person's.
func (p *Page) Beside() *Page {
	p.t.Helper()
	var window target.ID
	p.Run(chromedp.ActionFunc(func(ctx context.Context) error {
		on := cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		person, err := target.CreateBrowserContext().Do(on)
		if err == nil {
			window, err = target.CreateTarget("about:blank").WithBrowserContextID(person).WithNewWindow(true).Do(on)
		}
		return err
	}))
	ctx, cancel := chromedp.NewContext(p, chromedp.WithTargetID(window))
	p.t.Cleanup(cancel)
	other := &Page{Context: ctx, t: p.t}
	chromedp.ListenTarget(ctx, other.note)
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable()); err != nil {
		p.t.Fatal(err)
	}
	return other
}

// endWithItsChildren ends the processes that the program started together with it: on some
// systems it is a script around the real program.
func endWithItsChildren(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

func (p *Page) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "file:") && !strings.HasPrefix(e.Request.URL, "data:") {
			p.requests = append(p.requests, e.Request.URL)
		}
	case *log.EventEntryAdded:
		p.errors = append(p.errors, e.Entry.Text+" "+e.Entry.URL)
	case *runtime.EventExceptionThrown:
		p.errors = append(p.errors, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		p.errors = append(p.errors, fmt.Sprintf("console.%s", e.Type))
	}
}

// Run does things in the page, and fails the test when one of them cannot be done.
func (p *Page) Run(actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// Until waits a minute for an expression to become true.
func (p *Page) Until(expression string) {
	p.t.Helper()
	if err := chromedp.Run(p, chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(time.Minute))); err != nil {
		var shows string
		_ = chromedp.Run(p, chromedp.Evaluate(`document.body.innerText.slice(0, 600)`, &shows))
		p.t.Fatalf("%s: %v; the page shows %q; the console %q", expression, err, shows, p.errors)
	}
}

// Clean fails the test where the console has said something, or a request has left for another
// address than those that begin with home.
func (p *Page) Clean(home string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.errors) > 0 {
		p.t.Errorf("the console says %q, want nothing", p.errors)
	}
	for _, url := range p.requests {
		if home == "" || !strings.HasPrefix(url, home) {
			p.t.Errorf("a request left for %s", url)
		}
	}
}

// Says evaluates an expression in the page.
func Says[T any](p *Page, expression string) (value T) {
	p.t.Helper()
	p.Run(chromedp.Evaluate(expression, &value))
	return value
}

// Unpacked is a saved page with what is compressed in it as text.
func Unpacked(t testing.TB, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return packed.ReplaceAllStringFunc(string(page), func(block string) string {
		zipped := base64.NewDecoder(base64.StdEncoding, strings.NewReader(packed.FindStringSubmatch(block)[1]))
		text, err := gzip.NewReader(zipped)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(all)
	})
}

var packed = regexp.MustCompile(`<script type="application/gzip"[^>]*>([^<]*)<`)
