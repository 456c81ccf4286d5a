package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// DatabaseServer is what a server of a database of several says of itself.
type DatabaseServer struct {
	Name string `json:"name"`
	// Received are the GTIDs that it had from its primary when it took over, Committed those that it has in the
	// end. Both are as the server writes them, and empty without replication by GTIDs.
	Received  string `json:"received,omitempty"`
	Committed string `json:"committed,omitempty"`
	// Transactions are those of its binlog that have an order of the cell's item.
	Transactions []OrderTransaction `json:"transactions,omitempty"`
	// Alone says that its semi-synchronous replication was off when the customers of the failure were answered.
	Alone bool `json:"alone,omitempty"`
	// Waiting is how many commits waited for the replica at that time.
	Waiting int `json:"waiting,omitempty"`
	// Statements are those about the item that it has logged from the sale that decided, until that had read. Orders
	// is how many orders of the item the server had then.
	Statements []string `json:"statements,omitempty"`
	Orders     int      `json:"orders,omitempty"`
	// CertFailures and Aborts are those of a node of Galera, by the sales of all cells beside this one.
	CertFailures int `json:"cert_failures,omitempty"`
	Aborts       int `json:"aborts,omitempty"`
}

// OrderTransaction is a transaction that has made an order.
type OrderTransaction struct {
	GTID    string `json:"gtid"`
	Request string `json:"request"`
}

// Read reports whether the sale has read there.
func (s DatabaseServer) Read() bool {
	return slices.ContainsFunc(s.Statements, func(sent string) bool { return strings.HasPrefix(sent, "SELECT") })
}

// transaction returns the GTID of the transaction that has made the order of a request, empty for none.
func (s DatabaseServer) transaction(request string) string {
	for _, t := range s.Transactions {
		if t.Request == request {
			return t.GTID
		}
	}
	return ""
}

// ServersEvidence is what is known of a cell whose database is several servers.
type ServersEvidence struct {
	Verdict      verdict.Kind
	InitialStock int64
	Servers      []DatabaseServer
	InRedis      bool // the units are counted in Redis
	AnswersFirst bool // the strategy answers before it writes
	Counts       int  // the server whose orders count in the end
	Sales        []ServersSale
	Reader       int // the sale that was held when it had read, in Sales; -1 for none
	Read         int64
	Notes        []ServersNote
	Returned     time.Time // when a primary came back that was replaced; zero for never
	Replaced     time.Time // when another server took over; zero for never
	Units        int       // in orders that stand
}

// ServersSale is a sale through one of several servers.
type ServersSale struct {
	Request        string
	Shop           string
	Server         int // that its shop was led to when the customer came
	Sent, Answered time.Time
	Outcome        string
	Order          uint64 // that stands on the server which counts; 0 for none
}

// on is the server that a sale's order was made on, or that its shop was led to.
func (e ServersEvidence) on(s ServersSale) int {
	if s.Order != 0 && !e.Replaced.IsZero() && s.Answered.After(e.Replaced) {
		return e.Counts
	}
	return s.Server
}

func (s ServersSale) named() *Sale { return &Sale{Label(s.Request), s.Shop} }

// Phrases of notes on the servers of a topology.
const (
	IsCut          = "db-cut"
	HasCommitted   = "db-committed"
	CommitsWait    = "db-waits"
	GoesOnAlone    = "db-alone"
	IsKilled       = "db-killed"
	IsRestarted    = "db-restarted"
	IsPromoted     = "db-promoted"
	IsReadOnly     = "db-read-only"
	IsFound        = "db-found"
	IsFoundByNew   = "db-found-new"
	HasConnections = "db-has-connections"
	IsBehind       = "db-behind"
	HasCaughtUp    = "db-caught-up"
	ReceivesAgain  = "db-received-again"
	HasRead        = "db-has-read"
	IsIsolated     = "db-isolated"
	IsNotReady     = "db-not-ready"
	HasMembers     = "db-members"
)

// ServersNote is what a server did or met.
type ServersNote struct {
	At     time.Time
	Server int
	What   words.Text
}

// ExplainServers finds what there is to say of a cell whose database is several servers. It returns nil for a cell
// of which nothing went wrong.
func ExplainServers(e ServersEvidence) *Explanation {
	x := &Explanation{Cause: verdict.Unexplained}
	decided, moment := -1, words.Text{} // in Sales
	switch e.Verdict {
	case verdict.Lied:
		decided, moment = e.lied(x)
	case verdict.Oversold:
		decided, moment = e.readOld(x)
	case verdict.Left:
		x.Why = []words.Text{say("no-reason-for-answer", Facts{})}
		if e.InRedis {
			x.Cause, x.Why = verdict.Unreturned, []words.Text{say("units-left-counted", Facts{Count: e.Units, Initial: e.InitialStock})}
		}
	default:
		return nil
	}
	e.draw(x, decided, moment)
	return x
}

// lied explains the answers without an order, by what the other servers have of them.
func (e ServersEvidence) lied(x *Explanation) (first int, moment words.Text) {
	first = -1
	more := 0
	said := map[verdict.Cause]bool{}
	for i, s := range e.Sales {
		if s.Outcome != "sold" || s.Order != 0 {
			continue
		}
		cause, why := e.whyNoOrder(s)
		if said[cause] {
			more++
			continue
		}
		if said[cause] = true; first < 0 {
			first, x.Cause, moment = i, cause, say("moment-no-order", Facts{Holder: s.named()})
		}
		x.Why = append(x.Why, why...)
	}
	if more > 0 {
		x.Why = append(x.Why, say("so-were-others", Facts{Count: more}))
	}
	return first, moment
}

func (e ServersEvidence) whyNoOrder(s ServersSale) (verdict.Cause, []words.Text) {
	counts := e.Servers[e.Counts]
	f := Facts{Holder: s.named(), OtherServer: counts.Name, GTIDs: cmp.Or(counts.Received, counts.Committed)}
	for i, server := range e.Servers {
		if i == e.Counts {
			continue
		}
		f.Server, f.GTID = server.Name, server.transaction(s.Request)
		switch {
		case f.GTID == "":
		case !e.Returned.IsZero() && s.Sent.After(e.Returned):
			return verdict.OldPrimary, []words.Text{say("db-sold-at-old", f)}
		case server.Waiting > 0: // and so did the commit
			return verdict.AnsweredFirst, []words.Text{say("db-answered-first", f)}
		case server.Alone:
			return verdict.WentAlone, []words.Text{say("db-not-copied", f), say("db-was-alone", f)}
		default:
			return verdict.NotCopied, []words.Text{say("db-not-copied", f)}
		}
	}
	f.Server = ""
	if !e.AnswersFirst && counts.Committed == "" { // no binlog was read, which would have had the order
		return verdict.Unexplained, []words.Text{say("answered-no-order", f), say("no-reason-for-answer", f)}
	}
	return verdict.AnsweredFirst, []words.Text{say("db-answered-first", f)}
}

// readOld explains an oversell by the server on which a sale had read.
func (e ServersEvidence) readOld(x *Explanation) (reader int, moment words.Text) {
	at := slices.IndexFunc(e.Servers, DatabaseServer.Read)
	held := at < 0 // its units, without a read
	if held {
		at = slices.IndexFunc(e.Servers, func(s DatabaseServer) bool { return len(s.Statements) > 0 })
	}
	if e.Reader < 0 || at < 0 || e.Sales[e.Reader].Order == 0 {
		x.Why = []words.Text{say("sold-beyond", Facts{Count: e.Units, Initial: e.InitialStock})}
		return -1, words.Text{}
	}
	s := e.Sales[e.Reader]
	ahead := 0
	for i, server := range e.Servers {
		if server.Orders > e.Servers[ahead].Orders || i == e.Counts && server.Orders == e.Servers[ahead].Orders {
			ahead = i
		}
	}
	f := Facts{Holder: s.named(), Server: e.Servers[at].Name, Stock: e.Read, Count: e.Servers[at].Orders, OtherCount: e.Servers[ahead].Orders,
		OtherServer: e.Servers[ahead].Name, Order: Number(s.Order)}
	read := "db-read-behind"
	order := Facts{Server: e.Servers[e.on(s)].Name, Order: Number(s.Order), Stock: e.Read}
	wrote, moment := say("db-wrote-on-that", order), say("moment-read-old", order)
	switch {
	case held:
		x.Cause, read, f.OtherServer = verdict.ReadLost, "db-held-lost", e.Servers[e.Counts].Name
		wrote, moment = say("db-ordered-all-the-same", order), say("moment-hold-lost", order)
	case !e.Replaced.IsZero() && s.Sent.Before(e.Replaced):
		x.Cause, read, f.OtherServer = verdict.ReadLost, "db-read-lost", e.Servers[e.Counts].Name
	case !e.Replaced.IsZero():
		x.Cause, read = verdict.ReadReplaced, "db-read-replaced"
	default:
		x.Cause = verdict.ReadBehind
	}
	x.Why = []words.Text{say(read, f), wrote, say("sold-beyond", Facts{Count: e.Units, Initial: e.InitialStock})}
	return e.Reader, moment
}

// draw adds a column for each server, with the sales from what was done to the servers first until what was done last,
// and the sale that decided, with its moment.
func (e ServersEvidence) draw(x *Explanation, decided int, moment words.Text) {
	if len(e.Notes) == 0 {
		return
	}
	zero, last := e.Notes[0].At, e.Notes[len(e.Notes)-1].At
	ms := func(t time.Time) float64 { return words.Rounded(t.Sub(zero)) }
	for _, s := range e.Servers {
		x.Columns = append(x.Columns, Column{Kind: ServerColumn, Name: words.AsItStands(s.Name)})
	}
	add := func(at time.Time, server int, what words.Text, alarm bool) {
		x.Steps = append(x.Steps, Step{AtMS: ms(at), Column: server, To: server, Text: what, Alarm: alarm})
		x.FromMS, x.ToMS = min(x.FromMS, ms(at)), max(x.ToMS, ms(at))
	}
	for _, n := range e.Notes {
		add(n.At, n.Server, n.What, false)
	}
	for i, s := range e.Sales {
		if i != decided && (s.Sent.Before(zero) || s.Sent.After(last)) || s.Answered.IsZero() {
			continue
		}
		add(s.Answered, e.on(s), say("db-answered", Facts{Holder: s.named(), Outcome: s.Outcome, Order: Number(s.Order)}), i == decided)
	}
	e.periods(x, ms)
	slices.SortStableFunc(x.Steps, func(a, b Step) int { return cmp.Compare(a.AtMS, b.AtMS) })
	if decided >= 0 {
		x.Moment = &Moment{AtMS: ms(e.Sales[decided].Answered), What: moment, Alarm: true}
	}
}

// lasting are the phrases of what lasts on a server until another phrase about it, or until the end.
var lasting = []string{IsCut, IsKilled, IsReadOnly, IsBehind, IsIsolated, IsNotReady, GoesOnAlone}

// ending are the phrases that end it.
var ending = append([]string{IsRestarted, IsPromoted, HasCaughtUp, ReceivesAgain, HasMembers}, lasting...)

// periods adds to the columns what lasts on their servers.
func (e ServersEvidence) periods(x *Explanation, ms func(time.Time) float64) {
	for i, n := range e.Notes {
		if !slices.Contains(lasting, n.What.Key) {
			continue
		}
		span := Span{FromMS: ms(n.At), ToMS: x.ToMS, Kind: Faulty, Text: n.What}
		for _, next := range e.Notes[i+1:] {
			if next.Server == n.Server && slices.Contains(ending, next.What.Key) {
				span.ToMS = ms(next.At)
				break
			}
		}
		x.Columns[n.Server].Spans = append(x.Columns[n.Server].Spans, span)
	}
}
