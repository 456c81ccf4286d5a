package measure

import (
	"regexp"
	"slices"
	"strings"

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
		{"pairs-cancellable", "empty"},
		{"pairs-wait", "empty"},
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

// Name is that of the cell as a benchmark, without the lock. Its parts are divided by slashes.
func (c Cell) Name() string {
	return "Hold/shape=" + strings.Replace(c.Shape.Name, "/", "/pause=", 1) + "/section=" + c.Section.Name
}

var cellName = regexp.MustCompile(`^Hold/shape=(.+)/section=(.+)$`)

// CellOf returns the cell with a [Cell.Name]. A section that this program does not have has its name
// alone. The sales of shops, and benchmarks of others, have no cell.
func CellOf(name string) (Cell, bool) {
	m := cellName.FindStringSubmatch(name)
	if m == nil {
		return Cell{}, false
	}
	shape, err := ParseShape(strings.Replace(m[1], "/pause=", "/", 1))
	return Cell{shape, section.Section{Name: m[2]}}, err == nil
}
