package schedule

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/shop/labmode"
)

// Conclude finds the cause of a record's outcome in what the servers showed. End is the state after the
// run. Keeps says that something else than a lock can have kept others out.
func (r *Record) Conclude(end State, keeps bool) {
	r.Outcome.Cause = r.causeOf(end, keeps)
}

func (r *Record) causeOf(end State, keeps bool) verdict.Cause {
	switch v := r.Outcome.Verdict; {
	case r.Outcome.Reserved != nil && r.Outcome.Bad():
		return r.Outcome.causeOfReservation()
	case v == verdict.Lied && r.lostWithPrimary():
		return verdict.NotCopied
	case (v == verdict.Denied || v == verdict.Twice || v == verdict.Oversold) && r.triedAgain():
		return verdict.UnknownCommit
	case v == verdict.Crashed && r.Deadlocks() > 0:
		return verdict.Deadlock
	case v == verdict.Left:
		return r.causeOfRefusal()
	case v == verdict.Stuck:
		return r.causeOfStuck(end)
	case v == verdict.Oversold:
		return r.causeOfOversell(keeps)
	default:
		return usual[v]
	}
}

// usual are the causes of the verdicts that causeOf does not look into.
var usual = map[verdict.Kind]verdict.Cause{
	verdict.Lied: verdict.NoOrder, verdict.Denied: verdict.Denial, verdict.Twice: verdict.SoldAgain, verdict.HalfSold: verdict.TornOrder,
	verdict.Crashed: verdict.Crash, verdict.Unclaimed: verdict.Abandoned, verdict.Unbalanced: verdict.Unexplained,
}

func (r *Record) causeOfStuck(end State) verdict.Cause {
	switch {
	case end.Locked() && end.TTLMS != -1 && r.Played.Has(Kill):
		return verdict.Prolonged
	case end.TTLMS != -1:
		return verdict.Unexplained
	case r.Played.Has(Kill):
		return verdict.NoExpiry
	case r.Played.Has(Lose):
		return verdict.LostAnswer
	}
	return verdict.LostRelease
}

// causeOfOversell looks at the first two customers of whom one overwrote the other, and at how the
// second of them got in while the first had not finished.
func (r *Record) causeOfOversell(keeps bool) verdict.Cause {
	first, second := overwritten(r.Outcome.Orders)
	if first == 0 && r.Wire { // what a customer did not read in SQL is not known
		if first, second = lastTwo(r.Outcome.Orders); r.lastInSQL(second) < r.lastInSQL(first) { // a service lists them in any order
			first, second = second, first
		}
	}
	either := func(is func(one, other Customer) bool) bool { return is(first, second) || is(second, first) }
	switch {
	case first == 0 && keeps && r.Outcome.Ordinary == string(load.Sold): // who came afterwards was sold a unit that had been put back
		return r.causeWithoutLock(keeps)
	case first == 0:
		return verdict.Unexplained
	case r.appendedToSum(first) && r.appendedToSum(second):
		return verdict.WriteSkew
	case r.lockedApart(first, second):
		return verdict.WrongKey
	case either(r.readStale):
		return verdict.StaleCache
	case either(r.readBehind):
		return verdict.ReadBehind
	case either(r.checkedThenSet):
		return verdict.CheckThenSet
	}
	one, other := r.lastHold(first), r.lastHold(second)
	otherwise := verdict.Unexplained
	if r.Wire && either(r.checkedEarly) {
		otherwise = verdict.CheckedEarly
	}
	if one < 0 && other < 0 {
		switch {
		case otherwise == verdict.CheckedEarly:
			return otherwise
		case r.wentOn(first, named), r.wentOn(second, named):
			return verdict.WithoutLock
		}
		return r.causeWithoutLock(keeps)
	}
	entered := len(r.Entries)
	if other >= 0 {
		entered = r.Holds[other].From
	}
	if cause := r.causeUnderLock(first, second, entered, one < 0 || other < 0); cause != "" {
		return cause
	}
	if (one < 0 && r.wentOn(first, taking)) != (other < 0 && r.wentOn(second, taking)) {
		return verdict.WithoutLock
	}
	if one < 0 || other < 0 {
		return otherwise
	}
	// The holds from the earlier one to the later one follow each other without a gap in the list:
	// the first that ended other than by its own holder let the rest in.
	for _, h := range r.Holds[min(one, other):max(one, other)] {
		if h.EndedBy != h.Customer || h.EndedBy == 0 {
			return r.causeOfEnd(h)
		}
	}
	return otherwise
}

var (
	locking = regexp.MustCompile(`(?i)\bFOR (?:UPDATE|SHARE)\b|\bLOCK IN SHARE MODE\b|\bGET_LOCK ?\(`)
	tableOf = regexp.MustCompile("(?i)\\b(?:FROM|UPDATE) (?:[`\\w]+\\.)?`?(\\w+)")
)

// checkedEarly says whether a customer got a lock when the one before had ended its work, and had read the table that it
// changes before that alone.
func (r *Record) checkedEarly(before, after Customer) bool {
	changes, done := "", -1
	for i, e := range r.Entries {
		switch {
		case e.Server != labmode.MySQLServer:
		case e.Choice.Customer == before:
			done = i
		case e.Choice.Customer == after && strings.HasPrefix(e.Sent, "UPDATE "):
			changes = cmp.Or(changes, tableIn(e.Sent))
		}
	}
	read, locked, apart := false, false, false
	for i, e := range r.Entries {
		got := slices.ContainsFunc(r.Holds, func(h Hold) bool { return h.Customer == after && h.From == i })
		if e.Choice.Customer != after || !read && !strings.HasPrefix(e.Sent, "SELECT") {
			continue
		}
		switch {
		case got || locking.MatchString(e.Sent):
			locked, apart = read, !e.Blocked.IsZero() || done < i
		case strings.HasPrefix(e.Sent, "SELECT") && tableIn(e.Sent) == changes:
			read, locked = true, false
		}
	}
	return changes != "" && locked && apart
}

func tableIn(statement string) string {
	if of := tableOf.FindStringSubmatch(statement); of != nil {
		return of[1]
	}
	return ""
}

// checkedThenSet says whether a customer looked at the lock before another one set it, and then set it, too, whatever it was.
func (r *Record) checkedThenSet(one, other Customer) bool {
	for _, h := range r.Holds {
		key := ""
		if h.Customer == one {
			key = setAnyway(r.Entries[h.From].Sent)
		}
		looked, set := false, false
		for i, e := range r.Entries {
			if e.Choice.Customer != other || !e.Choice.IsStep() || key == "" {
				continue
			}
			looked = looked || i < h.From && strings.Contains(e.Sent, key) && e.Request().IsLook(nil)
			set = set || i > h.From && setAnyway(e.Sent) == key
		}
		if looked && set {
			return true
		}
	}
	return false
}

// setAnyway is the key that a command sets whatever it holds, empty for none.
func setAnyway(sent string) string {
	words := strings.Fields(sent)
	if len(words) < 3 || words[0] != "SET" && words[0] != "SETEX" && words[0] != "PSETEX" ||
		slices.ContainsFunc(words[3:], func(w string) bool { return w == "NX" || w == "XX" || w == "IFEQ" }) {
		return ""
	}
	return words[1]
}

// appendedToSum says whether a customer added a row to a table after summing up rows of it.
func (r *Record) appendedToSum(c Customer) bool {
	summed := ""
	for _, e := range r.Entries {
		if e.Choice.Customer != c || !e.Choice.IsStep() {
			continue
		}
		switch part := parse(e.Sent); {
		case part["verb"] == "SELECT" && sums.MatchString(part["what"]):
			summed = part["table"]
		case part["verb"] == "INSERT" && part["table"] == summed:
			return true
		}
	}
	return false
}

var sums = regexp.MustCompile(`(?i)\bSUM ?\(`)

// lockedApart says whether each of two customers took a key in Redis and released it, and no key was changed by both.
func (r *Record) lockedApart(one, other Customer) bool {
	changed, locks := map[Customer][]string{}, map[Customer]bool{}
	for _, e := range r.Entries {
		c := e.Choice.Customer
		if c == 0 || !e.Choice.IsStep() || e.Server == labmode.MySQLServer {
			continue
		}
		for _, t := range redisTouches(e.Request()) {
			if t.Thing == "" {
				return false // nobody knows which
			}
			if key, isKey := t.Key(); isKey && t.Does&Writes != 0 {
				locks[c] = locks[c] || slices.Contains(changed[c], key) && frees.MatchString(e.Sent)
				changed[c] = append(changed[c], key)
			}
		}
	}
	return locks[one] && locks[other] &&
		!slices.ContainsFunc(changed[one], func(key string) bool { return slices.Contains(changed[other], key) })
}

var frees = regexp.MustCompile(`^(?:DEL|DELEX|UNLINK|GETDEL|EVAL|EVALSHA|FCALL)\b`)

// causeUnderLock is why the second of two holders read what the first one had overwritten although the
// lock kept them apart: that was not committed when the lock was released, or the transaction of the
// second one had read before. It is empty where neither is so. Entered is when the second one got the lock.
// Passed says that the lock went from one to the other inside a process, which no server sees.
func (r *Record) causeUnderLock(first, second Customer, entered int, passed bool) verdict.Cause {
	written, released, committed, read := -1, false, -1, -1
	for i, e := range r.Entries {
		switch {
		case e.Choice.Customer == second && e.Tx && strings.HasPrefix(e.Sent, "SELECT"):
			read = i
		case e.Choice.Customer != first || committed >= 0 || !e.Choice.IsStep():
		case e.Sent == "COMMIT":
			committed = i
		case e.Server == labmode.MySQLServer:
			written, released = i, passed
		default:
			released = true
		}
	}
	switch {
	case committed < 0 || read < 0:
		return ""
	case committed < read || committed < entered && !passed:
		return verdict.OldSnapshot
	case released && written < read:
		return verdict.LateCommit
	}
	return ""
}

// triedAgain says whether a sale wrote, or tried to, after a commit whose answer was lost.
func (r *Record) triedAgain() bool {
	lost := map[Customer]bool{}
	for _, e := range r.Entries {
		switch {
		case e.Sent == "COMMIT" && e.Note.Key == AnswerLost.Key:
			lost[e.Choice.Customer] = true
		case lost[e.Choice.Customer] && (strings.HasPrefix(e.Sent, "UPDATE ") || strings.HasPrefix(e.Sent, "INSERT ")):
			return true
		}
	}
	return false
}

// readStale says whether a customer went by a copy in Redis that it had read after another one's COMMIT, and
// that was what the other had read: it had read no item in MySQL since.
func (r *Record) readStale(before, after Customer) bool {
	i := slices.IndexFunc(r.Outcome.Orders, func(o Order) bool { return o.Customer == after.String() })
	if i < 0 {
		return false
	}
	committed, stale := false, false
	copied := strconv.Quote(strconv.FormatInt(r.Outcome.Orders[i].Read, 10))
	for _, e := range r.Entries {
		switch {
		case e.Choice.Customer == before && e.Sent == "COMMIT":
			committed = true
		case e.Choice.Customer != after:
		case strings.HasPrefix(e.Sent, "GET ") && e.Answer == copied:
			stale = committed
		case strings.HasPrefix(e.Sent, "SELECT ") && strings.Contains(e.Sent, "items"):
			stale = false
		}
	}
	return stale
}

// readBehind says whether a customer read last on the replica, after another one's COMMIT, and found there what
// the other had found before it.
func (r *Record) readBehind(before, after Customer) bool {
	committed, behind := false, false
	for _, e := range r.Entries {
		switch {
		case e.Choice.Customer == before && e.Sent == "COMMIT":
			committed = true
		case e.Choice.Customer == after && strings.HasPrefix(e.Sent, "SELECT "):
			behind = committed && e.Replica
		}
	}
	return behind && r.Played.Has(Lag)
}

// lostWithPrimary says whether a customer who was answered as sold had committed before the primary died, and
// has no order.
func (r *Record) lostWithPrimary() bool {
	committed := map[string]bool{}
	for _, e := range r.Entries {
		switch {
		case e.Sent == "COMMIT" && e.Answer == "ok":
			committed[e.Customer] = true
		case e.Choice.Event == DBFailover:
			for customer, answer := range r.Outcome.Answers {
				if committed[customer] && answer == string(load.Sold) && len(r.Outcome.purchases()[customer].Orders) == 0 {
					return true
				}
			}
		}
	}
	return false
}

// causeWithoutLock is why a strategy failed that keeps something else than a lock. An event that
// would have ended a lock has ended that.
func (r *Record) causeWithoutLock(keeps bool) verdict.Cause {
	if !keeps {
		return verdict.NoLock
	}
	for _, c := range r.Played {
		switch {
		case c.Event.Forgets():
			return verdict.Forgotten
		case c.Event == Pause:
			return verdict.LateWrite
		case c.Event == Cut:
			return verdict.Unnoticed
		case c.Event == Wait:
			return verdict.Overrun
		}
	}
	return verdict.NoLock
}

func (r *Record) causeOfEnd(h Hold) verdict.Cause {
	switch {
	case h.EndedBy != 0 && r.tookOver(h):
		if h.Fresh {
			return verdict.StaleDeadline
		}
	case h.EndedBy != 0 && h.Checked:
		return verdict.SplitRelease
	case h.EndedBy != 0:
		return verdict.ForeignDelete
	case h.EndedEvent.Forgets():
		return verdict.Forgotten
	}
	return r.causeOfLease(h)
}

var (
	taking = regexp.MustCompile(`(?i)^SET(?:NX | .* NX\b)`)
	named  = regexp.MustCompile(`(?i)\bGET_LOCK ?\(`)
)

// wentOn says whether the last try of a customer to take a lock by such a request was refused.
func (r *Record) wentOn(c Customer, by *regexp.Regexp) (refused bool) {
	for _, e := range r.Entries {
		if e.Customer == c.String() && by.MatchString(e.Sent) {
			refused = e.Answer == "(nil)" || e.Answer == "0" || strings.HasSuffix(e.Answer, "=0")
		}
	}
	return refused
}

// tookOver says whether the step that ended a hold made the lock another's at once.
func (r *Record) tookOver(h Hold) bool {
	i := slices.IndexFunc(r.Holds, func(next Hold) bool { return next.From == h.To })
	return i >= 0 && r.Holds[i].Customer == h.EndedBy
}

// causeOfLease is why a lease ended before its holder had finished.
func (r *Record) causeOfLease(h Hold) verdict.Cause {
	for i, e := range r.Entries {
		if i < h.From || h.To >= 0 && i > h.To || e.Choice.Customer != h.Customer {
			continue
		}
		switch e.Choice.Event {
		case Pause:
			return verdict.LateWrite
		case Cut, Withhold:
			return verdict.Unnoticed
		}
	}
	return verdict.Overrun
}

// lastHold is the last hold under which a customer wrote, -1 for none.
func (r *Record) lastHold(c Customer) int {
	for i, h := range slices.Backward(r.Holds) {
		if h.Customer == c {
			return i
		}
	}
	return -1
}

func lastTwo(orders []Order) (first, second Customer) {
	for _, o := range orders {
		if len(o.Customer) == 1 {
			first, second = second, Customer(o.Customer[0])
		}
	}
	return first, second
}

// lastInSQL is the last entry of a customer in MySQL, -1 for none.
func (r *Record) lastInSQL(of Customer) int {
	for i, e := range slices.Backward(r.Entries) {
		if e.Choice.Customer == of && e.Choice.IsStep() && e.Server == labmode.MySQLServer {
			return i
		}
	}
	return -1
}

// overwritten finds two orders that were made of the same stock. Those that say neither what was read nor what was
// written are no evidence.
func overwritten(orders []Order) (first, second Customer) {
	for i, a := range orders {
		for _, b := range orders[:i] {
			if a.Item == b.Item && a.Read == b.Read && a.Read != a.Written && len(a.Customer) == 1 && len(b.Customer) == 1 {
				return Customer(b.Customer[0]), Customer(a.Customer[0])
			}
		}
	}
	return 0, 0
}
