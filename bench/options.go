package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/bench/lock"
	"stocklock/bench/measure"
	"stocklock/bench/section"
)

type options struct {
	Locks    []string `placeholder:"LOCK" help:"Which locks. Without it all but none, which is no lock at all."`
	Shapes   []string `placeholder:"SHAPE" help:"PROCESSESxGOROUTINES such as 4x8, with an added round trip such as 4x8+500us or a pause between two holds such as 8x1/1ms, hold-LOCKS such as hold-1000, or pairs. Without it those of --list, or 4x8 with --sections."`
	Sections []string `placeholder:"SECTION" help:"What is done under the lock: redis, mysql, sleep or empty. Without it redis, with --shapes; else those of --list."`
	Repeat   int      `default:"3" help:"How often to measure everything, one after the other, before taking medians."`
	Seconds  float64  `default:"0.5" help:"How long each lock is measured in each shape, each time."`
	JSON     string   `name:"json" type:"path" placeholder:"FILE" help:"Also write everything that was measured here."`
	Loadtest string   `type:"existingfile" placeholder:"PROGRAM" help:"Also sell through this cmd/loadtest, with the lock and with what the database has."`
	List     bool     `help:"Only print the locks, how they are set up, and the shapes."`
}

// plan is what is to be measured.
type plan struct {
	locks    []lock.Lock
	cells    []measure.Cell
	repeat   int
	duration time.Duration
	json     string
	loadtest string
}

func (o options) plan() (plan, error) {
	p := plan{repeat: o.Repeat, duration: time.Duration(o.Seconds * float64(time.Second)), json: o.JSON, loadtest: o.Loadtest}
	var errs []error
	if o.Repeat < 1 || o.Repeat > 100 {
		errs = append(errs, fmt.Errorf("--repeat %d: want 1 to 100", o.Repeat))
	}
	if !(o.Seconds >= 0.1 && o.Seconds <= 60) { // also what is no number
		errs = append(errs, fmt.Errorf("--seconds %g: want 0.1 to 60", o.Seconds))
	}
	if len(o.Locks) == 0 {
		p.locks = slices.DeleteFunc(slices.Clone(lock.All), func(l lock.Lock) bool { return l.Name == "none" })
	}
	for _, name := range o.Locks {
		l, err := choose("lock", name, lock.All, func(l lock.Lock) string { return l.Name })
		errs = append(errs, err)
		p.locks = append(p.locks, l)
	}
	var err error
	if p.cells, err = o.cells(); err != nil {
		errs = append(errs, err)
	}
	return p, errors.Join(errs...)
}

func (o options) cells() (cells []measure.Cell, err error) {
	if len(o.Shapes) == 0 && len(o.Sections) == 0 {
		return measure.DefaultCells(), nil
	}
	shapes, sections := o.Shapes, o.Sections
	if len(shapes) == 0 {
		shapes = []string{"4x8"}
	}
	if len(sections) == 0 {
		sections = []string{"redis"}
	}
	for _, shape := range shapes {
		s, shapeErr := measure.ParseShape(shape)
		err = errors.Join(err, shapeErr)
		for _, name := range sections {
			work, workErr := choose("section", name, section.All, func(s section.Section) string { return s.Name })
			err = errors.Join(err, workErr)
			cells = append(cells, measure.Cell{Shape: s, Section: work})
		}
	}
	return cells, err
}

// choose finds what is called so.
func choose[T any](what, name string, all []T, nameOf func(T) string) (T, error) {
	i := slices.IndexFunc(all, func(t T) bool { return nameOf(t) == name })
	if i < 0 {
		var names []string
		for _, t := range all {
			names = append(names, nameOf(t))
		}
		var zero T
		return zero, fmt.Errorf("no %s is called %q: want one of %s", what, name, strings.Join(names, ", "))
	}
	return all[i], nil
}
