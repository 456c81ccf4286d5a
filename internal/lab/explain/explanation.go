package explain

import (
	"encoding/json"
	"strconv"
	"strings"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// Explanation says why a cell ended as it did, with what is needed to draw it.
// Times are milliseconds since the first holder had the lock.
type Explanation struct {
	Cause   verdict.Cause `json:"cause"`
	Why     []words.Text  `json:"why"`      // the cause with its facts, one text a sentence
	StartMS float64       `json:"start_ms"` // where zero is, counted from the start of the attack
	FromMS  float64       `json:"from_ms"`  // the period that is drawn
	ToMS    float64       `json:"to_ms"`
	Moment  *Moment       `json:"moment,omitempty"` // nil where there is no single one
	Both    *Span         `json:"both,omitempty"`   // when two were in the section at once
	Columns []Column      `json:"lanes"`
	Steps   []Step        `json:"steps"`
	Rows    []Row         `json:"rows,omitempty"`
}

// Known says whether the reason was found.
func (x *Explanation) Known() bool {
	return x.Cause != verdict.Unexplained && x.Cause != verdict.Untraced && x.Cause != verdict.NotInTime
}

// Moment is when the cell was decided.
type Moment struct {
	AtMS  float64    `json:"at_ms"`
	What  words.Text `json:"what"`
	Alarm bool       `json:"alarm,omitempty"` // something broke
}

// ColumnKind is what a column shows.
type ColumnKind string

// The kinds of columns, in the order in which they are drawn.
const (
	HolderColumn ColumnKind = "holder"
	OthersColumn ColumnKind = "others"
	LockColumn   ColumnKind = "lock"
	RowColumn    ColumnKind = "row"
	FaultColumn  ColumnKind = "faults"
	ServerColumn ColumnKind = "server" // of a database of several
)

// Column is what a drawing shows of one request, one Redis, the row or the faults. Time goes down in the
// terminal, and to the right on a page.
type Column struct {
	Kind  ColumnKind `json:"kind"`
	Name  words.Text `json:"name"`
	Spans []Span     `json:"spans,omitempty"`
}

// Span is a period in a column.
type Span struct {
	FromMS float64    `json:"from_ms"`
	ToMS   float64    `json:"to_ms"`
	Kind   SpanKind   `json:"kind,omitempty"`
	Text   words.Text `json:"text"`
}

// SpanKind is what a span shows.
type SpanKind string

// The kinds of spans.
const (
	Waiting SpanKind = "waiting" // for the lock
	Inside  SpanKind = "inside"  // in the section
	Open    SpanKind = "open"    // out of it, with a transaction that is not committed
	Faulty  SpanKind = "fault"   // asleep, stopped, dead, cut off
	Locked  SpanKind = "locked"  // as Redis has it
	Value   SpanKind = "value"   // of the stock
)

// Step is one thing that happened, in a column.
type Step struct {
	AtMS   float64    `json:"at_ms"`
	Column int        `json:"lane"`
	To     int        `json:"to"` // the column that it leads to; its own where none
	Text   words.Text `json:"text"`
	Alarm  bool       `json:"alarm,omitempty"` // it broke something
}

// Number is a fencing token or the id of an order, 0 for none. In JSON it is a text: what reads numbers as float64, as
// JavaScript does, would round it, and two could look equal. A number is read, too: results of before have it.
type Number int64

// MarshalJSON writes a text.
func (n Number) MarshalJSON() ([]byte, error) { return json.Marshal(strconv.FormatInt(int64(n), 10)) }

// UnmarshalJSON reads a text or a number.
func (n *Number) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*n = Number(v)
	return err
}

// Row is an order that the explanation speaks of, as MySQL has it.
type Row struct {
	ID      Number `json:"id"`
	Request string `json:"request"`
	Shop    string `json:"shop"`
	Read    int64  `json:"stock_read"`
	Written int64  `json:"stock_written"`
	Token   Number `json:"token,omitempty"`
	Nth     int    `json:"nth"` // its place in the order of commits, from 1
}

// Phrases that the package report looks for.
const (
	Asks     = "step-asks"
	AllLocks = "lane-locks" // one column for the servers of a quorum
)

// Facts are the values in a phrase of an explanation. Each phrase uses some of them.
type Facts struct {
	Holder       *Sale          `json:"holder,omitempty"`
	Other        *Sale          `json:"other,omitempty"` // the request that came in, or that waited
	Third        *Sale          `json:"third,omitempty"` // the request whose release freed the lock
	Shop         string         `json:"shop,omitempty"`
	Server       string         `json:"server,omitempty"`
	OtherServer  string         `json:"other_server,omitempty"`
	GTID         string         `json:"gtid,omitempty"`      // of a transaction
	GTIDs        string         `json:"gtids,omitempty"`     // that OtherServer has
	Key          string         `json:"key,omitempty"`       // of the lock
	OtherKey     string         `json:"other_key,omitempty"` // of the lock of Other
	Outcome      string         `json:"outcome,omitempty"`
	Intervention string         `json:"intervention,omitempty"` // its name, as in a scenario's plan
	Fault        labmode.Action `json:"fault,omitempty"`
	Point        sale.Point     `json:"point,omitempty"`
	LeaseMS      float64        `json:"lease_ms,omitempty"`
	LastedMS     float64        `json:"lasted_ms,omitempty"`
	AfterMS      float64        `json:"after_ms,omitempty"` // since the holder had the lock
	Stock        int64          `json:"stock,omitempty"`    // as it was read or written
	Initial      int64          `json:"initial_stock,omitempty"`
	Order        Number         `json:"order,omitempty"`
	OtherOrder   Number         `json:"other_order,omitempty"` // the one that was overwritten
	Count        int            `json:"count,omitempty"`
	OtherCount   int            `json:"other_count,omitempty"`
}

// Sale names a request and the shop that it was sent to.
type Sale struct {
	Request string `json:"request"` // its number in the run, such as #12
	Shop    string `json:"shop"`
}

func say(phrase string, f Facts) words.Text { return words.Text{Key: phrase, Facts: f} }
