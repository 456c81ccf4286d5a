package live

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/explain"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// The heights of columns, in pixels. Widths are milliseconds: a page stretches them.
const (
	shopHeight  = 50.0
	lockHeight  = 28.0
	stockHeight = 64.0
	gapHeight   = 6.0

	mostRows     = 4    // sections of a shop beside each other
	rowsHeight   = 38.0 // of all of them
	waitingPixel = 2.0  // for each that waits
	drawnWaiting = 5    // of them at most
)

// scene is what a picture is about.
type scene struct {
	Shops   []string
	Servers []string // that hold the lock
	LeaseMS float64
	Initial int64
	Ignore  []string // keys that are watched and are no lock
	// Exclusive says that two sales in the section at once are a failure.
	Exclusive bool
	// Rows is how many sections of a shop are drawn beside each other, 1 to mostRows.
	Rows int
	// Replay says that the orders are known: they are drawn instead of the looks at MySQL, and those
	// that overwrote another one stand out.
	Replay  bool
	Clashed map[string]bool // requests whose orders overwrote another one
}

// picture draws the entries of a cell as they come. Its coordinates are milliseconds and pixels.
type picture struct {
	scene
	drawing.Intervals
	Columns []drawing.Column
	height  float64

	shops    map[string]*shopColumn
	locks    map[string]*lockColumn
	row      drawing.Column
	stock    int64
	sold     int64
	passages map[string]*passage // by request, until it is answered

	most   int // sections of one shop at once
	inside int // sales in the section
}

type shopColumn struct {
	drawing.Column
	rows    [mostRows]int // how many sections are drawn in each
	inside  int
	waiting int
	sent    map[string]bool
}

// passage is a request from its first point to its answer.
type passage struct {
	shop    *shopColumn
	inside  bool // in its section
	guarded bool
	from    float64 // of its section
	row     int
	faults  []fault // in its section
}

// fault is one that a request met, until its next point.
type fault struct {
	labmode.Action
	from, until float64 // until is 0 while it lasts
}

type lockColumn struct {
	drawing.Column
	lockNow
	odd  bool   // of two holders in a row, one is drawn lighter
	hint string // what ended the hold
}

// lockNow is the lock as Redis has announced it last.
type lockNow struct {
	Held    bool    `json:"held"`
	FromMS  float64 `json:"from_ms"` // when its lease began
	Expires bool    `json:"expires"`
}

func newPicture(s scene) *picture {
	p := &picture{scene: s, shops: map[string]*shopColumn{}, locks: map[string]*lockColumn{}, passages: map[string]*passage{}}
	add := func(kind, name string, height float64) drawing.Column {
		c := drawing.Column{Kind: kind, Name: name, Top: p.height, Height: height}
		p.height += height + gapHeight
		p.Columns = append(p.Columns, c)
		return c
	}
	for _, name := range s.Shops {
		p.shops[name] = &shopColumn{Column: add("shop", name, shopHeight), sent: map[string]bool{}}
	}
	for _, name := range s.Servers {
		p.locks[name] = &lockColumn{Column: add("lock", name, lockHeight)}
	}
	p.row = add("stock", "", stockHeight)
	p.setStock(0, s.Initial, 0)
	return p
}

// saw draws what is finished by an entry.
func (p *picture) saw(e Entry) {
	switch e.Kind {
	case Sent:
		if c := p.shops[e.Shop]; c != nil && !c.sent[e.Request] {
			c.sent[e.Request] = true
			p.wait(c, e.AtMS, +1)
		}
	case Answered:
		if c := p.shops[e.Shop]; c != nil && c.sent[e.Request] {
			delete(c.sent, e.Request)
			if p.passages[e.Request] == nil {
				p.wait(c, e.AtMS, -1)
			}
		}
		p.goOn(e)
		p.leave(e)
		delete(p.passages, e.Request)
	case Point:
		if p.shops[e.Shop] != nil {
			p.point(e, p.shops[e.Shop])
		}
	case Lock:
		if c := p.locks[e.Server]; c != nil && !slices.Contains(p.Ignore, e.Key) {
			p.lock(e, c)
		}
	case Done:
		p.intervention(e)
	case Ordered:
		if p.Replay {
			p.setStock(e.AtMS, *cmp.Or(e.Left, e.Stock), p.sold+*e.Read-*e.Stock)
		}
	case Looked:
		if !p.Replay {
			p.setStock(e.AtMS, *e.Stock, *e.Sold)
		}
	}
}

func (p *picture) point(e Entry, c *shopColumn) {
	p.goOn(e)
	of := p.passages[e.Request]
	switch e.Point {
	case sale.Acquiring, sale.Acquired, sale.Read:
		if of == nil {
			of = p.enter(e, c)
		} else if e.Point == sale.Acquired && !of.guarded {
			of.from = e.AtMS
		}
		of.guarded = of.guarded || e.Point == sale.Acquired
	case sale.Written:
		if of != nil && !of.guarded {
			p.leave(e)
		}
		p.mark("w"+p.alarm(e.Request), e, c.Top+1, c.Bottom()-1)
	case sale.Released:
		p.leave(e)
	}
	met, err := labmode.ParseFault(e.Fault)
	if err != nil {
		return
	}
	if of == nil {
		of = &passage{shop: c}
		p.passages[e.Request] = of
	}
	switch {
	case met.Action == labmode.Kill:
		p.mark("kill", e, c.Top, c.Bottom())
		p.leave(e)
	case of.inside:
		of.faults = append(of.faults, fault{Action: met.Action, from: e.AtMS})
	default:
		p.Begin("fault "+e.Request, e.AtMS, func(to *drawing.SVG, until float64) {
			p.block(to, "slow", of, e.AtMS, until, string(met.Action))
		})
	}
}

// goOn ends the fault of a request.
func (p *picture) goOn(e Entry) {
	if of := p.passages[e.Request]; of != nil && len(of.faults) > 0 {
		last := &of.faults[len(of.faults)-1]
		last.until = cmp.Or(last.until, e.AtMS)
	}
	p.End("fault "+e.Request, e.AtMS)
}

// enter begins the section of a request.
func (p *picture) enter(e Entry, c *shopColumn) *passage {
	of := &passage{shop: c, inside: true, from: e.AtMS}
	for i := range p.Rows {
		if c.rows[i] < c.rows[of.row] {
			of.row = i
		}
	}
	p.passages[e.Request] = of
	c.rows[of.row]++
	c.inside++
	p.most = max(p.most, c.inside)
	if c.sent[e.Request] {
		p.wait(c, e.AtMS, -1)
	}
	p.Begin("in "+e.Request, e.AtMS, func(to *drawing.SVG, until float64) {
		hint := fmt.Sprintf("%s · %.1f – %.1f ms", explain.Label(e.Request), of.from, until)
		p.block(to, "in"+p.alarm(e.Request), of, of.from, until, hint)
		for _, f := range of.faults {
			p.block(to, "slow", of, f.from, cmp.Or(f.until, until), string(f.Action))
		}
	})
	// Two at once are a failure where the section is to be exclusive.
	if p.inside++; p.Exclusive && p.inside == 2 {
		p.Begin("both", e.AtMS, func(to *drawing.SVG, until float64) {
			to.Rect("both", e.AtMS, 0, until-e.AtMS, p.Columns[len(p.Shops)-1].Bottom(), "")
		})
	}
	return of
}

// leave ends a request's time in its section.
func (p *picture) leave(e Entry) {
	of := p.passages[e.Request]
	if of == nil || !of.inside {
		return
	}
	p.End("in "+e.Request, e.AtMS)
	of.inside, of.faults = false, nil
	of.shop.rows[of.row]--
	of.shop.inside--
	if p.inside--; p.inside == 1 {
		p.End("both", e.AtMS)
	}
}

func (p *picture) alarm(request string) string {
	if p.Clashed[request] {
		return " clash"
	}
	return ""
}

// block draws something in the row of a passage.
func (p *picture) block(to *drawing.SVG, class string, of *passage, from, until float64, hint string) {
	height := rowsHeight / float64(p.Rows)
	to.Rect(class, from, of.shop.Top+2+float64(of.row)*height, until-from, height-1, hint)
}

func (p *picture) mark(class string, e Entry, top, bottom float64) {
	p.Finished.Line(class, e.AtMS, top, e.AtMS, bottom, hintOf(e))
}

// wait notes how many requests of a shop wait.
func (p *picture) wait(c *shopColumn, at float64, by int) {
	p.End("wait "+c.Name, at)
	if c.waiting = max(c.waiting+by, 0); c.waiting == 0 {
		return
	}
	height := waitingPixel * float64(min(c.waiting, drawnWaiting))
	p.Begin("wait "+c.Name, at, func(to *drawing.SVG, until float64) {
		to.Rect("wait", at, c.Bottom()-height, until-at, height, "")
	})
}

// lock notes what a Redis announced: a hold ends, begins, or has its lease renewed.
func (p *picture) lock(e Entry, c *lockColumn) {
	next, change, later := *c, explain.RedisEvent(e.What), e.AtMS-c.FromMS > 0.5
	switch {
	case change.Frees():
		next.Held = false
		if c.Held && e.What == "expired" {
			defer p.mark("expired", e, c.Top, c.Bottom())
		}
	case change.Writes() && !c.Held:
		next.Held, next.Expires, next.odd = true, false, !c.odd
	case change.Writes() && later: // a new value, and often a new holder
		next.odd = !c.odd
	case e.What == "expire" && c.Held && !c.Expires:
		c.Expires = true
		return
	case e.What == "persist":
		next.Expires = false
	case e.What != "expire" || !c.Held || !later:
		return
	}
	c.hint = hintOf(e)
	p.End("held "+c.Name, e.AtMS)
	*c = next
	if c.FromMS = e.AtMS; c.Held {
		p.Begin("held "+c.Name, e.AtMS, func(to *drawing.SVG, until float64) { p.hold(to, c, until) })
	}
}

// hold draws for how long the lock was held, with its lease running down.
func (p *picture) hold(to *drawing.SVG, c *lockColumn, until float64) {
	class := "held"
	if c.odd {
		class = "held odd"
	}
	from, top, bottom := c.FromMS, c.Top+2, c.Bottom()-2
	to.Rect(class, from, c.Top, until-from, c.Height, c.hint)
	over := from + p.LeaseMS
	switch {
	case !c.Expires || p.LeaseMS == 0:
		to.Line("lease never", from, top, until, top, "")
	case over < until: // Redis announces an expiry when it looks for one
		to.Line("lease", from, top, over, bottom, "")
		to.Line("lease", over, bottom, until, bottom, "")
	default:
		to.Line("lease", from, top, until, top+(until-from)/p.LeaseMS*(bottom-top), "")
	}
}

// intervention shades what the lab does to a shop, or to all, until it is over.
func (p *picture) intervention(e Entry) {
	name := "lab " + e.Shop + " " + e.What
	if e.Over {
		p.End(name, e.AtMS)
		return
	}
	top, bottom := 0.0, p.row.Bottom()
	if c := p.shops[e.Shop]; c != nil {
		top, bottom = c.Top, c.Bottom()
	}
	p.Begin(name, e.AtMS, func(to *drawing.SVG, until float64) {
		to.Rect("fault", e.AtMS, top, until-e.AtMS, bottom-top, strings.TrimPrefix(e.Shop+" · "+e.What, " · "))
	})
}

// setStock notes what the row has, and how many units are sold.
func (p *picture) setStock(at float64, stock, sold int64) {
	if at > 0 && stock == p.stock && sold == p.sold {
		return
	}
	p.End("stock", at)
	p.stock, p.sold = stock, sold
	level := func(units int64) float64 {
		most := float64(max(p.Initial, 1)) * 1.6
		return min(max(float64(units)/most, 0), 1) * p.row.Height
	}
	p.Begin("stock", at, func(to *drawing.SVG, until float64) {
		bottom, width := p.row.Bottom(), until-at
		to.Rect("left", at, bottom-level(stock), width, level(stock), strconv.FormatInt(stock, 10))
		if over := sold - p.Initial; over > 0 {
			to.Rect("over", at, bottom-level(sold), width, level(sold)-level(p.Initial), fmt.Sprintf("+%d", over))
		}
		to.Line("orders", at, bottom-level(sold), until, bottom-level(sold), "")
	})
}

// now is how many of each shop are in the section and wait, and the lock in the first Redis.
func (p *picture) now() (inside, waiting []int, lock lockNow) {
	for _, name := range p.Shops {
		inside, waiting = append(inside, p.shops[name].inside), append(waiting, p.shops[name].waiting)
	}
	if len(p.Servers) > 0 {
		lock = p.locks[p.Servers[0]].lockNow
	}
	return inside, waiting, lock
}

// hintOf says an entry in a few words that need no language.
func hintOf(e Entry) string {
	words := []string{fmt.Sprintf("%.1f ms", e.AtMS)}
	for _, w := range []string{string(e.Point), e.Fault, e.What} {
		if w != "" {
			words = append(words, w)
		}
	}
	if e.Request != "" {
		words = append(words, explain.Label(e.Request))
	}
	return strings.Join(words, " · ")
}
