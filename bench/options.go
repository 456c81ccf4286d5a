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
	"stocklock/internal/lab/scenario"
)

type options struct {
	Locks    []string `placeholder:"LOCK" help:"Locks to measure. Default: all but none, which is no lock, and those that need etcd or more than one Redis."`
	Shapes   []string `placeholder:"SHAPE" help:"PROCESSESxGOROUTINES such as 4x8, with added latency such as 4x8+500us or a pause between two holds such as 8x1/1ms; hold-LOCKS such as hold-1000; pairs, pairs-cancellable or pairs-wait. Default: those of --list, or 4x8 with --sections."`
	Sections []string `placeholder:"SECTION" help:"Work under the lock: redis, mysql, sleep, sleep-10ms or empty. Default: those of --list, or redis with --shapes. Pairs and hold-LOCKS have none, which is empty."`
	Repeat   int      `default:"3" min:"1" max:"100" help:"Number of repetitions. The results are medians over them."`
	Seconds  float64  `default:"0.5" min:"0.1" max:"60" help:"Duration of one measurement of one lock in one shape."`
	Loadtest string   `type:"existingfile" placeholder:"PROGRAM" help:"Also compare sales through this cmd/loadtest: the lock, a mutex, and the row lock of the database."`
	List     bool     `help:"Only print the locks, their settings, the sections and the shapes."`
	kept     `embed:""`
}

// plan says what to measure.
type plan struct {
	options
	locks    []lock.Lock
	cells    []measure.Cell
	duration time.Duration // of one measurement
}

func (o options) plan() (plan, error) {
	p := plan{options: o, duration: time.Duration(o.Seconds * float64(time.Second))}
	var errs []error
	if len(o.Locks) == 0 {
		p.locks = slices.DeleteFunc(slices.Clone(lock.All), func(l lock.Lock) bool { return l.Name == "none" || !l.OnOneRedis() })
	}
	for _, name := range o.Locks {
		// bsm-redislock had a slash, which divides a benchmark's name.
		l, err := scenario.Named("lock", strings.ReplaceAll(name, "/", "-"), lock.All, func(l lock.Lock) string { return l.Name })
		errs = append(errs, err)
		p.locks = append(p.locks, l)
	}
	cells, err := o.chosen()
	p.cells = cells
	return p, errors.Join(append(errs, err)...)
}

func (o options) chosen() (cells []measure.Cell, err error) {
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
		of := sections
		if s.Pairs || s.Hold > 0 {
			if of = []string{"empty"}; slices.ContainsFunc(o.Sections, func(name string) bool { return name != "empty" }) {
				err = errors.Join(err, fmt.Errorf("shape %q has no work under the lock: want --sections empty", shape))
			}
		}
		for _, name := range of {
			work, workErr := scenario.Named("section", name, section.All, func(s section.Section) string { return s.Name })
			err = errors.Join(err, workErr)
			cells = append(cells, measure.Cell{Shape: s, Section: work})
		}
	}
	return cells, err
}
