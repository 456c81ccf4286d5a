package drawing

import "slices"

// Intervals draws what lasts while one looks at it: an interval is finished when it ends. The zero
// value has none. It is not safe for concurrent use.
type Intervals struct {
	Finished SVG // shapes that do not change any more; marks may be added
	open     []interval
}

type interval struct {
	name string
	from float64
	draw Draw
}

// Draw adds the shapes of an interval that ends, or that is shown, at a time.
type Draw func(to *SVG, until float64)

// Begin has an interval drawn from a time, until End is called with its name.
func (i *Intervals) Begin(name string, from float64, draw Draw) {
	i.open = append(i.open, interval{name, from, draw})
}

// End finishes the oldest interval of a name, if there is one. Nothing is drawn of an empty one.
func (i *Intervals) End(name string, at float64) {
	n := slices.IndexFunc(i.open, func(v interval) bool { return v.name == name })
	if n < 0 {
		return
	}
	if v := i.open[n]; at > v.from {
		v.draw(&i.Finished, at)
	}
	i.open = slices.Delete(i.open, n, n+1)
}

// Take returns what was finished since it was called last.
func (i *Intervals) Take() string {
	defer i.Finished.Reset()
	return i.Finished.String()
}

// Lasting draws what has not ended, until now.
func (i *Intervals) Lasting(now float64) string {
	var to SVG
	for _, v := range i.open {
		if now > v.from {
			v.draw(&to, now)
		}
	}
	return to.String()
}
