package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/aclements/go-moremath/mathx"
	"github.com/jedib0t/go-pretty/v6/table"
	"golang.org/x/perf/benchmath"

	"stocklock/bench/measure"
	"stocklock/internal/lab/tabular"
)

// noticeable is the change of a median that is reported, as a part of it or of a half, whichever is
// more. A smaller one is not reported, however certain it is.
const noticeable = 0.10

// change is one number of this repository's lock, before and now.
type change struct {
	unit   measure.Unit
	before *benchmath.Sample
	after  *benchmath.Sample
	was    float64 // the median
	is     float64
	benchmath.Comparison
}

// changesOf compares all numbers that do not depend on the machine alone.
func changesOf(before, after measure.Row) (all []change) {
	for _, u := range measure.Units {
		c := change{unit: u, before: before.Sample(u.Name), after: after.Sample(u.Name), was: before.Median(u.Name), is: after.Median(u.Name)}
		if u.Better != 0 && len(c.before.Values) > 0 && len(c.after.Values) > 0 {
			c.Comparison = benchmath.AssumeNothing.Compare(c.before, c.after)
			all = append(all, c)
		}
	}
	return all
}

// beyondNoise says that the samples differ by the test of benchstat, and their medians noticeably.
func (c change) beyondNoise() bool {
	return c.P <= c.Alpha && math.Abs(c.is-c.was) > noticeable*max(c.was, 0.5)
}

// worse says so of a number that differs.
func (c change) worse() bool { return (c.is-c.was)*float64(c.unit.Better) < 0 }

// blind says that there are too few numbers for the test, however much they differ.
func (c change) blind() bool { return 2/mathx.Choose(c.N1+c.N2, c.N1) > c.Alpha }

// comparedRows are the rows of a table that are compared: of a scale all of them.
func comparedRows(t measure.Table) []measure.Row {
	if strings.HasPrefix(t.Name, "Scale/") {
		return t.Rows
	}
	return []measure.Row{t.Row(measure.Ours), t.Row(oursInShop)}
}

// printChanges prints which of the compared numbers differ from the baseline beyond noise, and returns how many
// are worse. It fails where nothing can be compared.
func printChanges(out io.Writer, path string, baseline, now []measure.Table) (worse int, err error) {
	w := tabular.New()
	w.AppendHeader(table.Row{"", "number", "baseline", "now", "change", "test", ""})
	compared, differ, blind := 0, 0, 0
	var settings, machine, versions []string
	for _, t := range baseline {
		for _, before := range comparedRows(t) {
			after := measure.TableOf(now, t.Name).Row(before.Name)
			if len(before.Results) > 0 && len(after.Results) > 0 {
				if settings, machine, versions = measure.Otherwise(before.Results[0], after.Results[0]); len(settings) > 0 {
					return 0, fmt.Errorf("nothing can be compared with %s, which was measured otherwise: %s", path, strings.Join(settings, "; "))
				}
			}
			for _, c := range changesOf(before, after) {
				if c.unit.Ratio && len(machine) > 0 {
					continue // how much work a lock costs is alike there, and how fast that is done is not
				}
				compared++
				if c.blind() {
					blind++
				}
				if !c.beyondNoise() {
					continue
				}
				differ++
				word := "better"
				if c.worse() {
					word, worse = "worse", worse+1
				}
				w.AppendRow(table.Row{t.Name + ", " + before.Name, c.unit.Head, c.unit.Show(before), c.unit.Show(after), c.FormatDelta(c.was, c.is), c.Comparison, word})
			}
		}
	}
	fmt.Fprintf(out, "compared with %s: %d numbers, %d worse beyond noise\n", path, compared, worse)
	if others := append(machine, versions...); len(others) > 0 {
		fmt.Fprintln(out, "measured on another machine, or with other versions:", strings.Join(others, "; "))
	}
	if blind > 0 {
		fmt.Fprintf(out, "of %d of them there are too few repetitions to tell\n", blind)
	}
	if differ > 0 {
		fmt.Fprintln(out, w.Render())
	}
	fmt.Fprintln(out)
	if compared == blind {
		return 0, fmt.Errorf("nothing can be compared with %s: it has no number of what was measured, or there are too few repetitions", path)
	}
	return worse, nil
}
