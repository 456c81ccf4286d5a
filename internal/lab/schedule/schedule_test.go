package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
)

func TestParse(t *testing.T) {
	for _, text := range []string{
		"", "A.select B.select", "A.set wait B.set2 A.get2", "pause:A kill:B cut:C lose:A forget failover flushall lag db-failover", "arrive:A wait A.setnx",
	} {
		s, err := Parse(text)
		if err != nil || s.String() != text {
			t.Errorf("Parse(%q) = %q, %v", text, s, err)
		}
	}
	for text, want := range map[string]string{
		"D.select":  `no customer "D": want A to C`,
		"a.select":  `no customer "a": want A to C`,
		"pause:D":   `no customer "D": want A to C`,
		"A.":        "want a customer and a command",
		"A.SELECT":  "want a customer and a command",
		"sleep":     "neither a step",
		"pause":     "want pause:A",
		"wait:A":    "want wait",
		"A.set pse": `"pse" is neither a step`,
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Parse(%q) = %v, want one line with %q", text, err, want)
		}
	}
}

// TestACommandNamesAStep: a command without one would ask what to do, on a terminal.
func TestACommandNamesAStep(t *testing.T) {
	for _, tt := range []struct{ schedule, played, as, want string }{
		{"", "A.select A.update B.select", "", "bin/loadtest step none A.select --customers 3"},
		{"", "lag A.select", "one-shop", "bin/loadtest step none A.select --as one-shop --customers 3"},
		{"A.select wait B.select C.select", "A.select wait B.select C.select", "", "bin/loadtest step none A.select wait B.select C.select"},
		{"", "", "", "bin/loadtest step none --customers 3"},
	} {
		r := Record{Strategy: "none", Customers: 3, Schedule: parsed(t, tt.schedule), Played: parsed(t, tt.played)}
		if got := r.Command("bin/loadtest", tt.as); got != tt.want {
			t.Errorf("%q of %q: %s, want %s", tt.schedule, tt.played, got, tt.want)
		}
	}
}

func parsed(t *testing.T, text string) Schedule {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseEvents(t *testing.T) {
	for names, want := range map[string]string{
		"wait,wait":        "[wait]",
		"all":              "[wait forget lose pause kill cut lag]",
		"flushall,all":     "[flushall wait forget lose pause kill cut lag]",
		"all, db-failover": `no event "db-failover"`,
		"all,arrive":       `no event "arrive"`,
	} {
		events, err := ParseEvents(strings.Split(names, ","))
		if got := fmt.Sprint(events); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("ParseEvents(%s) = %s, %v, want %s", names, got, err, want)
		}
	}
}

func TestWhatAScheduleNeeds(t *testing.T) {
	for text, want := range map[string]struct {
		customers int
		inOrder   bool
		alone     bool
	}{
		"":                        {2, true, false},
		"A.set wait":              {2, true, false},
		"A.set B.set C.set":       {3, true, false},
		"B.set":                   {2, false, false},
		"A.set C.set":             {3, false, false},
		"A.set kill:A":            {2, true, true},
		"A.set wait B.set lose:A": {2, true, false},
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Customers(); got != want.customers {
			t.Errorf("%q has %d customers, want %d", text, got, want.customers)
		}
		if got := s.InOrder(); got != want.inOrder {
			t.Errorf("%q is in order: %t", text, got)
		}
		if got := NeedsOf(s.Events()).Alone; got != want.alone {
			t.Errorf("%q needs shops of its own: %t", text, got)
		}
	}
}

// FuzzParse: a schedule is refused, or reads the same again.
func FuzzParse(f *testing.F) {
	f.Add("A.set wait pause:B")
	f.Add("A. :B wait:")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(s.String()); err != nil || again.String() != s.String() {
			t.Errorf("Parse(%q) = %q, but that is %q, %v", text, s, again, err)
		}
	})
}

func TestTheShortestOfTwo(t *testing.T) {
	for _, tt := range []struct{ shorter, longer string }{
		{"A.a B.b B.c A.d", "A.a wait"},          // fewer events
		{"A.a A.b A.c B.d", "A.a B.b A.c"},       // fewer changes
		{"A.a B.b", "A.a A.b B.b"},               // fewer steps
		{"A.a wait B.b", "A.a wait B.b forget"},  // fewer events
		{"A.a wait A.b B.b", "A.a B.b wait A.b"}, // an event is no change
	} {
		one, err := Parse(tt.shorter)
		other, otherErr := Parse(tt.longer)
		if err != nil || otherErr != nil || one.Compare(other) >= 0 || other.Compare(one) <= 0 {
			t.Errorf("%q is not shorter than %q", tt.shorter, tt.longer)
		}
	}
}

func TestATranscriptCanBeTyped(t *testing.T) {
	sql := func(customer, text string, tx bool) Entry {
		return Entry{Choice: Choice{Customer: Customer(customer[0]), Step: "x"}, Customer: customer, Server: "mysql", Sent: text, Tx: tx}
	}
	r := Record{Entries: []Entry{
		{Choice: Choice{Customer: 'A', Step: "acquire"}, Customer: "A", Server: "redis", Sent: "EVALSHA 12ab 1 k 300", Answer: "1"},
		sql("A", "SELECT 1", false),
		sql("A", "UPDATE a", true),
		sql("B", "UPDATE b", true),
		{Choice: Choice{Event: Kill, Customer: 'B'}},
		sql("A", "INSERT a", true),
		sql("A", "COMMIT", true),
		sql("A", "UPDATE c", true),
	}}
	var b strings.Builder
	Transcript(&b, words.English, r, func(sha string) string { return map[string]string{"12ab": "-- a comment\nreturn 1 -- one"}[sha] })
	want := `A redis> EVAL "return 1" 1 k 300
   1
A mysql> SELECT 1;
A mysql> START TRANSACTION;
A mysql> UPDATE a;
B mysql> START TRANSACTION;
B mysql> UPDATE b;

-- kill:B: the customer's shop is killed with kill -9, and started again
A mysql> INSERT a;
A mysql> COMMIT;
A mysql> START TRANSACTION;
A mysql> UPDATE c;
`
	if !strings.HasPrefix(b.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestHowARunEnds(t *testing.T) {
	for _, tt := range []struct {
		orders, a, b, ordinary string
		want                   string
	}{
		{"A", "sold", "sold_out", "", "held 0"},
		{"A", "sold", "busy", "", "held 0"},
		{"AB", "sold", "sold", "", "oversold 1"},
		{"A", "sold", "sold", "", "lied 1"},
		{"", "busy", "busy", "sold_out", "left 1"},
		{"", "busy", "no answer", "busy", "stuck 0"},
		{"", "sold", "no answer", "sold_out", "lied 1"},
		{"A", "busy", "sold_out", "", "denied 1"},
		{"A", "fenced", "no answer", "", "denied 1"},
		{"A", "no answer", "sold_out", "", "held 0"},
		{"", "sold_out", "busy", "busy", "stuck 0"},
		{"o", "sold_out", "sold_out", "sold", "left 1"},
		{"AA", "sold", "sold_out", "", "oversold 1"},
		{"AA of 2", "sold", "sold_out", "", "twice 1"},
		{"AA of 2", "no answer", "sold_out", "", "twice 1"},
		{"Ao of 2", "no answer", "busy", "sold", "held 0"},
		{"Ao of 3", "sold", "busy", "sold_out", "left 1"},
		{"Ao of 2", "sold", "sold_out", "sold", "left 1"},
	} {
		played, err := Parse("lose:A A.select lose:B B.select A.update B.update")
		if err != nil {
			t.Fatal(err)
		}
		r := Record{Customers: 2, Played: played, Outcome: Outcome{Stock: 1, Answers: map[string]string{"A": tt.a, "B": tt.b}, Ordinary: tt.ordinary}}
		o := &r.Outcome
		made, of, several := strings.Cut(tt.orders, " of ")
		if several {
			fmt.Sscan(of, &o.Stock)
		}
		for _, c := range made {
			o.Orders = append(o.Orders, Order{Customer: strings.Replace(string(c), "o", OrdinaryCustomer, 1)})
		}
		r.Decide()
		if got := fmt.Sprintf("%s %d", o.Verdict, o.N); got != tt.want || o.Bad() == (tt.want == "held 0") {
			t.Errorf("%+v: %s, want %s", tt, got, tt.want)
		}
	}
}

// TestWhoCameLaterHadNoUnit: a customer who came after another was answered as sold out cannot have had
// the unit that was missing.
func TestWhoCameLaterHadNoUnit(t *testing.T) {
	for played, want := range map[string]verdict.Kind{
		"A.select B.select A.update B.update C.select": verdict.Left,
		"A.select B.select C.select A.update B.update": verdict.Held,
		"A.select B.select A.update B.update":          verdict.Left,
	} {
		order, err := Parse(played)
		if err != nil {
			t.Fatal(err)
		}
		r := Record{Customers: 3, Played: order, Outcome: Outcome{Stock: 2, Orders: []Order{{Customer: "A"}, {Customer: "C"}}, Answers: map[string]string{"A": "sold", "B": "sold_out", "C": "sold"}}}
		if r.Decide(); r.Outcome.Verdict != want {
			t.Errorf("%s: %s, want %s", played, r.Outcome.Verdict, want)
		}
	}
}

// TestADrawingWithoutTimes wants the same drawing of two runs that differ in their times, owners,
// items and tokens.
func TestADrawingWithoutTimes(t *testing.T) {
	drawn := func(at float64, ttl int64, owner, item, token string) string {
		r := Record{Customers: 2, Entries: []Entry{
			{AtMS: at, Choice: Choice{Customer: 'A', Step: "set"}, Customer: "A", Server: "redis", Sent: "SET stock:" + item + " " + owner, Answer: token,
				State: &State{Holder: "A", TTLMS: ttl, Stock: 1}},
			{AtMS: 2 * at, Choice: Choice{Customer: 'B', Step: "get"}, Customer: "B", Server: "redis", Sent: "GET stock:" + item, Answer: `"` + owner + `"`,
				State: &State{TTLMS: ttl, Kept: "{stock:" + item + "}:left 1", Stock: 1}},
		}}
		var b strings.Builder
		Draw(&b, words.English, r.WithoutTimes(), 0)
		return b.String()
	}
	one := drawn(1, 299, "RTZQ5VYMZW2RFL5JRTZQ5VYMZW", "7", "[1 1795327231470 0]")
	if other := drawn(9, 12, "MNL2HQYYXG724XT6MNL2HQYYXG", "31", "[1 1795327999999 0]"); other != one {
		t.Errorf("two runs are drawn differently:\n%s\n%s", one, other)
	}
	for _, want := range []string{"set [1 … 0]", `get "A's"`, "A's ", "{stock}:left 1"} {
		if !strings.Contains(one, want) {
			t.Errorf("no %q in\n%s", want, one)
		}
	}
}

// TestPossession: a lock outlasts the commit, a row does not, and a counter is nobody's.
func TestPossession(t *testing.T) {
	const redis, mysql = labmode.RedisServer, labmode.MySQLServer
	p := Possession{Items: 2}
	for _, tt := range []struct {
		who, step, server, sent, answer string
		item                            int
		has                             []string
		waiting                         []string
	}{
		{"A", "set", redis, "SETNX {stock:1}:units 2", "1", 1, []string{"", ""}, nil},
		{"A", "set2", redis, "EVALSHA set stock:1 stock:2", "1", 0, []string{"A", "A"}, nil},
		{"B", "set", redis, "EVALSHA set stock:1 stock:2", "0", 0, []string{"A", "A"}, []string{"B for 1"}},
		{"A", "update", mysql, "UPDATE", "ok", 1, []string{"A", "A"}, []string{"B for 1"}},
		{"C", "update", mysql, "UPDATE", "ok", 2, []string{"A", "A, C"}, []string{"B for 1"}},
		{"A", "commit", mysql, "COMMIT", "ok", 0, []string{"A", "A, C"}, []string{"B for 1"}},
		{"A", "release", redis, "EVALSHA release stock:2", "1", 2, []string{"A", "C"}, []string{"B for 1"}},
		{"A", "release2", redis, "EVALSHA release stock:1", "1", 1, []string{"", "C"}, []string{"B for 1"}},
		{"C", "commit", mysql, "COMMIT", "ok", 0, []string{"", ""}, []string{"B for 1"}},
		{"B", "set2", redis, "EVALSHA set stock:1 stock:2", "1", 0, []string{"B", "B"}, nil},
	} {
		p.After(Entry{Choice: Choice{Customer: Customer(tt.who[0] - 'A'), Step: tt.step}, Customer: tt.who, Server: tt.server, Sent: tt.sent, Answer: tt.answer, Item: tt.item, Tx: tt.server == mysql})
		var s State
		if p.Put(&s); !slices.Equal(s.Has, tt.has) || !slices.Equal(s.Waiting, tt.waiting) {
			t.Errorf("after %s.%s: %q have the items, %q wait; want %q, %q", tt.who, tt.step, s.Has, s.Waiting, tt.has, tt.waiting)
		}
	}
}

// TestOrdersOfSeveralItems: the rows of a customer are joined to orders, and each must have all that was wanted.
func TestOrdersOfSeveralItems(t *testing.T) {
	for rows, want := range map[string]string{"": "lied 1", "1 2": "unclaimed 6", "1": "half-sold 1", "1 1": "twice 1", "1 2 1 2": "twice 1"} {
		r := Record{Customers: 1, Outcome: Outcome{Stock: 4, Items: 2, Answers: map[string]string{"A": "sold"}, Ordinary: "sold_out"}}
		for item := range strings.FieldsSeq(rows) {
			r.Outcome.Orders = append(r.Outcome.Orders, Order{Customer: "A", Item: int(item[0] - '0')})
		}
		r.Decide()
		if got := fmt.Sprint(r.Outcome.Verdict, " ", r.Outcome.N); got != want {
			t.Errorf("rows of the items %q: %s, want %s", rows, got, want)
		}
	}
}
