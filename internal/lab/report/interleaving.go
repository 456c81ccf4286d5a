package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// The largest width of the drawing in the terminal, and the width of its first column.
const (
	drawingWidth = 100
	timeWidth    = 10
)

func (t Terminal) drawingWidth() int { return min(t.width(), drawingWidth) }

// Explain prints why a cell ended as it did: the cause, the interleaving in columns, the
// orders it speaks of, and how to see it again.
func (t Terminal) Explain(c trial.Result) {
	ended := t.verdict(c, counted(t.in(), c))
	if !c.Surprise() && c.Verdict != verdict.Skipped {
		ended = t.say("report.predicted", "word", ended)
	}
	fmt.Fprintf(t.Out, "%s: %s\n", t.paint(text.Colors{text.Bold}, c.Name()), ended)
	if what := t.done(c); what != "" {
		t.paragraph(t.say("report.was-done", "what", what))
	}
	x := c.Explanation
	if x != nil {
		fmt.Fprintln(t.Out)
	}
	t.paragraph(t.sentence(c))
	t.story(c)
	if x != nil {
		t.interleaving(x)
		t.rows(x)
	}
	if held := c.Holding(); len(held) > 0 {
		fmt.Fprintf(t.Out, "\n%s\n", t.wouldHold(held))
	}
	counts := []any{"sold", c.Sold, "stock", c.Stock(), "oversold", c.Oversold, "lost", c.LostUpdates, "requests", c.Requests, "seconds", fmt.Sprintf("%.1f", c.Seconds)}
	if p := c.Promise(); p != "" {
		counts = append(counts, "promised", p)
	}
	fmt.Fprintf(t.Out, "\n%s\n", t.say("report.counts", counts...))
	if c.Replay != "" {
		fmt.Fprintln(t.Out, t.again(c, t.drawingWidth()))
	}
}

// again is the command that runs a cell again.
func (t Terminal) again(c trial.Result, width int) string {
	return t.say("report.again", "command", brokenCommand(c.Replay, width))
}

// sentence is the explanation of a cell in words.
func (t Terminal) sentence(c trial.Result) string {
	why := reason(t.in(), c)
	switch {
	case c.Explanation != nil:
		return t.in().Say(c.Explanation.Why...)
	case why != "":
		return why
	case c.OnTopology() && c.Verdict == verdict.Held:
		return t.say("report.held.topology", "because", c.Because.Short())
	case c.Group != trial.OneServer && c.Verdict == verdict.Held:
		return t.in().Say(c.Shown().Means(c.Group))
	default:
		return t.say("report.no-trace")
	}
}

func (t Terminal) paragraph(s string) {
	Terminal{Out: t.Out, Width: t.drawingWidth()}.wrapped(s)
}

// brokenCommand breaks a long command into lines, as a shell reads them.
func brokenCommand(command string, within int) string {
	var b strings.Builder
	width := len("again: ")
	for i, flag := range strings.Split(command, " --") {
		if i > 0 {
			flag = "--" + flag
			if width+len(flag)+3 > within {
				b.WriteString(" \\\n   ")
				width = 3
			}
			b.WriteByte(' ')
		}
		b.WriteString(flag)
		width += 1 + len(flag)
	}
	return b.String()
}

// columns are those of the terminal. The servers of a quorum share one column, and one without steps
// has none.
type columns struct {
	in    *words.Language
	names []string
	of    []int // of an explanation -> of the terminal, -1 for none
}

func columnsOf(in *words.Language, x *explain.Explanation) columns {
	c := columns{in: in, of: make([]int, len(x.Columns))}
	locks := -1
	for i, column := range x.Columns {
		name, stepless := column.Name, !slices.ContainsFunc(x.Steps, func(s explain.Step) bool { return s.Column == i })
		c.of[i] = len(c.names)
		switch {
		case column.Kind == explain.OthersColumn || column.Kind == explain.FaultColumn && stepless:
			c.of[i] = -1
			continue
		case column.Kind == explain.LockColumn && locks >= 0:
			c.of[i] = locks
			continue
		case column.Kind == explain.LockColumn:
			locks, name = len(c.names), words.Text{Key: explain.AllLocks}
		}
		c.names = append(c.names, in.Say(name))
	}
	return c
}

// step is one step in the columns of the terminal, or the moment that decided.
type step struct {
	at       float64
	from, to int // to is from, or -1, where it leads nowhere
	text     string
	alarm    bool
	times    int // the servers of a quorum that made it
	moment   *explain.Moment
}

// steps joins what several servers of a quorum did at nearly the same time.
func (c columns) steps(x *explain.Explanation) []step {
	var steps []step
	last := map[step]int{} // what was done where -> its place in steps
	for _, s := range x.Steps {
		is := step{at: s.AtMS, from: c.of[s.Column], to: c.of[s.To], text: c.in.Say(s.Text), alarm: s.Alarm, times: 1}
		if is.from < 0 {
			continue
		}
		what := step{from: is.from, text: is.text}
		i, done := last[what]
		if done && x.Columns[s.Column].Kind == explain.LockColumn && is.at-steps[i].at < 10 {
			steps[i].times++
			continue
		}
		last[what] = len(steps)
		steps = append(steps, is)
	}
	for i, s := range steps {
		if s.times > 1 {
			steps[i].text += fmt.Sprintf(" ×%d", s.times)
		}
	}
	if m := x.Moment; m != nil {
		after := slices.IndexFunc(steps, func(s step) bool { return s.at > m.AtMS })
		if after < 0 {
			after = len(steps)
		}
		steps = slices.Insert(steps, after, step{at: m.AtMS, moment: m})
	}
	return steps
}

// line is one line of the drawing: the steps at a time, by column, or the moment that decided.
type line struct {
	at     float64
	cells  []string
	alarm  bool
	moment *explain.Moment
}

// together is the time, in milliseconds, within which steps are put on one line.
const together = 0.05

// lines puts steps on lines.
func (c columns) lines(steps []step) []line {
	var lines []line
	for _, s := range steps {
		n := len(lines) - 1
		if n < 0 || s.moment != nil || lines[n].moment != nil || s.at-lines[n].at >= together || lines[n].cells[s.from] != "" {
			lines = append(lines, line{at: s.at, cells: make([]string, len(c.names)), moment: s.moment})
			n++
		}
		if s.moment == nil {
			lines[n].cells[s.from], lines[n].alarm = s.text, lines[n].alarm || s.alarm
		}
	}
	return lines
}

func (t Terminal) interleaving(x *explain.Explanation) {
	c := columnsOf(t.in(), x)
	if len(c.names) == 0 {
		return
	}
	width := min((t.drawingWidth()-timeWidth)/len(c.names), 26)
	fmt.Fprintln(t.Out)
	t.drawingLine(text.Colors{text.Bold}, t.say("at"), c.names, width)
	fmt.Fprintln(t.Out, strings.Repeat("─", timeWidth+width*len(c.names)))
	last := x.FromMS
	gap := max((x.ToMS-x.FromMS)/5, 20)
	for _, l := range c.lines(c.steps(x)) {
		if l.moment != nil {
			t.moment(l.moment)
			continue
		}
		if l.at-last > gap {
			fmt.Fprintf(t.Out, "%*s  %s\n", timeWidth-2, "⋮", t.paint(text.Colors{text.Faint}, fmt.Sprintf("%.0f ms", l.at-last)))
		}
		last = l.at
		colours := text.Colors{}
		if l.alarm {
			colours = text.Colors{text.FgHiRed, text.Bold}
		}
		t.drawingLine(colours, fmt.Sprintf("%+.1f", l.at), l.cells, width)
	}
}

func (t Terminal) moment(m *explain.Moment) {
	sign, colours := "◆", text.Colors{text.FgHiGreen, text.Bold}
	if m.Alarm {
		sign, colours = "▲", text.Colors{text.FgHiRed, text.Bold}
	}
	at := fmt.Sprintf("%+.1f", m.AtMS)
	for _, line := range strings.Split(soft(sign+" "+t.in().Say(m.What), t.drawingWidth()-timeWidth), "\n") {
		fmt.Fprintln(t.Out, t.paint(colours, fmt.Sprintf("%*s  %s", timeWidth-2, at, strings.TrimSpace(line))))
		at = ""
	}
}

// drawingLine prints one line, broken into several where a cell is too long for its column.
func (t Terminal) drawingLine(colours text.Colors, at string, cells []string, width int) {
	wrapped := make([][]string, len(cells))
	height := 1
	for i, cell := range cells {
		wrapped[i] = strings.Split(text.WrapSoft(cell, width-2), "\n")
		height = max(height, len(wrapped[i]))
	}
	for n := range height {
		var b strings.Builder
		b.WriteString(text.AlignRight.Apply(at, timeWidth-2) + "  ")
		at = ""
		for i := range cells {
			cell := ""
			if n < len(wrapped[i]) {
				cell = strings.TrimSpace(wrapped[i][n])
			}
			b.WriteString(text.Pad(cell, width, ' '))
		}
		fmt.Fprintln(t.Out, t.paint(colours, strings.TrimRight(b.String(), " ")))
	}
}

func (t Terminal) rows(x *explain.Explanation) {
	if len(x.Rows) == 0 {
		return
	}
	fmt.Fprintf(t.Out, "\n%s\n", t.say("report.orders"))
	for _, r := range x.Rows {
		facts := []any{"id", r.ID, "nth", r.Nth, "request", r.Request, "shop", r.Shop, "read", r.Read, "wrote", r.Written}
		if r.Token != 0 {
			facts = append(facts, "token", r.Token)
		}
		fmt.Fprintln(t.Out, "  "+t.say("report.order", facts...))
	}
}
