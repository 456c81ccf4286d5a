package explain

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"stocklock/internal/sale"
)

// drawing gathers what an explanation shows.
type drawing struct {
	*inquiry
	zero     time.Time
	holders  []*section
	mark     *Moment
	overlap  *Span
	end      time.Time
	from, to time.Time
	lanes    []Lane
	steps    []Step
}

func (c *inquiry) drawing(zero time.Time) *drawing { return &drawing{inquiry: c, zero: zero} }

func (d *drawing) follow(sections ...*section) {
	for _, s := range sections {
		if !slices.Contains(d.holders, s) {
			d.holders = append(d.holders, s)
		}
	}
}

func (d *drawing) moment(at time.Time, what string, alarm bool) {
	if !at.IsZero() {
		d.mark = &Moment{AtMS: d.ms(at), What: what, Alarm: alarm}
		d.until(at)
	}
}

func (d *drawing) both(from, to time.Time) {
	if !from.IsZero() && to.After(from) {
		d.overlap = &Span{FromMS: d.ms(from), ToMS: d.ms(to), Text: "two holders inside"}
	}
}

// until makes the drawing reach to a time at least.
func (d *drawing) until(t time.Time) {
	if t.After(d.end) {
		d.end = t
	}
}

// ms is a time on the drawing, in milliseconds to a hundredth.
func (d *drawing) ms(t time.Time) float64 {
	return math.Round(float64(t.Sub(d.zero))/float64(time.Millisecond)*100) / 100
}

// maxSpans is how many spans of a lane are told apart.
const maxSpans = 40

func (d *drawing) finish(x *Explanation) {
	slices.SortFunc(d.holders, func(a, b *section) int {
		return first(a.enter(), a.Answered).Compare(first(b.enter(), b.Answered))
	})
	d.frame()
	for _, s := range d.holders {
		d.lanes = append(d.lanes, Lane{Kind: HolderLane, Name: s.name(), Spans: d.holderSpans(s)})
	}
	d.others()
	locks := d.locks()
	row := len(d.lanes)
	d.lanes = append(d.lanes, Lane{Kind: RowLane, Name: "stock in MySQL", Spans: d.stock()})
	for i, s := range d.holders {
		d.holderSteps(i, s, locks, row)
	}
	d.faults()
	slices.SortStableFunc(d.steps, func(a, b Step) int { return cmp.Compare(a.AtMS, b.AtMS) })
	x.StartMS = math.Round(float64(d.zero.Sub(d.Began))/float64(time.Millisecond)*100) / 100
	x.FromMS, x.ToMS = d.ms(d.from), d.ms(d.to)
	x.Moment, x.Both, x.Lanes, x.Steps = d.mark, d.overlap, d.lanes, d.steps
}

// frame chooses what is shown: from when the first of them asked to when the last was done.
func (d *drawing) frame() {
	d.to = d.end
	for _, s := range d.holders {
		if broken := d.mark != nil && d.mark.Alarm; !broken && s.leave().After(d.to) && (d.end.IsZero() || s.leave().Before(d.end.Add(2*d.Lease))) {
			d.to = s.leave()
		}
	}
	long := d.to.Sub(d.zero)
	d.from = d.zero
	for _, s := range d.holders {
		if s.Sent.Before(d.from) {
			d.from = s.Sent
		}
		if s.entered() && s.enter().Before(d.from) {
			d.from = s.enter()
		}
	}
	// Who culpably came first is shown from its entry; a mere wait is cut short.
	earliest := d.zero.Add(-long / 8)
	for _, s := range d.holders {
		if s.entered() && s.enter().Before(d.zero) {
			earliest = earlier(earliest, s.enter().Add(-long/20))
		}
	}
	if d.from.Before(earliest) {
		d.from = earliest
	}
	d.to = d.to.Add(long / 25)
}

// span cuts to what is shown, and says whether anything is left.
func (d *drawing) span(from, to time.Time, kind SpanKind, text string) (Span, bool) {
	if from.Before(d.from) {
		from = d.from
	}
	if to.IsZero() || to.After(d.to) {
		to = d.to
	}
	return Span{FromMS: d.ms(from), ToMS: d.ms(to), Kind: kind, Text: text}, to.After(from)
}

func (d *drawing) holderSpans(s *section) []Span {
	var spans []Span
	add := func(from, to time.Time, kind SpanKind, text string) {
		if span, ok := d.span(from, to, kind, text); ok {
			spans = append(spans, span)
		}
	}
	if !s.entered() {
		add(s.Sent, s.Answered, Waiting, "waits in vain")
		return spans
	}
	add(s.Sent, s.enter(), Waiting, "waits")
	add(s.enter(), s.leave(), Inside, "inside")
	if s.fault.what != "" {
		add(s.fault.from, s.fault.until, Faulty, pastTense(s.fault.what))
	}
	return spans
}

// holderSteps tells a request's way. What it said to the lock and to the row leads there.
func (d *drawing) holderSteps(lane int, s *section, locks map[string]int, row int) {
	lock := lane
	for _, server := range slices.Sorted(maps.Keys(locks)) {
		if lock == lane {
			lock = locks[server]
		}
	}
	// The fault strikes right after its point was noted.
	tell := func(p sale.Point, at time.Time, to int, text string) {
		if text != "" {
			d.step(at, lane, to, text)
		}
		if s.fault.at == p && s.fault.what != "" {
			d.step(s.fault.from, lane, lane, pastTense(s.fault.what)+" at "+string(p))
			if !s.killed() {
				d.step(s.fault.until, lane, lane, "goes on")
			}
		}
	}
	d.step(s.Sent, lane, lane, "asks")
	if s.guarded() {
		tell(sale.Acquired, s.enter(), lock, "has the lock")
	}
	tell(sale.Acquiring, s.enter(), lane, "")
	if stock, ok := s.number(sale.Read, "stock"); ok {
		tell(sale.Read, s.at[sale.Read], row, fmt.Sprintf("reads %d", stock))
	} else {
		tell(sale.Read, s.at[sale.Read], lane, "")
	}
	tell(sale.Write, s.at[sale.Write], lane, "")
	switch stock, noted := s.number(sale.Written, "stock"); {
	case s.order != nil:
		tell(sale.Written, s.wrote(), row, fmt.Sprintf("wrote %d, order %d", s.order.StockWritten, s.order.ID))
	case noted:
		tell(sale.Written, s.wrote(), row, fmt.Sprintf("wrote %d", stock))
	}
	if s.guarded() {
		tell(sale.Releasing, s.at[sale.Releasing], lock, "releases")
	}
	if s.Outcome != "sold" && !s.killed() {
		d.step(s.Answered, lane, lane, "is told: "+outcomeWords(s.Outcome))
	}
}

// outcomeWords says an outcome to people.
func outcomeWords(outcome string) string {
	switch outcome {
	case "sold_out":
		return "sold out"
	case "fenced":
		return "fenced off"
	case "lost":
		return "lock lost"
	default:
		return outcome
	}
}

func (d *drawing) step(at time.Time, lane, to int, text string) {
	if at.IsZero() || at.Before(d.from) || at.After(d.to) {
		return
	}
	step := Step{AtMS: d.ms(at), Lane: lane, To: to, Text: text}
	step.Alarm = d.mark != nil && d.mark.Alarm && step.AtMS == d.mark.AtMS && to != lane
	d.steps = append(d.steps, step)
}

// others shows in one lane who else was in the section.
func (d *drawing) others() {
	var spans []Span
	more := 0
	for _, s := range d.sections {
		if slices.Contains(d.holders, s) || !s.entered() || s.enter().Before(d.from) || s.enter().After(d.to) {
			continue
		}
		if len(spans) == maxSpans {
			more++
			continue
		}
		if span, ok := d.span(s.enter(), s.leave(), Inside, label(s.ID)); ok {
			spans = append(spans, span)
		}
	}
	name := "others"
	if more > 0 {
		name = fmt.Sprintf("others (%d not drawn)", more)
	}
	if len(spans) > 0 {
		d.lanes = append(d.lanes, Lane{Kind: OthersLane, Name: name, Spans: spans})
	}
}

// stock shows the values that the row had.
func (d *drawing) stock() []Span {
	type value struct {
		from  time.Time
		stock int64
	}
	values := []value{{d.from, d.InitialStock}}
	for _, o := range d.Orders {
		at := o.CreatedAt
		if s := d.of(o); s != nil {
			at = s.wrote()
		}
		if at.Before(d.from) {
			values[0].stock = o.StockWritten
		} else if at.Before(d.to) {
			values = append(values, value{at, o.StockWritten})
		}
	}
	slices.SortStableFunc(values[1:], func(a, b value) int { return a.from.Compare(b.from) })
	if over := len(values) - maxSpans; over > 0 {
		values = slices.Delete(values, maxSpans/2, maxSpans/2+over) // the middle: the ends tell the story
	}
	var spans []Span
	for i, v := range values {
		until := d.to
		if i+1 < len(values) {
			until = values[i+1].from
		}
		if span, ok := d.span(v.from, until, Value, fmt.Sprint(v.stock)); ok {
			spans = append(spans, span)
		}
	}
	return spans
}

// faults shows what was done to shops and servers, and how long requests were held up.
func (d *drawing) faults() {
	lane := Lane{Kind: FaultLane, Name: "faults"}
	at := len(d.lanes)
	for _, f := range d.Faults() {
		if span, ok := d.span(f.From, f.Until, Faulty, trimJoin(f.Shop, f.What)); ok && f.From.Before(d.to) && f.Until.After(d.from) {
			lane.Spans = append(lane.Spans, span)
		}
	}
	for _, intervention := range d.Interventions {
		if intervention.What == Dead {
			continue // the one who died tells it
		}
		d.step(intervention.From, at, at, trimJoin(intervention.Shop, intervention.What))
		if intervention.Shop != "" {
			d.step(intervention.Until, at, at, trimJoin(intervention.Shop, "no longer "+intervention.What))
		}
	}
	if len(lane.Spans) > 0 {
		d.lanes = append(d.lanes, lane)
	}
}

func trimJoin(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}
