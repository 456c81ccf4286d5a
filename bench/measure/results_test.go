package measure

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"stocklock/bench/section"
)

func TestJain(t *testing.T) {
	for _, test := range []struct {
		name   string
		shares []int64
		want   float64
	}{
		{"all have the same", []int64{7, 7, 7, 7}, 1},
		{"one has all", []int64{12, 0, 0, 0}, 0.25},
		{"half of them share all", []int64{5, 5, 0, 0}, 0.5},
		{"nobody has anything", []int64{0, 0}, 1},
		{"uneven", []int64{1, 2, 3}, 36.0 / (3 * 14)},
	} {
		if got := jain(test.shares); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: jain(%v) = %v, want %v", test.name, test.shares, got, test.want)
		}
	}
}

// rated is a result of a lock with so many holds a second, in a cell whose name has slashes.
func rated(lock string, rate float64) *benchfmt.Result {
	s := Sample{Operations: 7}
	s.add(rate, Rate)
	s.add(0.001, TripSec)
	shape, _ := ParseShape("8x1/1ms")
	return NewResult(Cell{shape, section.Section{Name: "redis"}}.Name(), lock, Configure("go", "go1.26.8", "redis", "7.0.15", "etcd", ""), s)
}

// TestRatiosAreTakenWithinARepetition, and come out of a file as they went into it.
func TestRatiosAreTakenWithinARepetition(t *testing.T) {
	var results []*benchfmt.Result
	// The machine is twice as slow in the second repetition. The ratio must not change.
	for _, rate := range []float64{1000, 500} {
		same := []*benchfmt.Result{rated("redsync", rate/4), rated("failed", 0), rated(Limit, rate)}
		Relate(same, Rate)
		results = append(results, same...)
	}
	path := filepath.Join(t.TempDir(), "bench.txt")
	var text bytes.Buffer
	if err := Write(&text, results); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	tables := Tables(read)
	if len(tables) != 1 || len(tables[0].Rows) != 3 || tables[0].Rows[1].Name != Limit {
		t.Fatalf("tables %+v, want one of three locks in the order of lock.All", tables)
	}
	if c, ok := CellOf(tables[0].Name); !ok || c.Shape.Name != "8x1/1ms" || c.Section.Name != "redis" {
		t.Errorf("the cell of %s is %+v", tables[0].Name, c)
	}
	row := tables[0].Row("redsync")
	if got := fmt.Sprint(row.Sample(OfMutex).Values, row.Sample(OverSec).Values, row.Sample(OverTrips).Values); got != "[0.25 0.25] [0.003 0.006] [3 6]" {
		t.Errorf("of the mutex, and over it: %s", got)
	}
	for unit, want := range map[string]string{OfMutex: "0.25", Rate: "188", "jain": "–", OverSec: "4500"} {
		if got := row.Show(unit); got != want {
			t.Errorf("%s is shown as %s, want %s", unit, got, want)
		}
	}
	if n := len(tables[0].Row("failed").Sample(OverSec).Values); n > 0 {
		t.Errorf("a lock without holds took %d times longer than the mutex", n)
	}
	if got := Environment(read[0]); !strings.HasPrefix(got, "Redis 7.0.15, go1.") {
		t.Errorf("measured on %s", got)
	}
}

func TestRangesAndTotals(t *testing.T) {
	row := Row{Name: Ours}
	for _, v := range []float64{0.5, 0.6, 0.4} {
		s := Sample{}
		s.add(v, OfMutex)
		s.add(2, LostUnit)
		row.Results = append(row.Results, NewResult("Hold", Ours, nil, s))
	}
	if share, lost := row.Show(OfMutex), row.Show(LostUnit); share != "0.50 ±20%" || lost != "6" {
		t.Errorf("shown as %s of the mutex, and %s lost updates", share, lost)
	}
}

// TestBadFiles: what is not in the format is refused in a line.
func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "no results in the Go benchmark format",
		`{"cells": []}`:              "no results in the Go benchmark format",
		"BenchmarkHold 3 fast ns/op": "bench.txt:1: ",
	} {
		path := filepath.Join(t.TempDir(), "bench.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
