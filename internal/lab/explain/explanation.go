package explain

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Cause is the reason for which a cell ended as it did.
type Cause string

// The causes: of an oversell, of a cell that is stuck, and of one that held.
const (
	NoLock        Cause = "no-lock"            // there is no lock
	OneProcess    Cause = "one-process"        // the lock ends at the process
	WriteSkew     Cause = "write-skew"         // both summed up the same rows, and each appended one
	WrongKey      Cause = "wrong-key"          // the two had different locks
	LateCommit    Cause = "late-commit"        // the lock was released before the order was committed
	OldSnapshot   Cause = "old-snapshot"       // the transaction had read before it had the lock
	Overrun       Cause = "lease-outlasted"    // the holder was still at work when its lease ended
	Paused        Cause = "holder-paused"      // the holder's process was stopped while its lease ended
	CutOff        Cause = "holder-cut-off"     // the holder could not renew, and did not notice
	LateRelease   Cause = "late-release"       // a late holder freed a lock that was another's by then
	SplitRelease  Cause = "split-release"      // the same, late inside the release itself
	ClockSkew     Cause = "clock-skew"         // one process's clock says that a lease is over that is not
	LateGrant     Cause = "late-grant"         // the holder's lease was over when it learned that it had the lock
	Failover      Cause = "failover"           // the server that knew the lock died
	Evicted       Cause = "evicted"            // the server ran out of memory and dropped the lock
	StaleCache    Cause = "stale-cache"        // a sale went by a copy that was older than another sale
	Unexplained   Cause = "unexplained"        // the evidence does not say
	NeverWritten  Cause = "never-written"      // answered as sold, and the process died before it wrote the order
	Disowned      Cause = "order-not-told"     // rejected, and the order stands
	Repeated      Cause = "ordered-twice"      // two orders for one purchase
	CountedOut    Cause = "counted-and-lost"   // units that Redis had counted out were never sold
	NotCopied     Cause = "not-copied"         // answered as sold, and the primary was lost with the order
	WentAlone     Cause = "went-on-alone"      // the same, after the primary had stopped waiting for its replica
	OldPrimary    Cause = "old-primary"        // answered as sold by a primary that was replaced
	AnsweredFirst Cause = "answered-first"     // answered as sold before a commit that failed
	ReadBehind    Cause = "read-behind"        // a sale read on a server that had not applied the sale before
	ReadReplaced  Cause = "read-at-replaced"   // a sale read on a primary that was replaced, and wrote on the new one
	ReadLost      Cause = "read-what-was-lost" // a sale read before a failover, and wrote after it
	Untraced      Cause = "no-trace"           // there is no evidence but the orders
	NotInTime     Cause = "not-in-time"        // the search was ended before it was done
	DeadHolder    Cause = "dead-holder"        // stuck: the holder died, and its lock has no expiry
	DeadTaking    Cause = "died-taking"        // stuck: it died before it could give its lock an expiry
	SelfDeadlock  Cause = "self-deadlock"      // stuck: each sale waits for the lock that it has itself
	LostRelease   Cause = "lost-release"       // stuck: the holder's release never reached Redis
	FencedOut     Cause = "fenced-out"         // stuck: the database refuses every token
	KeptOut       Cause = "kept-out"           // held: the others waited
	Outlived      Cause = "outlived"           // held: the lock lived as long as its holder worked
	Refused       Cause = "refused-by-store"   // held: the database refused a late write
	LossNoticed   Cause = "told-in-time"       // held: the holder learned of the loss and wrote nothing
	Expired       Cause = "freed-by-expiry"    // held: a dead holder's lock freed itself
	NotOwner      Cause = "release-refused"    // held: a late release freed nothing
	Reentered     Cause = "entered-again"      // held: the holder took its own lock a second time
	Majority      Cause = "majority-survived"  // held: most servers still knew the lock
	Durable       Cause = "durable"            // held: the order was written before its process died
	OneOrder      Cause = "one-order"          // held: an answer was lost, and the purchase has one order
	NoLease       Cause = "no-lease-to-lose"   // held: there is no lock that could be lost
	NobodyMet     Cause = "nobody-met"         // held: nothing protects it, and no two sales came together
)

// Explanation says why a cell ended as it did, with what is needed to draw it.
// Times are milliseconds since the first holder had the lock.
type Explanation struct {
	Cause   Cause    `json:"cause"`
	Why     []Text   `json:"why"`      // the cause with its facts, one text a sentence
	StartMS float64  `json:"start_ms"` // where zero is, counted from the start of the attack
	FromMS  float64  `json:"from_ms"`  // the period that is drawn
	ToMS    float64  `json:"to_ms"`
	Moment  *Moment  `json:"moment,omitempty"` // nil where there is no single one
	Both    *Span    `json:"both,omitempty"`   // when two were in the section at once
	Columns []Column `json:"lanes"`
	Steps   []Step   `json:"steps"`
	Rows    []Row    `json:"rows,omitempty"`
}

// Known says whether the reason was found.
func (x *Explanation) Known() bool {
	return x.Cause != Unexplained && x.Cause != Untraced && x.Cause != NotInTime
}

// Moment is when the cell was decided.
type Moment struct {
	AtMS  float64 `json:"at_ms"`
	What  Text    `json:"what"`
	Alarm bool    `json:"alarm,omitempty"` // something broke
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
	Name  Text       `json:"name"`
	Spans []Span     `json:"spans,omitempty"`
}

// Span is a period in a column.
type Span struct {
	FromMS float64  `json:"from_ms"`
	ToMS   float64  `json:"to_ms"`
	Kind   SpanKind `json:"kind,omitempty"`
	Text   Text     `json:"text"`
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
	AtMS   float64 `json:"at_ms"`
	Column int     `json:"lane"`
	To     int     `json:"to"` // the column that it leads to; its own where none
	Text   Text    `json:"text"`
	Alarm  bool    `json:"alarm,omitempty"` // it broke something
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
