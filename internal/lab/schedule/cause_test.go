package schedule

import (
	"strings"
	"testing"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/shop/labmode"
)

// TestWhatALockDoesNotExclude has B read what A had overwritten, although A released before B had the lock.
func TestWhatALockDoesNotExclude(t *testing.T) {
	for _, tt := range []struct {
		what, steps string
		holds       []Hold
		want        verdict.Cause
	}{
		{"a commit after the release", "A.acquire A.select A.update A.insert A.release B.acquire B.select A.commit B.update B.insert B.release B.commit",
			[]Hold{{Customer: 'A', From: 0, To: 4, EndedBy: 'A'}, {Customer: 'B', From: 5, To: 10, EndedBy: 'B'}}, verdict.LateCommit},
		{"a lease that ends while the release is under way", "A.acquire A.select A.update A.insert B.acquire B.select A.release A.commit B.update B.insert B.release B.commit",
			[]Hold{{Customer: 'A', From: 0, To: 4}, {Customer: 'B', From: 4, To: 10, EndedBy: 'B'}}, verdict.LateCommit},
		{"a lock that a process passes on", "A.acquire A.select A.update A.insert B.select A.commit B.update B.insert B.release B.commit",
			[]Hold{{Customer: 'A', From: 0, To: 8, EndedBy: 'B'}}, verdict.LateCommit},
		{"a snapshot", "A.select B.select A.acquire A.select2 A.update A.insert A.commit A.release B.acquire B.select2 B.update B.insert B.commit B.release",
			[]Hold{{Customer: 'A', From: 2, To: 7, EndedBy: 'A'}, {Customer: 'B', From: 8, To: 13, EndedBy: 'B'}}, verdict.OldSnapshot},
		{"a snapshot whose second read was not seen", "A.select B.select A.acquire A.select2 A.update A.insert A.commit A.release B.acquire B.update B.insert B.commit B.release",
			[]Hold{{Customer: 'A', From: 2, To: 7, EndedBy: 'A'}, {Customer: 'B', From: 8, To: 12, EndedBy: 'B'}}, verdict.OldSnapshot},
		{"a lease that ends inside", "A.acquire A.select B.acquire B.select A.update A.insert A.commit A.release B.update B.insert B.commit B.release",
			[]Hold{{Customer: 'A', From: 0, To: 1}, {Customer: 'B', From: 2, To: 11, EndedBy: 'B'}}, verdict.Overrun},
	} {
		r := Record{Holds: tt.holds, Outcome: Outcome{Verdict: verdict.Oversold, Orders: []Order{{Customer: "A", Read: 1}, {Customer: "B", Read: 1}}}}
		for choice := range strings.FieldsSeq(tt.steps) {
			c, err := parseChoice(choice)
			if err != nil {
				t.Fatal(err)
			}
			e := Entry{Choice: c, Server: labmode.MySQLServer, Sent: strings.ToUpper(strings.TrimRight(c.Step, "2")), Tx: true}
			if c.Step == "acquire" || c.Step == "release" {
				e.Server, e.Tx = labmode.RedisServer, false
			}
			r.Entries = append(r.Entries, e)
		}
		if r.Conclude(State{}, false); r.Outcome.Cause != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, r.Outcome.Cause, tt.want)
		}
		r.Wire, r.Outcome.Orders = true, []Order{{Customer: "B"}, {Customer: "A"}} // as a service can list them
		if r.Conclude(State{}, false); r.Outcome.Cause != tt.want {
			t.Errorf("%s, at the wire: %s, want %s", tt.what, r.Outcome.Cause, tt.want)
		}
	}
}

// played makes entries of lines such as "A GET stock:1:page = \"1\"". An answer of ! is lost.
func played(lines string) (all []Entry) {
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		request, answer, _ := strings.Cut(strings.TrimSpace(line), " = ")
		e := Entry{Choice: Choice{Customer: Customer(request[0])}, Sent: request[2:], Answer: answer}
		if answer == "!" {
			e.Note = AnswerLost
		}
		all = append(all, e)
	}
	return all
}

func TestWhyASaleWasMadeOnTheSameStock(t *testing.T) {
	const first = `A SELECT * FROM items WHERE id = 1 = stock=1
		A UPDATE items SET stock = 0
		A COMMIT = ok
		`
	twoOrders := []Order{{Customer: "A", Read: 1}, {Customer: "B", Read: 1}}
	for _, tt := range []struct {
		what    string
		entries string
		ended   verdict.Kind
		orders  []Order
		want    verdict.Cause
	}{
		{"it went by a copy", first + `B GET stock:1:page = "1"
			B COMMIT = ok`, verdict.Oversold, twoOrders, verdict.StaleCache},
		{"it had read the copy before the other's COMMIT", `B GET stock:1:page = "1"
			` + first + "B COMMIT = ok", verdict.Oversold, twoOrders, verdict.NoLock},
		{"what it has read in Redis is another number", first + `B GET stock:1 = "1795581070270708"
			B COMMIT = ok`, verdict.Oversold, twoOrders, verdict.NoLock},
		{"it has read the row after that", first + `B GET stock:1:page = "1"
			B SELECT * FROM items WHERE id = 1 = stock=1
			B COMMIT = ok`, verdict.Oversold, twoOrders, verdict.NoLock},
		{"it sold again after a COMMIT without an answer", `A COMMIT = !
			A UPDATE items SET stock = 0 = ok
			A COMMIT = ok`, verdict.Twice, nil, verdict.UnknownCommit},
		{"it found nothing after a COMMIT without an answer", `A COMMIT = !
			A UPDATE items SET stock = 0 = 0 rows
			A ROLLBACK = ok`, verdict.Denied, nil, verdict.UnknownCommit},
		{"it only looked for its order", `A COMMIT = !
			A SELECT * FROM orders WHERE public_id = 'x' = no row`, verdict.Denied, nil, verdict.Denial},
		{"another one sold after that", `A COMMIT = !
			B UPDATE items SET stock = 0 = ok
			B COMMIT = ok`, verdict.Twice, nil, verdict.SoldAgain},
	} {
		r := Record{Entries: played(tt.entries), Outcome: Outcome{Verdict: tt.ended, Orders: tt.orders}}
		if r.Conclude(State{}, false); r.Outcome.Cause != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, r.Outcome.Cause, tt.want)
		}
	}
}

// TestAUnitThatWasPutBack is sold to an ordinary customer, when those of the run have ended.
func TestAUnitThatWasPutBack(t *testing.T) {
	for _, tt := range []struct {
		event    Event
		ordinary string
		keeps    bool
		want     verdict.Cause
	}{
		{Wait, "sold", true, verdict.Overrun},
		{Pause, "sold", true, verdict.LateWrite},
		{Wait, "sold", false, verdict.Unexplained},
		{Wait, "sold_out", true, verdict.Unexplained},
	} {
		r := Record{Played: Schedule{{Event: tt.event}}, Outcome: Outcome{Verdict: verdict.Oversold, Ordinary: tt.ordinary, Orders: []Order{{Customer: "A", Read: 1}, {Customer: OrdinaryCustomer, Read: 1}}}}
		if r.Conclude(State{}, tt.keeps); r.Outcome.Cause != tt.want {
			t.Errorf("%+v: %s", tt, r.Outcome.Cause)
		}
	}
}

// TestALockThatIsTakenAfterALook: with the same value or another one, and where a deadline in it has passed.
func TestALockThatIsTakenAfterALook(t *testing.T) {
	for _, tt := range []struct {
		lines string
		want  verdict.Cause
	}{
		{"A EXISTS k = 0\nB EXISTS k = 0\nA SET k 1 PX 300 = OK\nB SET k 1 PX 300 = OK", verdict.CheckThenSet},
		{"A GET k = (nil)\nB GET k = (nil)\nA SET k 7 = OK\nB SET k 8 = OK", verdict.CheckThenSet},
		{"B GET k = 7\nB GET k = 7\nA SET k 8 = OK\nB SET k 9 = OK", verdict.CheckThenSet},
		{"A EXISTS k = 0\nB EXISTS j = 0\nA SET k 1 = OK\nB SET k 1 NX = (nil)", verdict.Unexplained},
		{"A SET k 1 NX = OK\nB EXISTS k = 1\nB EXISTS k = 1\nB SET k 1 = OK", verdict.Unexplained},
	} {
		r := Record{Entries: played(tt.lines), Holds: []Hold{{Customer: 'A', From: 2, To: -1}},
			Outcome: Outcome{Verdict: verdict.Oversold, Orders: []Order{{Customer: "A", Read: 1}, {Customer: "B", Read: 1}}}}
		for i := range r.Entries {
			r.Entries[i].Server = labmode.RedisServer
		}
		if r.Conclude(State{}, false); r.Outcome.Cause != tt.want {
			t.Errorf("%s: %s, want %s", tt.lines, r.Outcome.Cause, tt.want)
		}
	}
}

// TestOrdersWithoutNumbers: the last of them is too many, by who ended the lock under which the one before was made.
func TestOrdersWithoutNumbers(t *testing.T) {
	r := Record{Wire: true, Entries: played("A SET k a NX = OK\nA DEL k = 1\nB SET k b NX = OK\nC DEL k = 1\nC SET k c NX = OK"),
		Holds:   []Hold{{Customer: 'A', To: 1, EndedBy: 'A'}, {Customer: 'B', From: 2, To: 3, EndedBy: 'C'}, {Customer: 'C', From: 4, To: -1}},
		Outcome: Outcome{Verdict: verdict.Oversold, Orders: []Order{{Customer: "A"}, {Customer: "B"}, {Customer: "C"}}}}
	if r.Conclude(State{}, false); r.Outcome.Cause != verdict.ForeignDelete {
		t.Errorf("%s, want %s", r.Outcome.Cause, verdict.ForeignDelete)
	}
}

// TestLocksOfDifferentKeys: a key that each customer has taken and released is a lock, and one that stays is none.
func TestLocksOfDifferentKeys(t *testing.T) {
	for lines, want := range map[string]verdict.Cause{
		"A SET lock:A 1 NX = OK\nB SET lock:B 1 NX = OK\nA DEL lock:A = 1\nB DEL lock:B = 1":                             verdict.WrongKey,
		"A EVALSHA 1 1 lock:A a = 1\nB EVALSHA 1 1 lock:B b = 1\nA EVALSHA 2 1 lock:A a = 1\nB EVALSHA 2 1 lock:B b = 1": verdict.WrongKey,
		"A SET idem:A 1 NX = OK\nB SET idem:B 1 NX = OK\nA SET idem:A sold = OK\nB SET idem:B sold = OK":                 verdict.NoLock,
		"A INCR rate:A = 1\nB INCR rate:B = 1\nA EXPIRE rate:A 60 = 1\nB EXPIRE rate:B 60 = 1":                           verdict.NoLock,
	} {
		r := Record{Entries: played(lines), Outcome: Outcome{Verdict: verdict.Oversold, Orders: []Order{{Customer: "A", Read: 1}, {Customer: "B", Read: 1}}}}
		for i := range r.Entries {
			r.Entries[i].Server = labmode.RedisServer
		}
		if r.Conclude(State{}, false); r.Outcome.Cause != want {
			t.Errorf("%s: %s, want %s", lines, r.Outcome.Cause, want)
		}
	}
}
