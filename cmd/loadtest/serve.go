package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/live"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/service"
	"stocklock/internal/lab/trial"
)

type serveCommand struct {
	Words     []string `arg:"" optional:"" name:"word" help:"Run these cells first: words as of loadtest run, such as telling."`
	Addr      string   `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Where the page listens. Without it 127.0.0.1:8080. Port 0 takes a free one."`
	URL       []string `env:"LAB_URL" placeholder:"URL" help:"An address at which browsers find the page besides --addr, once for each: a published port, or a proxy. The first is printed."`
	Classroom string   `env:"LAB_CLASSROOM" placeholder:"URL" help:"Where phones of a class vote, such as http://192.168.1.20:8080. They get that one page, by a QR code, and nothing else. It does not change where the page listens: see --addr."`
	Keep      string   `default:"out/runs" placeholder:"DIR" help:"Keep the last 50 runs of cells here, of 200 MB at most, and show them when the page starts again. Without it out/runs; empty for none. What visitors predicted is not kept."`
	Record    string   `placeholder:"DIR" help:"Keep what is seen of each cell here, a file of JSON lines for each run."`
	Demo      string   `placeholder:"DIR" help:"Run the cells of loadtest demo first. Then print their table, and write report.html and result.json here."`
	Tried     []string `placeholder:"FILE" help:"Also show this result of loadtest try --out, once for each."`
	Shops     int      `default:"${shops}" min:"1" max:"16" help:"How many shop processes sell at once."`
	programs  `embed:""`
}

// Help is shown under the flags.
func (*serveCommand) Help() string {
	return `Serves a page on which a class predicts, runs, watches and steps through cells, on servers and shops of its own.
Everyone who can open it may watch. The link that is printed has the token that starts something: a new one each time, or
that of LAB_TOKEN, of 16 letters, digits or ._~+/=- at least.

Examples:

    loadtest serve
    loadtest serve --demo out                                    # what make demo runs is shown first
    loadtest serve telling none:pause --record out/records
    loadtest serve --tried out/tried.json                        # what loadtest try found is shown, too
    loadtest serve --addr 0.0.0.0:8080 --url https://lab.example.com           # behind a proxy with TLS
    loadtest serve --addr 0.0.0.0:8080 --classroom http://192.168.1.20:8080    # this machine drives, phones vote
`
}

func (c *serveCommand) Run(ctx context.Context, s streams) error {
	var hosts []string
	for _, address := range c.URL {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usage("--url %q: want http://host:port or https://host", address)
		}
		hosts = append(hosts, u.Hostname())
	}
	shop, server, err := askShop(ctx, c.shopSettings, s, func(shop *catalog.Catalog) (*live.Server, error) { return c.server(shop, hosts, s) })
	if err != nil {
		return err
	}
	defer shop.Close()
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return usage("--addr: %w: name another one, such as 127.0.0.1:9080", err)
	}
	fmt.Fprintln(s.err, "The page is at this address. The part behind # starts cells: keep it from those who only watch. Ctrl-C ends everything.")
	if class, err := url.Parse(c.Classroom); err == nil && c.Classroom != "" && unreached(listener.Addr(), class.Hostname()) {
		fmt.Fprintf(s.err, "The page listens on %s: phones reach it only by a proxy or a published port, see --addr.\n", listener.Addr())
	}
	page := pageURL(listener.Addr())
	if len(c.URL) > 0 {
		page = strings.TrimRight(c.URL[0], "/")
	}
	fmt.Fprintf(s.out, "%s/#token=%s\n", page, server.Token())
	return server.Serve(ctx, listener)
}

// server makes the page of a shop.
func (c *serveCommand) server(shop *catalog.Catalog, hosts []string, s streams) (_ *live.Server, err error) {
	again := func(cell trial.Result) string { return again(cell, shop.Given, string(c.RedisServer)) }
	o := live.Options{Shop: shop, Program: program(), Again: again, Hosts: hosts, Token: os.Getenv("LAB_TOKEN"), Keep: c.Keep, Record: c.Record,
		Plan: matrix.Plan{Shops: c.Shops, RedisServer: string(c.RedisServer)}}
	for _, path := range c.Tried {
		tried, err := report.ReadTried(path)
		if err != nil {
			return nil, usage("--tried: %w", err)
		}
		o.Tried = append(o.Tried, tried)
	}
	if c.Classroom != "" {
		if o.Classroom, err = live.CheckClassroom(c.Classroom); err != nil {
			return nil, usage("--classroom: %w", err)
		}
	}
	switch {
	case c.Demo != "" && len(c.Words) > 0:
		return nil, usage("--demo runs cells of its own first: want no others")
	case c.Demo != "":
		if o, err = c.withDemo(o, s); err != nil {
			return nil, err
		}
	default:
		if o.First, err = cells.Pairs(c.Words, shop); err != nil {
			return nil, usage("%w", err)
		}
	}
	server, err := live.New(o)
	if err != nil {
		return nil, usage("%w", err)
	}
	return server, nil
}

// withDemo has a server run the demo's cells first, and report on them as the demo does.
func (c *serveCommand) withDemo(o live.Options, s streams) (live.Options, error) {
	kept, err := demoFiles(c.Demo)
	if err != nil {
		return o, err
	}
	comparison, telling, err := demoPlans(1, c.programs, o.Shop)
	if err != nil {
		return o, err
	}
	o.First = slices.Concat(comparison.Pairs, telling.Pairs)
	o.FirstDone = func(results []trial.Result, where report.Environment) {
		where.Command = commandLine(s.args)
		if len(results) == 0 {
			fmt.Fprintln(s.err, "No cell of the demo has ended: there is no table, and no file.")
			return
		}
		r := report.Report{Version: report.Version, Environment: where, Strategies: telling.Strategies, Interrupted: len(results) < len(o.First)}
		faults := r
		for _, c := range results {
			if c.Comparable() && slices.ContainsFunc(comparison.Pairs, func(p matrix.Pair) bool { return p.Strategy.Name == c.Strategy }) {
				r.Cells = append(r.Cells, c)
			} else {
				faults.Cells = append(faults.Cells, c)
			}
		}
		if err := kept.write(r, faults, s); err != nil && !errors.Is(err, errSurprised) {
			fmt.Fprintln(s.err, "loadtest:", err)
		}
	}
	return o, nil
}

// unreached reports whether a page that listens at an address needs something before it that others reach by a host.
func unreached(addr net.Addr, host string) bool {
	at, ok := addr.(*net.TCPAddr)
	return ok && at.IP.IsLoopback() && !service.IsLoopback(host)
}

// pageURL is an address that a browser on this machine can open.
func pageURL(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
