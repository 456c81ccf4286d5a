package redislock

import (
	"os"
	"strings"
	"testing"
	"time"
)

// fewSearches leaves out most of them: in short tests, and under the race detector, which finds
// nothing in a search and makes it ten times as slow. make test runs all of them without it.
func fewSearches() bool { return testing.Short() || underRace }

// When this variable is set to anything the searches go further, for some minutes.
var largeModel = os.Getenv("REDISLOCK_MODEL_LARGE") != ""

// rule is a rule of the protocol that a search can leave out.
type rule int

const (
	none rule = iota
	deadlineFromAnswer
	deadlineFromPush
	renewalFromAnswer
	heartbeatQueues
	sendsAgain
	pastBelieved
	releaseOfAnyHold
	cancelOfAnyHold
	epochByCounter
	passKeepsToken
	unknownKept
	unknownReleaseKept
	marksIgnored
	cancelledNextQueues
	barging
	deadHeadStays
	waitsWithoutHeartbeats
	droppedWaits
	heartbeatGrantsNothing
	callerUnnotified
	publishedTakenBack
	askersNotResumed
)

// TestModel searches the protocol as it is.
func TestModel(t *testing.T) {
	t.Parallel()
	engine := newEngine()
	searches := []model{
		{processes: 2, lease: 3, mail: 2, heartbeats: 1},
		{processes: 2, lease: 2, mail: 1, heartbeats: 1, faults: 1, crashes: true},
		{processes: 2, lease: 2, mail: 1, heartbeats: 1, faults: 2, crashes: true},
		{processes: 2, lease: 2, mail: 2, heartbeats: 1, tries: true},
		{processes: 2, lease: 2, mail: 1, heartbeats: 1, faults: 1, wipes: true},
		{processes: 2, lease: 2, mail: 1, heartbeats: 1, fresh: true},
		{processes: 3, lease: 2, mail: 1, heartbeats: 1},
	}
	if fewSearches() {
		searches = searches[4:6]
	}
	if largeModel {
		searches = []model{
			{processes: 2, lease: 2, mail: 2, heartbeats: 1, faults: 1, crashes: true},
			{processes: 2, lease: 3, mail: 2, heartbeats: 2, faults: 1, crashes: true},
			{processes: 2, lease: 2, mail: 2, heartbeats: 1, faults: 2, crashes: true, wipes: true},
			{processes: 3, lease: 2, mail: 1, heartbeats: 1, faults: 1, crashes: true},
			{processes: 2, lease: 2, mail: 2, heartbeats: 1, fresh: true},
		}
	}
	for _, m := range searches {
		begun := time.Now()
		m.engine = engine
		f := m.search()
		t.Logf("%s: %d worlds in %s; without more faults, everybody is served within %d ticks", m, f.worlds, time.Since(begun).Round(time.Millisecond), f.ticks)
		if f.wrong != fine {
			t.Errorf("%s: %s:\n\t%s", m, f.wrong, strings.Join(f.trace, "\n\t"))
		}
	}
}

// TestModelMissesEachRule leaves out one rule of the protocol at a time, and wants to
// see what it is there for.
func TestModelMissesEachRule(t *testing.T) {
	t.Parallel()
	two := model{processes: 2, lease: 2, mail: 2, heartbeats: 1}
	faulty := two
	faulty.faults = 1
	few := faulty
	few.mail, few.crashes = 1, true
	wiped := faulty
	wiped.wipes = true
	fresh := two
	fresh.fresh = true
	type row struct {
		rule    rule
		without string
		model   model
		want    breach
	}
	rows := []row{
		{deadlineFromAnswer, "a deadline counts from before the request was sent", two, twoHolders},
		{renewalFromAnswer, "a renewed deadline counts from before the renewal was sent", two, twoHolders},
		{deadlineFromPush, "the deadline of a pushed grant counts from the last request that was answered waiting", two, twoHolders},
		{heartbeatQueues, "a heartbeat never queues: who was dropped takes a new attempt", two, twoHolders},
		{sendsAgain, "an attempt is sent once", faulty, orphaned},
		{pastBelieved, "answers to past attempts are not believed", two, twoHolders},
		{releaseOfAnyHold, "a release names the hold that it ends", two, twoHolders},
		{cancelOfAnyHold, "a cancel names the hold that it ends", faulty, twoHolders},
		{epochByCounter, "an epoch is not below the server's clock", wiped, epochNotNew},
		{passKeepsToken, "a hand-off inside a process raises the token", two, tokenNotNew},
		{unknownKept, "an attempt whose answer is missing is cancelled", two, orphaned},
		{unknownReleaseKept, "a release whose answer is missing is sent until it is answered", two, orphaned},
		{marksIgnored, "a cancelled attempt that arrives later is ignored", two, orphaned},
		{cancelledNextQueues, "a release does not queue a next attempt that was cancelled", two, orphaned},
		{callerUnnotified, "who gets the lock by its own cancel or background release is notified, too", two, unnotified},
		{barging, "nobody takes a free lock past a queue", two, overtaken},
		{publishedTakenBack, "a grant that was published stands, whoever was counted", faulty, twoHolders},
		{askersNotResumed, "a subscription that is confirmed while a request is under way is followed by a heartbeat", fresh, unasked},
		{deadHeadStays, "waiters that died are skipped", few, forgotten},
		{waitsWithoutHeartbeats, "waiters send heartbeats", few, forgotten},
		{droppedWaits, "who is not in the queue any more asks again", few, forgotten},
		{heartbeatGrantsNothing, "a heartbeat hands on a lock whose holder died", few, forgotten},
	}
	if largeModel {
		rows = append(rows, row{sendsAgain, "an attempt is sent once", faulty, twoHolders})
	}
	for i, c := range rows {
		if fewSearches() && i%4 != 0 {
			continue
		}
		c.model.broken, c.model.only, c.model.engine = c.rule, c.want, newEngine()
		f := c.model.search()
		if f.wrong != c.want {
			t.Errorf("without %q: %s in %d worlds, want that %s", c.without, f.wrong, f.worlds, c.want)
			continue
		}
		t.Logf("without %q, %s (%d worlds):\n\t%s", c.without, f.wrong, f.worlds, strings.Join(f.trace, "\n\t"))
	}
}
