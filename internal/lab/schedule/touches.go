package schedule

import (
	"regexp"
	"slices"
	"strings"

	"stocklock/internal/shop/labmode"
)

// Request is one request of a sale to a server.
type Request struct {
	Server string `json:"server"` // redis, mysql, etcd or quorum-N
	Text   string `json:"text"`   // the command as it is sent
	Tx     bool   `json:"-"`      // a statement of a transaction
	Source string `json:"-"`      // of a script that is not the repository's own, where it is known
	// Foreign says that a script without a Source is not the repository's own: it may touch everything.
	Foreign bool `json:"-"`
	// Isolation is that of the transaction, in the words of database/sql. Earlier are the statements that
	// the transaction has sent already.
	Isolation string      `json:"-"`
	Earlier   []Statement `json:"-"`
}

// IsLook says whether the request changes nothing and waits for nothing.
func (r Request) IsLook(s Schema) bool {
	return !slices.ContainsFunc(s.Touches(r), func(t Touch) bool { return t.Does&^(Reads|Asks) != 0 })
}

// ServerName is the name of the server of a lock, for people.
func ServerName(server string) string {
	if server == labmode.EtcdServer {
		return server
	}
	return "Redis"
}

// Does is what a request does to a thing, as far as others can notice it.
type Does uint

// What can be done. A statement in a transaction locks, and its COMMIT writes.
const (
	Reads   Does = 1 << iota // learns what is committed, or what a key holds
	Writes                   // changes it for everyone
	Locks                    // takes or frees an exclusive lock, or waits for one
	Shares                   // takes or frees a shared lock, or waits for one
	Inserts                  // adds rows that others do not see yet
	Asks                     // learns whether it is locked, and does not wait

	everything = Reads | Writes | Locks | Shares | Inserts | Asks
)

// Touch is a thing on a server, and what a request does to it.
type Touch struct {
	Server string // as in a [Request], empty for all servers
	Thing  string // such as "table items" or "key stock:1", empty for all things
	Row    string // one row by its primary key, such as "id=7", empty for any rows
	Does   Does
}

// rule is one way in which the order of two requests can be noticed.
type rule struct {
	one, other Does
	why        string
}

// rules has all of them. Two requests are independent if none applies to a thing that both touch. Not
// in the list: a plain read beside a statement of an open transaction (it reads the last committed
// version), two shared locks, and two reads.
var rules = slices.Concat([]rule{
	{Reads, Writes, "a read shows what was committed before it"},
	{Writes, Writes, "the later write stays"},
}, lockRules, []rule{
	{Asks, Locks | Shares | Inserts, "who does not wait is told whether a lock is held"},
})

// lockRules are those by which one of two requests waits for the other.
var lockRules = []rule{
	{Locks, Locks, "the first one has the lock, and the other one waits"},
	{Locks, Shares, "an exclusive lock waits for shared ones, and they for it"},
	{Locks, Inserts, "a lock covers the gap that a new row falls into, or the row with the same unique key"},
	{Inserts, Inserts, "ids are given in the order of the INSERTs, and a unique key belongs to the first"},
	{Shares, Inserts, "a shared lock covers the gap that a new row falls into"},
}

// noticed is why the first rule applies to two touches, and nothing where none does.
func noticed(one, other Touch, by []rule) (why string) {
	if !one.meets(other) {
		return ""
	}
	for _, r := range by {
		if one.Does&r.one != 0 && other.Does&r.other != 0 || one.Does&r.other != 0 && other.Does&r.one != 0 {
			return r.why
		}
	}
	return ""
}

// Everything is what a request touches of which nothing is known: it depends on all others.
func Everything(server string) []Touch { return []Touch{{Server: server, Does: everything}} }

// Dependent says why the order of two requests of different customers can be noticed, and nothing
// where it cannot.
func Dependent(a, b []Touch) (why string) {
	for _, one := range a {
		for _, other := range b {
			if why := noticed(one, other, rules); why != "" {
				return why
			}
		}
	}
	return ""
}

// Key is the key of Redis that is touched, if it is one.
func (t Touch) Key() (key string, ok bool) { return strings.CutPrefix(t.Thing, keyThing) }

// meets says whether two touches can be of one thing.
func (t Touch) meets(other Touch) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	return same(family(t.Server), family(other.Server)) && same(t.Thing, other.Thing) && same(t.Row, other.Row)
}

// family is one name for the servers of a quorum: a lock asks all of them.
func family(server string) string {
	if strings.HasPrefix(server, labmode.QuorumServer) {
		return labmode.QuorumServer
	}
	return server
}

// waits says whether one who wants the first may have to wait for who holds the second.
func waits(wanted, held Touch) bool {
	return (wanted.Does&Asks == 0 || wanted.Does == everything) && noticed(wanted, held, lockRules) != ""
}

// Clock is what a statement reads that asks MySQL for the time, and what a lease that passes writes.
const Clock = "clock"

// Touches is what a request touches, by its text alone.
func (s Schema) Touches(r Request) []Touch {
	switch r.Server {
	case "":
		return Everything("")
	case labmode.MySQLServer:
		return s.sqlTouches(r)
	}
	return redisTouches(r)
}

// MayWait says whether a request may have to wait for the end of a transaction that has sent these
// statements.
func (s Schema) MayWait(r Request, held []Statement) bool {
	if r.Server != labmode.MySQLServer || len(held) == 0 {
		return false
	}
	locks := s.Locks(held)
	return slices.ContainsFunc(s.Touches(r), func(wanted Touch) bool {
		return slices.ContainsFunc(locks, func(h Touch) bool { return waits(wanted, h) })
	})
}

// MustWait says whether the request waits for certain, and takes no lock before it does. Such a request
// does nothing before the transaction ends. One that waits for a shared lock is none: who holds
// that can want more of the row, and then each waits for the other.
func (s Schema) MustWait(r Request, held []Statement) bool {
	if r.Server != labmode.MySQLServer {
		return false
	}
	wanted := s.Touches(r)
	if len(wanted) != 1 || wanted[0].Does&(Locks|Shares) == 0 || wanted[0].Does&Asks != 0 || wanted[0].precise() == "" {
		return false
	}
	return slices.ContainsFunc(held, func(h Statement) bool {
		// The answer of an aggregate has a row where it found none.
		return h.Matched && !aggregates.MatchString(h.Text) && slices.ContainsFunc(s.Touches(Request{Server: r.Server, Text: h.Text, Tx: true}), func(t Touch) bool {
			return t.Does&Locks != 0 && t.precise() == wanted[0].precise()
		})
	})
}

var aggregates = regexp.MustCompile(`(?i)\b(?:COUNT|SUM|MIN|MAX|AVG) ?\(`)

// precise is the row or the named lock, empty for more than one.
func (t Touch) precise() string {
	if strings.HasPrefix(t.Thing, namedThing) || t.Row != "" {
		return t.Thing + " " + t.Row
	}
	return ""
}

// Locks are the locks that these statements of one transaction may hold.
func (s Schema) Locks(held []Statement) []Touch {
	var all []Touch
	for _, h := range held {
		for _, t := range s.Touches(Request{Server: labmode.MySQLServer, Text: h.Text, Tx: true}) {
			if t.Does &= Locks | Shares | Inserts; t.Does != 0 {
				all = append(all, t)
			}
		}
	}
	return all
}

// Party is one customer, with what the order of steps depends on.
type Party struct {
	Next    Request     // what it sends next, or waits with
	AtStep  bool        // it can send that now
	Waiting bool        // it has sent it, and MySQL makes it wait
	Ended   bool        // it sends nothing any more, and what it holds stays
	Held    []Statement // those by which its connection may hold locks
}

// StepTouches is what the next step of a customer touches among the others.
func (s Schema) StepTouches(of int, all []Party) []Touch {
	touches := s.Touches(all[of].Next)
	if all[of].Next.Server != labmode.MySQLServer {
		return touches
	}
	if s.MayWaitFor(of, all) >= 0 { // while it waits, others wait for what it holds
		touches = append(touches, s.Locks(all[of].Held)...)
	}
	if len(all[of].Held) > 0 {
		for _, other := range all { // who waits can go on after it
			if other.Waiting {
				touches = append(touches, s.Touches(other.Next)...)
			}
		}
	}
	return touches
}

// MayWaitFor is another customer for whom the next step may have to wait, -1 for none. Locks are given in
// the order in which they are asked for: who waits for one keeps out who asks for it later.
func (s Schema) MayWaitFor(of int, all []Party) int {
	return other(of, all, func(p Party) bool {
		held := p.Held
		if p.Waiting {
			held = append(slices.Clone(held), Statement{Text: p.Next.Text})
		}
		return s.MayWait(all[of].Next, held)
	})
}

func other(than int, all []Party, is func(Party) bool) int {
	for i, p := range all {
		if i != than && is(p) {
			return i
		}
	}
	return -1
}

// IsHeld says whether the next step of a customer waits for certain until another one goes on, so that
// it can as well be sent later. Of customers who would all wait for each other one has to begin: of
// those it is false, as it is where who holds has ended: MySQL is seen to make it wait.
func (s Schema) IsHeld(of int, all []Party) bool {
	var seen []int
	for at := of; ; {
		seen = append(seen, at)
		holder := other(at, all, func(p Party) bool { return !p.Ended && s.MustWait(all[at].Next, p.Held) })
		switch {
		case holder < 0:
			return at != of
		case all[holder].Waiting || slices.Contains(seen, holder):
			return false
		case !all[holder].AtStep:
			return true
		}
		at = holder
	}
}
