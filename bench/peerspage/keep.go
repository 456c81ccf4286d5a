package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"golang.org/x/perf/benchfmt"

	"stocklock/bench/measure"
	"stocklock/bench/peers"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wholefile"
)

// inputs are the measurements that the page is made from.
type inputs struct {
	cells, again, sales report.Report
	explored            []survey.Result
	bench               []*benchfmt.Result
}

// kept reads what keep wrote, and what the bench measured.
func kept(folder string) (in inputs, err error) {
	var errs [5]error
	in.cells, errs[0] = report.Read(filepath.Join(folder, "cells.json"))
	in.again, errs[1] = report.Read(filepath.Join(folder, "again.json"))
	in.sales, errs[2] = report.Read(filepath.Join(folder, "sales.json"))
	in.explored, errs[3] = readExplored(filepath.Join(folder, "explored.json"))
	in.bench, errs[4] = measure.Read(folder + ".txt")
	return in, errors.Join(errs[:]...)
}

// keep keeps what the page needs, and how cells of the first run failed. The versions of the
// libraries are those of this program, which is built beside the shop.
func (o options) keep() error {
	var explored []survey.Result
	for _, path := range o.Explored {
		more, err := readExplored(path)
		if err != nil {
			return err
		}
		explored = append(explored, more...)
	}
	reports := map[string]report.Report{}
	for name, path := range map[string]string{"cells": o.Cells, "again": o.Again, "sales": o.Sales} {
		r, err := report.Read(path)
		if err != nil {
			return err
		}
		reports[name] = r
	}
	for name, r := range reports {
		if name == "cells" {
			r.Environment.Libraries = versions()
		} else {
			r.Strategies = nil
		}
		for i := range r.Cells {
			c := &r.Cells[i]
			c.Timeline, c.Distribution, c.ByOutcome = trial.Timeline{}, nil, nil
			if name != "cells" || c.Verdict == verdict.Held {
				c.Explanation = nil
			}
		}
		if err := wholefile.Write(filepath.Join(o.Keep, name+".json"), r.JSON); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(explored, "", "")
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(o.Keep, "explored.json"), func(to io.Writer) error {
		_, err := fmt.Fprintf(to, "%s\n", text)
		return err
	})
}

func readExplored(path string) (found []survey.Result, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

// versions are those of the modules of the peers in this program.
func versions() map[string]string {
	all := map[string]string{}
	info, _ := debug.ReadBuildInfo()
	for _, p := range peers.Compared() {
		for _, m := range info.Deps {
			if m.Path == p.Module {
				all[m.Path] = m.Version
			}
		}
	}
	return all
}
