package main

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stocklock/bench/measure"
	"stocklock/internal/lab/topology"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

// scaled measures a scale once, shortly. That fails when the database has other orders than were answered.
func scaled(t *testing.T, args ...string) (ratio func(row, column string) float64, results []measure.Table) {
	t.Helper()
	testserver.NeedsServers(t)
	tables, out := measured(t, append([]string{"scale"}, args...)...)
	t.Log("\n" + out)
	for line := range strings.Lines(out) {
		if utf8.RuneCountInString(line) > 140 {
			t.Errorf("a line of more than 140 columns: %s", line)
		}
	}
	for _, of := range tables {
		for _, row := range of.Rows {
			if !(row.Median(measure.OfFirst) > 0) {
				t.Errorf("%s sells nothing: %s", row.Name, of.Name)
			}
			if !strings.Contains(out, strings.ReplaceAll(row.Name, "_", " ")) {
				t.Errorf("%s is not printed", row.Name)
			}
		}
	}
	return func(row, column string) float64 {
		return measure.TableOf(tables, "Scale/"+args[0]+"/"+column).Row(row).Median(measure.OfFirst)
	}, tables
}

func TestScaleOfItems(t *testing.T) {
	ratio, tables := scaled(t, "items", "--each", "300ms", "--workers", "16")
	if ten := ratio("its orders batched by 10", "sold"); ten < 2 {
		t.Errorf("ten units a time sell × %g: as much as one", ten)
	}
	for _, of := range tables {
		one, many := of.Row("from_three_shops,_on_a_Cluster").Median(busiestUnit), of.Row("64_items,_three_shops,_on_a_Cluster").Median(busiestUnit)
		if one < 0.7 || many < 0.3 || many > 0.7 {
			t.Errorf("one of %d masters has %.0f %% of the work of one item, and %.0f %% of that of many", masters, 100*one, 100*many)
		}
	}
}

// TestScaleOfOneHotItem compares each column with its own first row.
func TestScaleOfOneHotItem(t *testing.T) {
	ratio, tables := scaled(t, "hot", "--each", "100ms")
	for _, of := range tables {
		if column := strings.TrimPrefix(of.Name, "Scale/hot/"); ratio("conditional", column) != 1 || len(of.Rows) != len(onHot) {
			t.Errorf("%d strategies sell with %s, and conditional × %g", len(of.Rows), column, ratio("conditional", column))
		}
		for _, row := range of.Rows {
			if !(row.Median(p99OfFirst) > 0) {
				t.Errorf("%s has no p99: %s", row.Name, of.Name)
			}
		}
	}
}

func TestScaleOfBaskets(t *testing.T) {
	_, tables := scaled(t, "baskets", "--each", "100ms", "--workers", "4")
	if len(tables) != 8 {
		t.Errorf("%d columns, want two popularities by four numbers of lines", len(tables))
	}
	for _, of := range tables {
		if len(of.Rows) < 2 || len(of.Rows) != len(tables[0].Rows) {
			t.Errorf("%d ways take baskets of %s", len(of.Rows), of.Name)
		}
	}
}

// TestScaleOfCrowds compares each column with its own first row.
func TestScaleOfCrowds(t *testing.T) {
	if ratio, _ := scaled(t, "crowds", "--each", "100ms", "--connections", "10,30"); ratio("10 connections", "items: 64") != 1 {
		t.Errorf("the first crowd sells × %g", ratio("10 connections", "items: 64"))
	}
}

// TestScaleOfTopologies must leave out what sells by old reads. It compares each strategy with itself on one server.
func TestScaleOfTopologies(t *testing.T) {
	ratio, _ := scaled(t, "topologies", "--each", "100ms", "--workers", "6")
	oversells := map[string][]string{"replica-reads": {"fenced", "reentrant"}, "galera-writers": {"reentrant"}}
	for _, on := range topology.All {
		for _, name := range onTopologies {
			left := on.Missing() != nil || slices.Contains(oversells[on.Name], name)
			if got := ratio(on.Name+", items: 64", name); math.IsNaN(got) != left || on.Name == "single" && got != 1 {
				t.Errorf("%s on %s sells × %g", name, on.Name, got)
			}
		}
	}
}

// TestScaleIsCompared compares two scales by their files, of which one sells half as much.
func TestScaleIsCompared(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing")
	var out bytes.Buffer
	for _, test := range []struct{ args, says string }{
		{"scale everything", "must be one of"}, {"scale --repeat 0", "--repeat is 0: want 1 to 100"}, {"scale crowds --connections 0", "each of 1 to 10000"},
		{"scale --connections=", "--connections: want one number or more"},
		{"scale --baseline " + file, "no such file"},
	} {
		out.Reset()
		if code := run(t.Context(), strings.Fields(test.args), &out, &out); code != exitUsage || !strings.Contains(out.String(), test.says) {
			t.Errorf("bench %s: exit code %d, %s", test.args, code, &out)
		}
	}
	before, after := scaleOf(1, 1.01, 1.02, 1, 1.01, 0.99), scaleOf(0.5, 0.51, 0.5, 0.5, 0.52, 0.5)
	if worse, err := printChanges(&out, file, before, after); err != nil || worse != 1 || !strings.Contains(out.String(), "64_items") {
		t.Errorf("%d worse, %v:\n%s", worse, err, &out)
	}
}

// TestFitForBaskets: a way that lacks what large baskets need may be slow, one that lacks more sells wrong.
func TestFitForBaskets(t *testing.T) {
	all := ladder.BasketsInRows
	starved, crossed := all, all
	starved.Has &^= declared.Unstarved
	crossed.Has &^= declared.Crossable
	rows := ladder.DatabaseLock
	fit := fitForBaskets([]declared.Strategy{
		{Name: "all", Properties: rows, Baskets: &all}, {Name: "starved", Properties: rows, Baskets: &starved},
		{Name: "crossed", Properties: rows, Baskets: &crossed}, {Name: "paused", Baskets: &all},
	})
	if !slices.Equal(fit, []string{basketsBase, "all", "starved"}) {
		t.Errorf("fit are %v", fit)
	}
}
