package measure

import (
	"slices"

	"stocklock/bench/section"
)

// Cell is the shape and the section in which locks are compared.
type Cell struct {
	Shape   Shape
	Section section.Section
}

// DefaultCells returns the cells of a run without --shapes and --sections.
func DefaultCells() []Cell {
	var cells []Cell
	for _, c := range [][2]string{
		{"1x32", "redis"},
		{"4x8", "redis"},
		{"8x1", "redis"},
		{"8x1/1ms", "redis"},
		{"16x64", "redis"},
		{"4x8+500us", "redis"},
		{"4x8", "mysql"},
		{"4x8", "sleep"},
		{"1x1", "empty"},
		{"pairs", "empty"},
		{"hold-1000", "empty"},
	} {
		shape, err := ParseShape(c[0])
		if err != nil {
			panic(err) // the list above is wrong
		}
		i := slices.IndexFunc(section.All, func(s section.Section) bool { return s.Name == c[1] })
		cells = append(cells, Cell{shape, section.All[i]})
	}
	return cells
}

// Measured has the samples of one lock in a cell.
type Measured struct {
	Lock    string
	Samples []Sample // one per repetition, in order
}

// Of returns one number of each sample.
func (m Measured) Of(number func(Sample) float64) []float64 {
	var values []float64
	for _, s := range m.Samples {
		values = append(values, number(s))
	}
	return values
}

// Results has the measurements of all locks in a cell.
type Results struct {
	Cell
	Locks []Measured
}

// Add appends the sample of one repetition.
func (r *Results) Add(name string, s Sample) {
	i := slices.IndexFunc(r.Locks, func(m Measured) bool { return m.Lock == name })
	if i < 0 {
		i = len(r.Locks)
		r.Locks = append(r.Locks, Measured{Lock: name})
	}
	r.Locks[i].Samples = append(r.Locks[i].Samples, s)
}

// Lock returns the measurements of one lock. They are empty if there are none.
func (r Results) Lock(name string) Measured {
	for _, m := range r.Locks {
		if m.Lock == name {
			return m
		}
	}
	return Measured{}
}

// Ratio divides one lock's number by another's within each repetition, so that a temporary slowdown
// of the machine affects both.
func (r Results) Ratio(of, by string, number func(Sample) float64) []float64 {
	a, b := r.Lock(of).Of(number), r.Lock(by).Of(number)
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, a[i]/b[i])
	}
	return ratios
}
