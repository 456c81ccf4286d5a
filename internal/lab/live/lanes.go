package live

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/explain"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// The heights of lanes, in pixels. Widths are milliseconds: a page stretches them.
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

// Lane is one line of a drawing: where it is and what it shows.
type Lane struct {
	Kind   string  `json:"kind"` // shop, lock or stock
	Name   string  `json:"name"` // of the shop, or of the Redis
	Top    float64 `json:"top"`
	Height float64 `json:"height"`
}

// scene is what a drawing is about.
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

// drawing draws the entries of a cell as they come. Its coordinates are milliseconds and pixels.
type drawing struct {
	scene
	Lanes  []Lane
	height float64

	shops map[string]*shopLane
	locks map[string]*lockLane
	row   rowLane
	open  map[string]*passage // by request
	body  strings.Builder

	most      int // sections of one shop at once
	inside    int // sales in the section
	bothSince float64
	done      []*span // what the lab does, until it is over
}

type shopLane struct {
	Lane
	rows    [mostRows]int // how many sections are drawn in each
	waiting int
	since   float64 // of so many waiting
	sent    map[string]bool
}

// passage is a sale in its section.
type passage struct {
	shop     *shopLane
	from     float64
	row      int
	guarded  bool
	faultAt  float64
	fault    labmode.Action  // none for the zero value
	slow     strings.Builder // its faults that are over, to be drawn over the section
	finished bool
}

type lockLane struct {
	Lane
	held    bool
	from    float64 // of this holder, or of this renewal
	expires bool
	odd     bool
}

type rowLane struct {
	Lane
	from  float64
	stock int64
	sold  int64
}

type span struct {
	lanes []Lane
	from  float64
	what  string
	shop  string
}

func newDrawing(s scene) *drawing {
	d := &drawing{scene: s, shops: map[string]*shopLane{}, locks: map[string]*lockLane{}, open: map[string]*passage{}}
	add := func(kind, name string, height float64) Lane {
		l := Lane{kind, name, d.height, height}
		d.height += height + gapHeight
		d.Lanes = append(d.Lanes, l)
		return l
	}
	for _, name := range s.Shops {
		d.shops[name] = &shopLane{Lane: add("shop", name, shopHeight), sent: map[string]bool{}}
	}
	for _, name := range s.Servers {
		d.locks[name] = &lockLane{Lane: add("lock", name, lockHeight)}
	}
	d.row = rowLane{Lane: add("stock", "", stockHeight), stock: s.Initial}
	return d
}

// saw draws what is finished by an entry.
func (d *drawing) saw(e Entry) {
	switch e.Kind {
	case Sent:
		if l := d.shops[e.Shop]; l != nil && !l.sent[e.Request] {
			l.sent[e.Request] = true
			d.wait(l, e.AtMS, +1)
		}
	case Answered:
		if l := d.shops[e.Shop]; l != nil && l.sent[e.Request] {
			delete(l.sent, e.Request)
			if d.open[e.Request] == nil {
				d.wait(l, e.AtMS, -1)
			}
		}
		d.leave(e.Request, e.AtMS)
		delete(d.open, e.Request)
	case Point:
		d.point(e)
	case Lock:
		d.lock(e)
	case Done:
		d.intervention(e)
	case Ordered:
		if d.Replay {
			d.stock(e.AtMS, *e.Stock, d.row.sold+1)
		}
	case Looked:
		if !d.Replay {
			d.stock(e.AtMS, *e.Stock, *e.Sold)
		}
	}
}

func (d *drawing) point(e Entry) {
	l := d.shops[e.Shop]
	if l == nil {
		return
	}
	p := d.open[e.Request]
	if p != nil && p.fault != "" && p.fault != labmode.Kill {
		if p.finished {
			d.faulty(&d.body, p, e.AtMS)
		} else {
			d.faulty(&p.slow, p, e.AtMS)
		}
		p.fault = ""
	}
	switch e.Point {
	case sale.Acquiring, sale.Acquired, sale.Read:
		if p == nil {
			p = d.enter(l, e)
		} else if e.Point == sale.Acquired && !p.guarded {
			p.from = e.AtMS
		}
		p.guarded = p.guarded || e.Point == sale.Acquired
	case sale.Written:
		if p != nil && !p.guarded {
			d.leave(e.Request, e.AtMS)
		}
		d.line("w"+d.alarm(e.Request), e.AtMS, l.Top+1, l.Top+l.Height-1, hintOf(e))
	case sale.Released:
		d.leave(e.Request, e.AtMS)
	}
	if f, err := labmode.ParseFault(e.Fault); err == nil {
		if p == nil {
			p = &passage{shop: l, finished: true, row: 0}
			d.open[e.Request] = p
		}
		p.fault, p.faultAt = f.Action, e.AtMS
		if f.Action == labmode.Kill {
			d.line("kill", e.AtMS, l.Top, l.Top+l.Height, hintOf(e))
			d.leave(e.Request, e.AtMS)
		}
	}
}

func (d *drawing) enter(l *shopLane, e Entry) *passage {
	row := 0
	for i := range d.Rows {
		if l.rows[i] < l.rows[row] {
			row = i
		}
	}
	l.rows[row]++
	open := 0
	for _, n := range l.rows {
		open += n
	}
	d.most = max(d.most, open)
	p := &passage{shop: l, from: e.AtMS, row: row}
	d.open[e.Request] = p
	if l.sent[e.Request] {
		d.wait(l, e.AtMS, -1)
	}
	d.count(e.AtMS, +1)
	return p
}

// leave ends a sale's time in its section.
func (d *drawing) leave(request string, at float64) {
	p := d.open[request]
	if p == nil || p.finished {
		return
	}
	p.finished = true
	if p.fault != "" && p.fault != labmode.Kill {
		d.faulty(&p.slow, p, at)
	}
	p.shop.rows[p.row]--
	d.section(&d.body, p, at, "in"+d.alarm(request), request)
	d.body.WriteString(p.slow.String())
	d.count(at, -1)
}

func (d *drawing) alarm(request string) string {
	if d.Clashed[request] {
		return " clash"
	}
	return ""
}

func (d *drawing) section(to *strings.Builder, p *passage, until float64, class, request string) {
	rect(to, class, p.from, d.rowTop(p), until-p.from, d.rowHeight()-1,
		fmt.Sprintf("%s · %.1f – %.1f ms", label(request), p.from, until))
}

func (d *drawing) faulty(to *strings.Builder, p *passage, until float64) {
	rect(to, "slow", p.faultAt, d.rowTop(p), until-p.faultAt, d.rowHeight()-1, string(p.fault))
}

func (d *drawing) rowHeight() float64 { return rowsHeight / float64(d.Rows) }

func (d *drawing) rowTop(p *passage) float64 { return p.shop.Top + 2 + float64(p.row)*d.rowHeight() }

// count notes how many are in the section. Two at once are a failure where it is to be exclusive.
func (d *drawing) count(at float64, by int) {
	before := d.inside
	d.inside += by
	switch {
	case !d.Exclusive:
	case before < 2 && d.inside >= 2:
		d.bothSince = at
	case before >= 2 && d.inside < 2:
		d.both(&d.body, at)
	}
}

func (d *drawing) both(to *strings.Builder, until float64) {
	height := float64(len(d.Shops))*(shopHeight+gapHeight) - gapHeight
	rect(to, "both", d.bothSince, 0, until-d.bothSince, height, "")
}

// wait notes how many requests of a shop wait.
func (d *drawing) wait(l *shopLane, at float64, by int) {
	d.waited(&d.body, l, at)
	l.waiting, l.since = max(l.waiting+by, 0), at
}

func (d *drawing) waited(to *strings.Builder, l *shopLane, until float64) {
	if l.waiting > 0 && until > l.since {
		height := waitingPixel * float64(min(l.waiting, drawnWaiting))
		rect(to, "wait", l.since, l.Top+l.Height-height, until-l.since, height, "")
	}
}

func (d *drawing) lock(e Entry) {
	l := d.locks[e.Server]
	if l == nil || slices.Contains(d.Ignore, e.Key) {
		return
	}
	change := explain.RedisEvent(e.What)
	switch {
	case change.Frees():
		d.held(&d.body, l, e.AtMS, hintOf(e))
		if l.held && e.What == "expired" {
			d.line("expired", e.AtMS, l.Top, l.Top+l.Height, hintOf(e))
		}
		l.held = false
	case change.Writes() && !l.held:
		l.held, l.from, l.expires, l.odd = true, e.AtMS, false, !l.odd
	case change.Writes() && e.AtMS-l.from > 0.5: // a new value, and often a new holder
		d.held(&d.body, l, e.AtMS, hintOf(e))
		l.from, l.odd = e.AtMS, !l.odd
	case e.What == "expire" && l.held && !l.expires:
		l.expires = true
	case e.What == "expire" && l.held && e.AtMS-l.from > 0.5:
		d.held(&d.body, l, e.AtMS, hintOf(e))
		l.from = e.AtMS
	case e.What == "persist":
		d.held(&d.body, l, e.AtMS, hintOf(e))
		l.from, l.expires = e.AtMS, false
	}
}

// held draws for how long the lock was held, with its lease running down.
func (d *drawing) held(to *strings.Builder, l *lockLane, until float64, hint string) {
	if !l.held || until <= l.from {
		return
	}
	class := "held"
	if l.odd {
		class = "held odd"
	}
	rect(to, class, l.from, l.Top, until-l.from, l.Height, hint)
	if !l.expires || d.LeaseMS == 0 {
		stroke(to, "lease never", l.from, l.Top+2, until, l.Top+2)
		return
	}
	bottom := l.Top + l.Height - 2
	if over := l.from + d.LeaseMS; over < until { // Redis announces an expiry when it looks for one
		stroke(to, "lease", l.from, l.Top+2, over, bottom)
		stroke(to, "lease", over, bottom, until, bottom)
		return
	}
	stroke(to, "lease", l.from, l.Top+2, until, l.Top+2+(until-l.from)/d.LeaseMS*(l.Height-4))
}

func (d *drawing) intervention(e Entry) {
	if e.Over {
		i := slices.IndexFunc(d.done, func(s *span) bool { return s.what == e.What && s.shop == e.Shop })
		if i >= 0 {
			d.shade(&d.body, d.done[i], e.AtMS)
			d.done = slices.Delete(d.done, i, i+1)
		}
		return
	}
	s := &span{from: e.AtMS, what: e.What, shop: e.Shop}
	if l := d.shops[e.Shop]; l != nil {
		s.lanes = []Lane{l.Lane}
	} else {
		s.lanes = d.Lanes
	}
	d.done = append(d.done, s)
}

func (d *drawing) shade(to *strings.Builder, s *span, until float64) {
	last := s.lanes[len(s.lanes)-1]
	top := s.lanes[0].Top
	rect(to, "fault", s.from, top, until-s.from, last.Top+last.Height-top, strings.TrimPrefix(s.shop+" · "+s.what, " · "))
}

// stock notes what the row has, and how many units are sold.
func (d *drawing) stock(at float64, stock, sold int64) {
	if stock == d.row.stock && sold == d.row.sold {
		return
	}
	d.rowUntil(&d.body, at)
	d.row.from, d.row.stock, d.row.sold = at, stock, sold
}

// level is the height of a number of units.
func (d *drawing) level(units int64) float64 {
	most := float64(max(d.Initial, 1)) * 1.6
	return min(max(float64(units)/most, 0), 1) * d.row.Height
}

func (d *drawing) rowUntil(to *strings.Builder, until float64) {
	r := d.row
	if until <= r.from {
		return
	}
	bottom, width := r.Top+r.Height, until-r.from
	rect(to, "left", r.from, bottom-d.level(r.stock), width, d.level(r.stock), strconv.FormatInt(r.stock, 10))
	if over := r.sold - d.Initial; over > 0 {
		rect(to, "over", r.from, bottom-d.level(r.sold), width, d.level(r.sold)-d.level(d.Initial), fmt.Sprintf("+%d", over))
	}
	stroke(to, "orders", r.from, bottom-d.level(r.sold), until, bottom-d.level(r.sold))
}

// take returns what was finished since it was asked the last time.
func (d *drawing) take() string {
	text := d.body.String()
	d.body.Reset()
	return text
}

// unfinished draws what lasts, until now.
func (d *drawing) unfinished(now float64) string {
	var to strings.Builder
	for request, p := range d.open {
		if !p.finished {
			d.section(&to, p, now, "in", request)
			to.WriteString(p.slow.String())
			if p.fault != "" && p.fault != labmode.Kill {
				d.faulty(&to, p, now)
			}
		}
	}
	if d.Exclusive && d.inside >= 2 {
		d.both(&to, now)
	}
	for _, l := range d.shops {
		d.waited(&to, l, now)
	}
	for _, l := range d.locks {
		d.held(&to, l, now, "")
	}
	for _, s := range d.done {
		d.shade(&to, s, now)
	}
	d.rowUntil(&to, now)
	return to.String()
}

// lockNow is the lock as Redis has announced it last.
type lockNow struct {
	Held    bool    `json:"held"`
	FromMS  float64 `json:"from_ms"` // when its lease began
	Expires bool    `json:"expires"`
}

// now is how many of each shop are in the section and wait, and the lock in the first Redis.
func (d *drawing) now() (inside, waiting []int, lock lockNow) {
	for _, name := range d.Shops {
		n := 0
		for _, p := range d.open {
			if p.shop.Name == name && !p.finished {
				n++
			}
		}
		inside, waiting = append(inside, n), append(waiting, d.shops[name].waiting)
	}
	if len(d.Servers) > 0 {
		l := d.locks[d.Servers[0]]
		lock = lockNow{l.held, l.from, l.expires}
	}
	return inside, waiting, lock
}

// label is the short name of a request: its number in the cell.
func label(request string) string {
	return "#" + request[strings.LastIndexByte(request, '-')+1:]
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
		words = append(words, label(e.Request))
	}
	return strings.Join(words, " · ")
}

func (d *drawing) line(class string, x, top, bottom float64, hint string) {
	fmt.Fprintf(&d.body, `<path class="%s" d="M%s %sV%s" data-t="%s"/>`, class, number(x), number(top), number(bottom), html.EscapeString(hint))
}

func stroke(to *strings.Builder, class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(to, `<path class="%s" d="M%s %sL%s %s"/>`, class, number(x1), number(y1), number(x2), number(y2))
}

func rect(to *strings.Builder, class string, x, y, width, height float64, hint string) {
	fmt.Fprintf(to, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, number(x), number(y), number(max(width, 0.1)), number(height))
	if hint != "" {
		fmt.Fprintf(to, ` data-t="%s"`, html.EscapeString(hint))
	}
	to.WriteString("/>")
}

func number(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}
