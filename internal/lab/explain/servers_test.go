package explain

import (
	"testing"
	"time"

	"stocklock/internal/lab/verdict"
)

// TestTheServersSayWhy: the cause follows from what the servers have, and from nothing else.
func TestTheServersSayWhy(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	first, second := DatabaseServer{Name: "MySQL 1"}, DatabaseServer{Name: "MySQL 2", Received: "0-1-6", Committed: "0-1-6"}
	with := func(s DatabaseServer, change func(*DatabaseServer)) DatabaseServer { change(&s); return s }
	committed := with(first, func(s *DatabaseServer) { s.Transactions = []OrderTransaction{{"0-1-7", "3-1"}} })
	read := func(s *DatabaseServer) { s.Statements, s.Orders = []string{"SELECT * FROM `items` WHERE id = 3"}, 2 }
	held := func(s *DatabaseServer) { s.Statements = []string{"UPDATE items SET stock = stock - 1"} }
	ahead := with(second, func(s *DatabaseServer) { s.Orders = 3 })
	sold := func(order uint64) []ServersSale {
		return []ServersSale{{Request: "3-1", Shop: "shop 1", Sent: at(5), Answered: at(8), Outcome: "sold", Order: order}}
	}
	for want, e := range map[verdict.Cause]ServersEvidence{
		verdict.NotCopied:     {Verdict: verdict.Lied, Servers: []DatabaseServer{committed, second}, Sales: sold(0)},
		verdict.WentAlone:     {Verdict: verdict.Lied, Servers: []DatabaseServer{with(committed, func(s *DatabaseServer) { s.Alone = true }), second}, Sales: sold(0)},
		verdict.OldPrimary:    {Verdict: verdict.Lied, Servers: []DatabaseServer{committed, second}, Sales: sold(0), Returned: at(4)},
		verdict.AnsweredFirst: {Verdict: verdict.Lied, Servers: []DatabaseServer{first, second}, Sales: sold(0)},
		verdict.ReadBehind:    {Verdict: verdict.Oversold, Servers: []DatabaseServer{ahead, with(first, read)}, Sales: sold(9)},
		verdict.ReadReplaced:  {Verdict: verdict.Oversold, Servers: []DatabaseServer{with(first, read), ahead}, Sales: sold(9), Replaced: at(4)},
		verdict.ReadLost:      {Verdict: verdict.Oversold, Servers: []DatabaseServer{with(first, held), second}, Sales: sold(9), Replaced: at(7)},
		verdict.Unexplained:   {Verdict: verdict.Oversold, Servers: []DatabaseServer{first, second}, Sales: sold(9)},
		verdict.Unreturned:    {Verdict: verdict.Left, InRedis: true, Servers: []DatabaseServer{first, second}, Sales: sold(9), Reader: -1},
	} {
		e.Counts, e.Notes = 1, []ServersNote{{At: at(3), Server: 1, What: say(IsCut, Facts{})}}
		x := ExplainServers(e)
		if x == nil || x.Cause != want {
			t.Errorf("%+v, want the cause %s", x, want)
			continue
		}
		if drawn := x.Moment != nil; drawn != (want != verdict.Unexplained && want != verdict.Unreturned) || len(x.Columns) != 2 {
			t.Errorf("%s: a moment: %t, %d columns", want, drawn, len(x.Columns))
		}
	}
	waits := with(committed, func(s *DatabaseServer) { s.Waiting = 1 })
	if x := ExplainServers(ServersEvidence{Verdict: verdict.Lied, Servers: []DatabaseServer{waits, second}, Counts: 1, Sales: sold(0)}); x.Cause != verdict.AnsweredFirst {
		t.Errorf("answered while commits waited for the replica: %s, want %s", x.Cause, verdict.AnsweredFirst)
	}
	for answersFirst, want := range map[bool]verdict.Cause{true: verdict.AnsweredFirst, false: verdict.Unexplained} {
		if x := ExplainServers(ServersEvidence{Verdict: verdict.Lied, Servers: []DatabaseServer{first}, AnswersFirst: answersFirst, Sales: sold(0)}); x.Cause != want || len(x.Why) == 0 {
			t.Errorf("no binlog was read, and the strategy answers first: %t: %+v, want %s", answersFirst, x, want)
		}
	}
	if x := ExplainServers(ServersEvidence{Verdict: verdict.Left, Servers: []DatabaseServer{first}, Sales: sold(9), Reader: -1}); x.Cause != verdict.Unexplained {
		t.Errorf("units are left, and Redis counts none: %s", x.Cause)
	}
	if x := ExplainServers(ServersEvidence{Verdict: verdict.Held}); x != nil {
		t.Errorf("a cell that held is explained: %+v", x)
	}
}
