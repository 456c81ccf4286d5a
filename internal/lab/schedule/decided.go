package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stocklock/internal/lab/load"
)

// What counts as held is said here alone: of one run by [Record.Undecided], and of a part by [Decided].

// decides says whether an answer shows what the service did with a customer.
func decides(answer string) bool {
	return answer == string(load.Sold) || answer == string(load.SoldOut)
}

// Failed says whether an answer is none that a sale should have: the service failed, or ended.
func Failed(answer string) bool {
	return answer == load.NoAnswer || len(inShort(answer)) == 3 && answer[0] == '5'
}

// unnamed says whether an answer at the wire is no failure, and none that the description names: what it means is not known.
func unnamed(answer string) bool { return len(inShort(answer)) == 3 && !Failed(answer) }

// Unnamed says who was answered so, empty for nobody.
func (r Record) Unnamed() string {
	for _, c := range Customers(r.Customers) {
		if answer := r.Outcome.Answers[c.String()]; unnamed(answer) {
			return fmt.Sprintf("%s was answered with %s", c, answer)
		}
	}
	if unnamed(r.Outcome.Ordinary) {
		return "who came afterwards was answered with " + r.Outcome.Ordinary
	}
	return ""
}

// AnswerCounts says whether a customer is to come to an answer. The orders alone count of one whom an event has
// taken away, and of one who was there when it broke a server.
func (r Record) AnswerCounts(c Customer) bool { return !slices.Contains(r.TakenAway, c) }

// NeedsAnother says that none of the customers shows whether the service still sells: one more is to come.
func (r Record) NeedsAnother() bool { return r.undecided(false) != "" }

// Undecided says why a run at the wire that is not bad shows nothing, empty where it decides. Each customer
// whom the event has not taken away was sold a unit, found none, or was rejected as busy while another one who
// lives has bought. Where there is no such customer, one who came afterwards was sold a unit or found none.
func (r Record) Undecided() string {
	switch {
	case !r.Wire || r.Outcome.Bad():
		return ""
	case r.Queued:
		return "an order is missing, and a queue of Redis still has what a sale wrote"
	case r.keptByTime() && r.LostUpdates < 0:
		return "a unit is missing, and " + r.Unended
	case r.keptByTime():
		return "who came afterwards was answered with " + r.Outcome.Ordinary + ", and " + r.Unended
	}
	return r.undecided(decides(r.Outcome.Ordinary))
}

func (r Record) undecided(another bool) string {
	came := false
	for _, c := range Customers(r.Customers) {
		answer := r.Outcome.Answers[c.String()]
		came = came || r.AnswerCounts(c)
		switch {
		case !r.AnswerCounts(c), decides(answer):
		case answer == string(load.Busy) && (another || r.othersBought(c)):
		default:
			return fmt.Sprintf("%s was answered with %s", c, inShort(answer))
		}
	}
	switch {
	case came || another:
		return ""
	case r.Outcome.Ordinary == "":
		return "nobody came afterwards"
	}
	return "who came afterwards was answered with " + inShort(r.Outcome.Ordinary)
}

// inShort is an answer without the text behind its status, which differs from run to run.
func inShort(answer string) string {
	status, _, _ := strings.Cut(answer, ":")
	return status
}

// othersBought says whether another customer has bought who lives, or lived on.
func (r Record) othersBought(than Customer) bool {
	return slices.ContainsFunc(Customers(r.Customers), func(c Customer) bool {
		return c != than && r.AnswerCounts(c) && r.Outcome.Answers[c.String()] == string(load.Sold)
	})
}

// Decided counts the runs of a part by the request behind which the event happened, or the second customer came.
// The zero value has none.
type Decided struct {
	Runs, Undecided int

	behind map[string]bool // by request: whether a run decided
	leaves map[string]bool // the requests that leave something in Redis, or an open transaction
	why    map[string]int
}

// Add counts a run. One with a unit for each customer decides for others like it, and one without an event for others
// without one.
func (d *Decided) Add(r Record) {
	r.Behind = placeOf(r.Behind, r.Played)
	if r.Outcome.Stock >= int64(r.Customers) {
		r.Behind += ", with a unit for each"
	}
	d.add(r.Behind, r.Leaves, r.Undecided())
}

// Unreached counts a schedule that did not come to the same place again.
func (d *Decided) Unreached(past Schedule) {
	d.add(placeOf(past.Behind(), past), true, "not reached again")
}

func placeOf(behind string, played Schedule) string {
	if played.Quiet() {
		behind += ", without an event"
	}
	return behind
}

// Fail counts a run that could not be played.
func (d *Decided) Fail(behind, why string) { d.add(behind, true, why) }

func (d *Decided) add(behind string, leaves bool, why string) {
	if d.behind == nil {
		d.behind, d.leaves, d.why = map[string]bool{}, map[string]bool{}, map[string]int{}
	}
	d.Runs++
	d.behind[behind] = d.behind[behind] || why == ""
	d.leaves[behind] = d.leaves[behind] || leaves
	if why != "" {
		d.Undecided++
		d.why[why]++
	}
}

// Held says whether runs of which none was bad show that the service holds: some decided, and one behind each
// request that leaves something in Redis, or an open transaction.
func (d Decided) Held() bool {
	for behind, leaves := range d.leaves {
		if leaves && !d.behind[behind] {
			return false
		}
	}
	return d.Undecided < d.Runs
}

// String says how many decided, and why the others did not. It is empty where all did.
func (d Decided) String() string {
	if d.Undecided == 0 {
		return ""
	}
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(d.why)) {
		why = append(why, fmt.Sprintf("%s (%d)", reason, d.why[reason]))
	}
	return fmt.Sprintf("%d of %d decided: %s", d.Runs-d.Undecided, d.Runs, strings.Join(why, "; "))
}
