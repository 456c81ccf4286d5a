package schedule

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, text := range []string{
		"", "A.select B.select", "A.set wait B.set2 A.get2", "pause:A kill:B cut:C lose:A forget failover flushall", "arrive:A wait A.setnx",
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
		if got := s.inOrder(); got != want.inOrder {
			t.Errorf("%q is in order: %t", text, got)
		}
		if got := kindFor(s.Events()).alone; got != want.alone {
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

func TestIndependentSteps(t *testing.T) {
	step := func(c Customer, server, text string) Option {
		return Option{Choice: Choice{Customer: c, Step: "x"}, Request: Request{Server: server, Text: text}}
	}
	event := func(e Event, c Customer) Option { return Option{Choice: Choice{Event: e, Customer: c}} }
	redisGet, redisSet := step('A', "redis", "GET k"), step('B', "redis", "SET k 1 NX")
	read, update, insert := step('A', "mysql", "SELECT * FROM items"), step('B', "mysql", "UPDATE items SET stock = 1"), step('B', "mysql", "INSERT INTO orders VALUES (1)")
	forUpdate := step('A', "mysql", "SELECT * FROM items FOR UPDATE")
	for _, tt := range []struct {
		name  string
		a, b  Option
		clock bool
		want  bool
	}{
		{"different servers", redisSet, read, false, true},
		{"a read and a write in Redis", redisGet, redisSet, false, false},
		{"two reads in Redis", redisGet, step('B', "redis", "PTTL k"), false, true},
		{"two scripts", step('A', "redis", "EVALSHA a"), step('B', "redis", "EVALSHA a"), false, false},
		{"a read and a write in MySQL", read, update, false, false},
		{"two reads in MySQL", read, step('B', "mysql", "SELECT 1"), false, true},
		{"a locking read and an update", forUpdate, update, false, false},
		{"an INSERT beside a read", read, insert, false, true},
		{"an INSERT that may update", read, step('B', "mysql", "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1"), false, false},
		{"one customer", read, step('A', "redis", "GET k"), false, false},
		{"a first step that nobody has seen", read, step('B', "", ""), false, false},
		{"a lease that passes and MySQL", event(Wait, 0), update, false, true},
		{"a lease that passes and Redis", event(Wait, 0), redisSet, false, false},
		{"a lease that passes and a local deadline", event(Wait, 0), update, true, false},
		{"a kill and another's statement", event(Kill, 'A'), update, false, false},
		{"a kill and another's command", event(Kill, 'A'), redisSet, false, true},
		{"a kill and the victim's step", event(Kill, 'A'), read, false, false},
		{"two events", event(Wait, 0), event(Forget, 0), false, false},
	} {
		if got := independent(tt.a, tt.b, tt.clock); got != tt.want || independent(tt.b, tt.a, tt.clock) != tt.want {
			t.Errorf("%s: independent %t, want %t both ways", tt.name, got, tt.want)
		}
	}
}

func TestATranscriptCanBeTyped(t *testing.T) {
	sql := func(customer, text string, tx bool) Entry {
		return Entry{Choice: customer + ".x", Customer: customer, Server: "mysql", Sent: text, Request: &Request{Tx: tx}}
	}
	r := Record{Entries: []Entry{
		{Choice: "A.acquire", Customer: "A", Server: "redis", Sent: "EVALSHA 12ab 1 k 300", Answer: "1"},
		sql("A", "SELECT 1", false),
		sql("A", "UPDATE a", true),
		sql("B", "UPDATE b", true),
		sql("A", "INSERT a", true),
		sql("A", "COMMIT", true),
		sql("A", "UPDATE c", true),
	}}
	var b strings.Builder
	Transcript(&b, r, func(sha string) string { return map[string]string{"12ab": "return 1"}[sha] })
	want := `A redis> EVAL 'return 1' 1 k 300
   1
A mysql> SELECT 1;
A mysql> BEGIN;
A mysql> UPDATE a;
B mysql> BEGIN;
B mysql> UPDATE b;
A mysql> INSERT a;
A mysql> COMMIT;
A mysql> BEGIN;
A mysql> UPDATE c;
`
	if !strings.HasPrefix(b.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
