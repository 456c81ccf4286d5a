package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
)

// drawing adds the columns and steps of an explanation.
type drawing struct {
	*inquiry
	x        *Explanation
	byEntry  []*section // those that entered
	zero     time.Time
	holders  []*section
	end      time.Time
	from, to time.Time
}

func (c *inquiry) drawing(x *Explanation, zero time.Time) *drawing {
	return &drawing{inquiry: c, x: x, byEntry: c.sections[:len(c.byTook)], zero: zero}
}

// drawn adds the drawing of an explanation: of these sales, the first of which is at zero, to the moment at
// which it went wrong, and until a time at least.
func (c *inquiry) drawn(x *Explanation, at time.Time, what words.Text, until time.Time, sales ...*section) *Explanation {
	d := c.drawing(x, first(sales[0].enter(), sales[0].Sent))
	d.follow(sales...)
	d.moment(at, what, true)
	d.until(until)
	d.finish()
	return x
}

// follow gives sales a column each, where they are known.
func (d *drawing) follow(sections ...*section) {
	for _, s := range sections {
		if s != nil && !slices.Contains(d.holders, s) {
			d.holders = append(d.holders, s)
		}
	}
}

func (d *drawing) moment(at time.Time, what words.Text, alarm bool) {
	if !at.IsZero() {
		d.x.Moment = &Moment{AtMS: d.ms(at), What: what, Alarm: alarm}
		d.until(at)
	}
}

func (d *drawing) both(from, to time.Time) {
	if !from.IsZero() && to.After(from) {
		d.x.Both = &Span{FromMS: d.ms(from), ToMS: d.ms(to), Text: say("span-two-inside", Facts{})}
	}
}

// until extends the drawing to a time at least.
func (d *drawing) until(t time.Time) { d.end = later(d.end, t) }

// ms is a time on the drawing, in milliseconds to a hundredth.
func (d *drawing) ms(t time.Time) float64 {
	return words.Rounded(t.Sub(d.zero))
}

// columnPhrase is the phrase that names its column.
func (s *section) columnPhrase() string {
	if s.isView() {
		return "lane-view"
	}
	return "lane-sale"
}

// maxSpans is the largest number of spans in a column.
const maxSpans = 40

func (d *drawing) finish() {
	slices.SortFunc(d.holders, func(a, b *section) int {
		return first(a.enter(), a.Answered).Compare(first(b.enter(), b.Answered))
	})
	d.frame()
	for _, s := range d.holders {
		d.x.Columns = append(d.x.Columns, Column{Kind: HolderColumn, Name: say(s.columnPhrase(), Facts{Holder: s.named()}), Spans: d.holderSpans(s)})
	}
	d.others()
	lock := len(d.x.Columns)
	d.locks()
	row := len(d.x.Columns)
	d.x.Columns = append(d.x.Columns, Column{Kind: RowColumn, Name: say("lane-row", Facts{}), Spans: d.stock()})
	for i, s := range d.holders {
		d.holderSteps(i, s, lock, row)
	}
	d.faults()
	slices.SortStableFunc(d.x.Steps, func(a, b Step) int { return cmp.Compare(a.AtMS, b.AtMS) })
	d.x.StartMS = words.Rounded(d.zero.Sub(d.Began))
	d.x.FromMS, d.x.ToMS = d.ms(d.from), d.ms(d.to)
}

// frame chooses the time that is shown: from the first request of a holder to the last answer.
func (d *drawing) frame() {
	d.to = d.end
	for _, s := range d.holders {
		if broken := d.x.Moment != nil && d.x.Moment.Alarm; !broken && s.leave().After(d.to) && (d.end.IsZero() || s.leave().Before(d.end.Add(2*d.Lease))) {
			d.to = s.leave()
		}
	}
	long := d.to.Sub(d.zero)
	d.from = d.zero
	earliest := d.zero.Add(-long / 8) // a wait is cut short
	for _, s := range d.holders {
		d.from = earlier(d.from, s.Sent)
		if s.entered() && s.enter().Before(d.zero) { // it is shown from its entry
			d.from, earliest = earlier(d.from, s.enter()), earlier(earliest, s.enter().Add(-long/20))
		}
	}
	d.from, d.to = later(d.from, earliest), d.to.Add(long/25)
}

// span cuts a time to the frame, and reports whether anything of it is left.
func (d *drawing) span(from, to time.Time, kind SpanKind, text words.Text) (Span, bool) {
	from = later(from, d.from)
	if to.IsZero() || to.After(d.to) {
		to = d.to
	}
	return Span{FromMS: d.ms(from), ToMS: d.ms(to), Kind: kind, Text: text}, to.After(from)
}

func (d *drawing) holderSpans(s *section) []Span {
	var spans []Span
	add := func(from, to time.Time, kind SpanKind, phrase string) {
		if span, ok := d.span(from, to, kind, say(phrase, Facts{Fault: s.fault.Action})); ok {
			spans = append(spans, span)
		}
	}
	if !s.entered() {
		add(s.Sent, s.Answered, Waiting, "span-waits-in-vain")
		return spans
	}
	if !s.isView() {
		add(s.Sent, s.enter(), Waiting, "span-waits")
	}
	add(s.enter(), s.leave(), Inside, "span-inside")
	if written := s.at[sale.Written]; written.After(s.leave()) {
		add(s.leave(), written, Open, "span-open")
	}
	if s.fault.met() {
		add(s.fault.from, s.fault.until, Faulty, "span-fault")
	}
	return spans
}

// holderSteps adds what a request did, point by point. A step that asks something of the lock or
// of the row leads to that column.
func (d *drawing) holderSteps(column int, s *section, lock, row int) {
	if lock == row { // no server announced anything
		lock = column
	}
	// A fault begins right after its point was noted.
	tell := func(p sale.Point, at time.Time, to int, phrase string, f Facts) {
		if phrase != "" {
			d.step(at, column, to, say(phrase, f))
		}
		if !s.fault.met() || s.fault.Point != p {
			return
		}
		d.step(s.fault.from, column, column, say("step-fault", Facts{Fault: s.fault.Action, Point: p}))
		if !s.killed() {
			d.step(s.fault.until, column, column, say("step-goes-on", Facts{}))
		}
	}
	d.step(s.Sent, column, column, say(Asks, Facts{}))
	if s.guarded() {
		tell(sale.Acquired, s.enter(), lock, "step-has-the-lock", Facts{})
	}
	tell(sale.Acquiring, s.enter(), column, "", Facts{})
	if stock, ok := s.number(sale.Read, "stock"); ok {
		to, reads := row, "step-reads"
		switch s.facts[sale.Read][sale.From] {
		case sale.FromSum:
			reads = "step-sums"
		case sale.FromCache:
			to, reads = column, "step-reads-copy"
		}
		tell(sale.Read, s.at[sale.Read], to, reads, Facts{Stock: stock})
	} else {
		tell(sale.Read, s.at[sale.Read], column, "", Facts{})
	}
	tell(sale.Write, s.at[sale.Write], column, "", Facts{})
	if stock, ok := s.number(sale.Viewed, "stock"); ok {
		tell(sale.Viewed, s.at[sale.Viewed], row, "step-reads", Facts{Stock: stock})
		d.step(s.at[sale.Stored], column, column, say("step-stores", Facts{Stock: stock}))
	}
	switch stock, noted := s.number(sale.Written, "stock"); {
	case s.order != nil && (d.Declared.State.Elsewhere() || s.summed()):
		tell(sale.Written, s.wrote(), row, "step-order", Facts{Order: Number(s.order.ID)})
	case s.order != nil:
		tell(sale.Written, s.wrote(), row, "step-wrote", Facts{Stock: s.order.StockWritten, Order: Number(s.order.ID)})
	case noted:
		tell(sale.Written, s.wrote(), row, "step-wrote", Facts{Stock: stock})
	}
	if s.guarded() {
		tell(sale.Releasing, s.at[sale.Releasing], lock, "step-releases", Facts{})
	}
	if s.Outcome != "sold" && !s.killed() && !s.isView() {
		d.step(s.Answered, column, column, say("step-answered", Facts{Outcome: s.Outcome}))
	}
}

// step adds a step, and reports whether it is within the frame.
func (d *drawing) step(at time.Time, column, to int, text words.Text) bool {
	if at.IsZero() || at.Before(d.from) || at.After(d.to) {
		return false
	}
	step := Step{AtMS: d.ms(at), Column: column, To: to, Text: text}
	step.Alarm = d.x.Moment != nil && d.x.Moment.Alarm && step.AtMS == d.x.Moment.AtMS && to != column
	d.x.Steps = append(d.x.Steps, step)
	return true
}

// others adds one column for all other requests that were in the section.
func (d *drawing) others() {
	var spans []Span
	more := 0
	for _, s := range d.sections {
		over := s.enter().Before(d.from) && !s.leave().After(d.from) // or it is not known when it left
		if slices.Contains(d.holders, s) || !s.entered() || over || s.enter().After(d.to) {
			continue
		}
		if len(spans) == maxSpans {
			more++
			continue
		}
		if span, ok := d.span(s.enter(), s.leave(), Inside, words.AsItStands(Label(s.ID))); ok {
			spans = append(spans, span)
		}
	}
	if len(spans) > 0 {
		d.x.Columns = append(d.x.Columns, Column{Kind: OthersColumn, Name: say("lane-others", Facts{Count: more}), Spans: spans})
	}
}

// stock returns the values that the row had, where the orders tell them.
func (d *drawing) stock() []Span {
	if d.Declared.State.Elsewhere() {
		return nil
	}
	type value struct {
		from  time.Time
		stock int64
	}
	values := []value{{d.from, d.InitialStock}}
	left := d.InitialStock
	for _, o := range d.Orders {
		at, is := o.CreatedAt, o.StockWritten
		if left -= o.Quantity; d.holders[0].summed() {
			is = left // nobody writes a sum
		}
		if s := d.of(o); s != nil {
			at = s.wrote()
		}
		if at.Before(d.from) {
			values[0].stock = is
		} else if at.Before(d.to) {
			values = append(values, value{at, is})
		}
	}
	slices.SortStableFunc(values[1:], func(a, b value) int { return a.from.Compare(b.from) })
	var spans []Span
	for i, v := range values {
		until := d.to
		if i+1 < len(values) {
			until = values[i+1].from
		}
		if span, ok := d.span(v.from, until, Value, words.AsItStands(fmt.Sprint(v.stock))); ok {
			spans = append(spans, span)
		}
	}
	if over := len(spans) - maxSpans; over > 0 {
		spans = slices.Delete(spans, maxSpans/2, maxSpans/2+over) // the middle: the ends show what happened
	}
	return spans
}

// faults adds a column for what was done to shops and servers, and for how long faults held up
// requests.
func (d *drawing) faults() {
	column := Column{Kind: FaultColumn, Name: say("lane-faults", Facts{})}
	at := len(d.x.Columns)
	for _, f := range d.periodsOf(d.sections) {
		if span, ok := d.span(f.From, f.Until, Faulty, f.What); ok && f.From.Before(d.to) && f.Until.After(d.from) {
			column.Spans = append(column.Spans, span)
		}
	}
	for _, intervention := range d.Interventions {
		if intervention.What == Dead {
			continue // the step of the request that died says it
		}
		f := Facts{Shop: intervention.Shop, Intervention: intervention.What}
		d.step(intervention.From, at, at, say("step-intervention", f))
		if intervention.Shop != "" {
			d.step(intervention.Until, at, at, say("step-intervention-over", f))
		}
	}
	if len(column.Spans) > 0 {
		d.x.Columns = append(d.x.Columns, column)
	}
}
