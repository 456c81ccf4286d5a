package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/testserver"
)

// seller is a shop with a strategy, in one process or several. Without a strategy, it is [mini].
type seller struct {
	strategy string
	before   bool
	keys     int // at how many shops each key is used; 0 for no keys
	soldOut  bool
	limit    bool // each customer has one
	holds    bool // the shop offers reservations, for which it needs a limit
}

func (s seller) String() string {
	name := s.strategy
	if name == "" {
		name = "mini"
	}
	if s.before {
		name += ", before"
	}
	switch {
	case s.keys == 1:
		name += ", keys"
	case s.keys > 1:
		name += fmt.Sprintf(", each key %d times", s.keys)
	case s.soldOut:
		name += ", beside baskets of nothing"
	case s.holds:
		name += ", reservations"
	case s.limit:
		name += ", limit"
	}
	return name
}

// testCase is a load that sellers are compared under.
type testCase struct {
	name, doc string
	shops     int
	customers int
	items     int
	lines     int  // of each order: 1 is no basket
	refusals  bool // the item is sold out, and refusals are measured
	sellers   []seller
}

var cases = []testCase{
	{name: "one-item", doc: "48 customers, one item", shops: 1, customers: 48, items: 1, lines: 1, sellers: beside("conditional", "fenced-relative", "batched", "for-update")},
	{name: "64-items", doc: "48 customers, 64 items", shops: 1, customers: 48, items: 64, lines: 1, sellers: beside("conditional", "fenced-relative", "batched")},
	{name: "keys", doc: "48 orders at once at three shops, of one item, under keys; \"each key 3 times\": at each shop", shops: 3, customers: 48, items: 1, lines: 1, sellers: []seller{
		{strategy: "batched", keys: 1}, {strategy: "batched", keys: 3}, {strategy: "batched", keys: 1, before: true}, {strategy: "batched", keys: 3, before: true},
		{strategy: "conditional", keys: 1}, {strategy: "conditional", keys: 1, before: true},
	}},
	{name: "baskets-5", doc: "16 customers, baskets of 5 of 64 items", shops: 1, customers: 16, items: 64, lines: 5, sellers: inTurn("conditional", "batched", "for-update", "fenced-relative")},
	{name: "baskets-20", doc: "16 customers, baskets of 20 of 64 items", shops: 1, customers: 16, items: 64, lines: 20, sellers: inTurn("conditional", "batched", "fenced-relative")},
	{name: "sold-out", doc: "16 customers at three shops, 49 items, alone and beside 28 baskets in a second of these and a sold-out one", shops: 3, customers: 16, items: 49, lines: 1, sellers: []seller{
		{strategy: "fenced-relative"}, {strategy: "fenced-relative", soldOut: true}, {strategy: "fenced-relative", before: true}, {strategy: "fenced-relative", soldOut: true, before: true},
	}},
	{name: "crossed", doc: "200 customers at three shops, baskets of fifty of fifty items, each in an order of its own", shops: 3, customers: 200, items: 50, lines: 50, sellers: inTurn("conditional", "batched", "fenced-relative")},
	{name: "limit", doc: "48 customers, one item, up to a limit, without reservations and with them", shops: 1, customers: 48, items: 1, lines: 1, sellers: reserving},
	{name: "limit-5", doc: "16 customers, baskets of 5 of 64 items, up to a limit, without reservations and with them", shops: 1, customers: 16, items: 64, lines: 5, sellers: reserving},
	{name: "refusals", doc: "48 customers, an item that is sold out, without reservations and with them", shops: 1, customers: 48, refusals: true, lines: 1, sellers: reserving},
}

// reserving are the shops that sell beside reservations.
var reserving = func() (all []seller) {
	for _, s := range []string{"conditional", "batched", "for-update", "fenced-relative"} {
		all = append(all, seller{strategy: s, limit: true, before: true}, seller{strategy: s, limit: true}, seller{strategy: s, limit: true, holds: true})
	}
	return all
}()

func names() string {
	var all []string
	for _, c := range cases {
		all = append(all, c.name)
	}
	return strings.Join(all, ", ")
}

func inTurn(strategies ...string) (all []seller) {
	for _, s := range strategies {
		all = append(all, seller{strategy: s}, seller{strategy: s, before: true})
	}
	return all
}

func beside(strategies ...string) []seller { return append([]seller{{}}, inTurn(strategies...)...) }

// result is what was measured of a seller.
type result struct {
	orders, requests int // of the answers that are measured, and all
	conflicts        int
	lines            int // sold
	took             time.Duration
	p95              time.Duration // of an order that was sold
	shop, all        time.Duration // processor time of the shops, and with that of MySQL and Redis
}

var units = []struct {
	name string // in the format of Go's benchmarks, without spaces
	of   func(result) float64
}{
	{"answers/s", func(r result) float64 { return float64(r.orders) / r.took.Seconds() }},
	{"lines/s", func(r result) float64 { return float64(r.lines) / r.took.Seconds() }},
	{"refused-%", func(r result) float64 { return 100 * float64(r.requests-r.orders) / float64(max(1, r.requests)) }},
	{"conflict-%", func(r result) float64 { return 100 * float64(r.conflicts) / float64(max(1, r.requests)) }},
	{"p95-ms", func(r result) float64 { return 1000 * r.p95.Seconds() }},
	{"shop-µs", func(r result) float64 { return 1e6 * r.shop.Seconds() / float64(max(1, r.orders)) }},
	{"all-µs", func(r result) float64 { return 1e6 * r.all.Seconds() / float64(max(1, r.orders)) }},
}

// bench has the servers. Each program has a database of its own, with its schema.
type bench struct {
	rig         *rig.Rig
	mysql       *testserver.MySQL
	redis       *testserver.Redis
	now, before string
	databases   map[bool]string // the DSN, by whether it is that of before
}

func open(ctx context.Context, now, before string) (_ *bench, err error) {
	b := &bench{databases: map[bool]string{}}
	if b.rig, err = rig.New(""); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = b.rig.Close() // the error that matters is there
		}
	}()
	dir, err := b.rig.Folder("shops")
	if err != nil {
		return nil, err
	}
	if b.now, b.before = now, before; now == "" {
		if b.now, err = build(ctx, filepath.Join(dir, "shop")); err != nil {
			return nil, err
		}
	}
	if b.mysql, err = b.rig.MySQL(ctx, "--max-connections=400"); err != nil {
		return nil, err
	}
	if b.redis, err = b.rig.Redis(ctx, testserver.RedisOptions{}); err != nil {
		return nil, err
	}
	for _, old := range []bool{false, true} {
		if b.databases[old], err = b.mysql.CreateDatabase(ctx, map[bool]string{false: "now", true: "earlier"}[old]); err != nil {
			return nil, err
		}
	}
	shops, _, err := b.start(ctx, seller{strategy: "conditional"}, 1) // the tables of mini come from the shop
	if err != nil {
		return nil, err
	}
	return b, shops[0].Stop()
}

// build builds the production shop, from anywhere in this repository.
func build(ctx context.Context, to string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "build", "-tags", "nomsgpack", "-ldflags=-s", "-o", to, "stocklock/cmd/shop").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the shop: %w: %s", err, out)
	}
	return to, nil
}

// start starts the processes of a seller, and returns their URLs.
func (b *bench) start(ctx context.Context, s seller, n int) (shops []*testserver.Process, urls []string, err error) {
	for i := range n {
		o := rig.ShopOptions{Program: b.now, Name: strconv.Itoa(i), Env: map[string]string{
			"SHOP_INTERNAL_ADDR": "", "SHOP_MYSQL": b.databases[s.before], "SHOP_REDIS": b.redis.URL(), "SHOP_STRATEGY": s.strategy}}
		switch {
		case s.strategy == "":
			if o.Program, err = os.Executable(); err != nil {
				return shops, nil, err
			}
			o.Env[asMini] = "true"
		case s.before:
			o.Program = b.before
		}
		if s.limit {
			o.Env["SHOP_LIMIT"], o.Env["SHOP_SUBJECT_HEADER"] = "10000", load.SubjectHeader
		}
		if s.holds {
			o.Env["SHOP_RESERVATIONS"], o.Env["SHOP_STAFF_SUBJECT_HEADER"] = "true", load.SubjectHeader
		}
		shop, err := b.rig.Shop(ctx, o)
		if err != nil {
			return shops, nil, err
		}
		shops, urls = append(shops, shop.Process), append(urls, shop.URL)
	}
	return shops, urls, nil
}

// createItems adds n items to the database of a seller, the last one without units, and returns their ids.
func (b *bench) createItems(ctx context.Context, s seller, n int) ([]uint64, error) {
	db, err := sql.Open("mysql", b.databases[s.before])
	if err != nil {
		return nil, err
	}
	defer db.Close()
	ids := make([]uint64, n)
	for i := range ids {
		units := plenty
		if i == n-1 {
			units = 0
		}
		done, err := db.ExecContext(ctx, "INSERT INTO items (name, stock) VALUES ('measured', ?)", units)
		if err != nil {
			return nil, err
		}
		id, err := done.LastInsertId()
		if err != nil {
			return nil, err
		}
		ids[i] = uint64(id)
	}
	return ids, nil
}

const plenty = 1_000_000_000

// measure starts a seller, sells for some time, and ends it.
func (b *bench) measure(ctx context.Context, c testCase, s seller, long time.Duration) (r result, err error) {
	shops, urls, err := b.start(ctx, s, c.shops)
	defer func() {
		for _, p := range shops {
			if stopped := p.Stop(); err == nil {
				err = stopped
			}
		}
	}()
	if err != nil {
		return r, err
	}
	items, err := b.createItems(ctx, s, c.items+1)
	if err != nil {
		return r, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	d := &demand{testCase: c, seller: s, client: client, urls: urls, items: items[:c.items], soldOut: items[c.items]}
	if c.refusals {
		d.items = items[c.items:]
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	if s.soldOut {
		const baskets = 28 // in a second
		for i := range baskets {
			background.Go(func() { d.askInVain(ctx, time.Duration(i)*time.Second/baskets) })
		}
	}
	if _, err := d.sell(ctx, long/4); err != nil { // connections, memory of what is sold out
		return r, err
	}
	shop, all, err := b.used(shops)
	if err != nil {
		return r, err
	}
	if r, err = d.sell(ctx, long); err != nil {
		return r, err
	}
	r.shop, r.all, err = b.used(shops)
	r.shop, r.all = r.shop-shop, r.all-all
	cancel()
	background.Wait()
	return r, err
}

// used is the processor time so far of the shops, and with that of MySQL and Redis.
func (b *bench) used(shops []*testserver.Process) (shop, all time.Duration, err error) {
	const ticks = 100 // in a second, on each Linux that Go knows
	for i, p := range slices.Concat(shops, []*testserver.Process{b.mysql.Process, b.redis.Process}) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		if err != nil {
			return 0, 0, err
		}
		// The name of the program is in brackets, and may have spaces.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		for _, field := range fields[11:13] {
			n, err := strconv.Atoi(field)
			if err != nil {
				return 0, 0, err
			}
			all += time.Duration(n) * time.Second / ticks
		}
		if i == len(shops)-1 {
			shop = all
		}
	}
	return shop, all, nil
}

// demand is what customers ask of a seller.
type demand struct {
	testCase
	seller
	client  *http.Client
	urls    []string
	items   []uint64
	soldOut uint64
}

// sell sells for some time. If running ends first, the result is of no use.
func (d *demand) sell(running context.Context, long time.Duration) (r result, err error) {
	ctx, cancel := context.WithTimeout(running, long)
	defer cancel()
	var mu sync.Mutex
	var took []time.Duration
	answered := func(a load.Answer) {
		mu.Lock()
		defer mu.Unlock()
		r.requests++
		if a.Outcome == load.Conflict {
			r.conflicts++
		}
		if a.Status == http.StatusCreated || d.refusals && a.Status == http.StatusConflict {
			r.orders++
			if a.Status == http.StatusCreated {
				r.lines += d.lines
			}
			took = append(took, a.Latency)
		}
	}
	var customers sync.WaitGroup
	begun := time.Now()
	run := uuid.NewString()
	for i := range d.customers {
		customers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				var items []uint64
				for _, of := range rand.Perm(len(d.items))[:d.lines] {
					items = append(items, d.items[of])
				}
				key := ""
				if d.keys > 0 {
					key = fmt.Sprintf("%s-%d-%d", run, i/d.keys, n)
				}
				answered(d.send(i, items, key))
			}
		})
	}
	customers.Wait()
	r.took = time.Since(begun)
	if slices.Sort(took); len(took) > 0 {
		r.p95 = load.Percentile(took, 95)
	}
	return r, context.Cause(running)
}

// askInVain asks for all items and the one that is sold out, once a second after some time, until ctx ends. Without a
// pause, a shop that refuses sooner would be asked more often.
func (d *demand) askInVain(ctx context.Context, after time.Duration) {
	items := append(slices.Clone(d.items), d.soldOut)
	time.Sleep(after)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		d.send(rand.IntN(len(d.urls)), items, "")
	}
}

// send orders one unit of each of some items. An answer is awaited also when the time to sell is over.
func (d *demand) send(customer int, items []uint64, key string) load.Answer {
	return load.SendBy(context.Background(), d.client, load.Order{Shop: d.urls[customer%len(d.urls)], ItemID: items[0], More: items[1:], Quantity: 1,
		Subject: fmt.Sprint("customer-", customer), IdempotencyKey: key})
}
