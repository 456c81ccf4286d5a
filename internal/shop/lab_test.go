package shop

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

func TestLabHeadersDoNothingOutsideTheLab(t *testing.T) {
	s := open(t, nil)
	began := time.Now()
	got := s.buy(s.item(1), "X-Lab-Strategy", "conditional", "X-Lab-Run", "run-1",
		"X-Lab-Fault", "read sleep 30s", "X-Lab-Nested", "1")
	if order := got.order(t); order.Strategy != "owner-checked" || order.Run != "" {
		t.Errorf("the order is %+v, want owner-checked and no run", order)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the sale took %s: the fault struck", took)
	}
	if got := s.buy(s.item(1), "X-Lab-Strategy", "no such", "X-Lab-Fault", "no such"); got.status != 201 {
		t.Errorf("wrong lab headers were looked at: %d %s", got.status, got.body)
	}
}

func TestLabHeadersChooseStrategyRunAndFault(t *testing.T) {
	s := open(t, func(c *Config) { c.Lab = &Lab{} })
	for _, name := range strategy.Names() {
		order := s.buy(s.item(1), "X-Lab-Strategy", name, "X-Lab-Run", "run-1").order(t)
		if order.Strategy != name || order.Run != "run-1" {
			t.Errorf("asked for %s in run-1, got the order %+v", name, order)
		}
	}
	const pause = 300 * time.Millisecond
	began := time.Now()
	if got := s.buy(s.item(1), "X-Lab-Fault", "written sleep "+pause.String()); got.status != 201 || time.Since(began) < pause {
		t.Errorf("the sale that sleeps answered %d after %s", got.status, time.Since(began))
	}
}

func TestNestedSalesNeedAReentrantLock(t *testing.T) {
	s := open(t, func(c *Config) { c.Lab, c.Deps.Wait = &Lab{}, 100*time.Millisecond })
	for _, name := range []string{"reentrant-fixed", "none"} {
		if got := s.buy(s.item(1), "X-Lab-Nested", "1", "X-Lab-Strategy", name); got.status != 201 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.buy(s.item(1), "X-Lab-Nested", "1", "X-Lab-Strategy", "owner-checked"); got.problem() != "busy" {
		t.Errorf("owner-checked: %d %s, want busy", got.status, got.body)
	}
}

func TestWrongLabHeadersAreRefused(t *testing.T) {
	s := open(t, func(c *Config) { c.Lab = &Lab{} })
	item := s.item(1)
	for _, header := range [][]string{
		{"X-Lab-Strategy", "no such"}, {"X-Lab-Run", "a b"}, {"X-Lab-Fault", "read"}, {"X-Lab-Fault", "read sleep 1h"}, {"X-Lab-Nested", "yes"},
	} {
		if got := s.buy(item, header...); got.problem() != "malformed" {
			t.Errorf("%s: %d %s, want malformed", header, got.status, got.body)
		}
	}
	if left := s.left(item); left != 1 {
		t.Errorf("%d units left, want 1", left)
	}
}

func TestTheLabRecordsEverySale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	recorder, err := labmode.OpenRecorder(path, "test-shop")
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	s := open(t, func(c *Config) { c.Lab = &Lab{Work: 30 * time.Millisecond, Trace: recorder} })
	item := s.item(5)
	s.buy(item, "X-Request-Id", "r-1", "X-Lab-Run", "run-1", "X-Lab-Fault", "read sleep 1ms").order(t)

	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	events, err := labmode.ReadEvents(file)
	if err != nil {
		t.Fatal(err)
	}
	at := map[sale.Point]labmode.Event{}
	var points []sale.Point
	for _, e := range events {
		points = append(points, e.Point)
		at[e.Point] = e
		if e.Shop != "test-shop" || e.Request != "r-1" || e.Item != item.ID || e.Run != "run-1" || e.Strategy != "owner-checked" {
			t.Errorf("event %+v is of another sale", e)
		}
	}
	if !slices.Equal(points, sale.Points) {
		t.Errorf("passed %v, want %v", points, sale.Points)
	}
	if worked := at[sale.Write].Time.Sub(at[sale.Read].Time); worked < 30*time.Millisecond {
		t.Errorf("the work after the read took %s, want 30ms", worked)
	}
	if f := at[sale.Read].Facts["fault"]; f != "read sleep 1ms" {
		t.Errorf("the fault recorded is %v", f)
	}
}
