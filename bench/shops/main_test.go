package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"

	"stocklock/bench/measure"
	"stocklock/internal/testserver"
)

func TestMain(m *testing.M) {
	if os.Getenv(asMini) != "" {
		fmt.Fprintln(os.Stderr, mini(os.Getenv("SHOP_ADDR"), os.Getenv("SHOP_MYSQL"))) // the test binary is also the small shop
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestMeasures is a short run, beside the shop itself as the earlier one.
func TestMeasures(t *testing.T) {
	testserver.NeedsServers(t)
	shop, err := build(t.Context(), t.TempDir()+"/shop")
	if err != nil {
		t.Fatal(err)
	}
	o := options{Cases: []string{"one-item", "sold-out"}, Now: shop, Before: shop, Repeat: 1, Length: 300 * time.Millisecond}
	var out, log bytes.Buffer
	if err := o.run(t.Context(), &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	for _, c := range cases {
		if !slices.Contains(o.Cases, c.name) {
			continue
		}
		_, text, found := strings.Cut(out.String(), c.name+": ")
		for _, s := range c.sellers {
			found = found && strings.Contains(text, s.String())
		}
		if !found {
			t.Errorf("%s is not measured:\n%s", c.name, &out)
		}
	}
	if strings.Contains(out.String(), "Inf") {
		t.Errorf("a shop has sold nothing:\n%s", &out)
	}
}

// TestConflictsAreCounted has a shop that refuses one order as conflict and two as busy, and then the customer leaves.
func TestConflictsAreCounted(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	problems := []string{"conflict", "busy", "busy"}
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"type": "/problems/%s"}`, problems[0])
		if problems = problems[1:]; len(problems) == 0 {
			leave()
		}
	}))
	defer shop.Close()
	d := &demand{testCase: testCase{customers: 1, lines: 2}, client: shop.Client(), urls: []string{shop.URL}, items: []uint64{1, 2}}
	r, err := d.sell(ctx, time.Minute)
	if r.conflicts != 1 || r.requests != 3 || r.orders != 0 {
		t.Errorf("measured %+v, want one conflict among three requests", r)
	}
	if err == nil {
		t.Error("what was measured before an interruption is good")
	}
}

func TestWhatCannotBeMeasured(t *testing.T) {
	for _, tt := range []struct {
		options
		want string
	}{
		{options{Cases: []string{"hundred"}}, "want one of one-item, 64-items"},
		{options{Repeat: 0, Length: time.Second}, "--repeat: want 1 to 100"},
		{options{Repeat: 1, Length: -time.Second}, "--for: want 100ms to 1h"},
	} {
		if err := tt.run(t.Context(), &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.options, err, tt.want)
		}
	}
}

// TestTheMedianOfTwoIsBetweenThem, and not the larger one.
func TestTheMedianOfTwoIsBetweenThem(t *testing.T) {
	c, s := testCase{name: "two"}, seller{strategy: "conditional"}
	var results []*benchfmt.Result
	for _, orders := range []int{100, 300} {
		results = append(results, result{orders: orders, took: time.Second}.named(c, s))
	}
	var out bytes.Buffer
	if print(&out, c, []seller{s}, measure.Tables(results)[0]); !strings.Contains(out.String(), " 200 ") {
		t.Errorf("the median of 100 and 300 is not in\n%s", &out)
	}
}
