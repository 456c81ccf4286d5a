package survey

import (
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

func badBy(c verdict.Cause, v verdict.Kind) explore.Found {
	return explore.Found{Runs: 9, Met: 9, Bad: 1, Shortest: []schedule.Record{{Schedule: schedule.Schedule{{Customer: 'A', Step: "set"}}, Outcome: schedule.Outcome{Verdict: v, Cause: c}}}}
}

// TestJudge rules on each property from what explorations found.
func TestJudge(t *testing.T) {
	lock := declared.Properties{Has: declared.Exclusive | declared.Recovers | declared.AtomicLease | declared.ClockFree | declared.DurableAnswers | declared.Once}
	fenced := declared.Properties{Has: lock.Has | declared.StorageChecked}
	again := declared.Properties{Has: fenced.Has &^ declared.Once}
	for _, tt := range []struct {
		what     string
		of       declared.Properties
		result   Result
		property declared.Property
		want     Ruling
		by       string
	}{
		{"it lacks it, and a schedule shows it", lock, Result{Event: schedule.Pause, Customers: 2, Found: badBy(verdict.LateWrite, verdict.Oversold)}, declared.PauseProof, Agrees, "late-write: A.set"},
		{"it lacks it, and none shows it", lock, Result{Event: schedule.Pause, Customers: 2, Found: explore.Found{Runs: 9, Met: 8}}, declared.PauseProof, Contradicts, "none of 9 schedules"},
		{"the database refuses what would show it", fenced, Result{Event: schedule.Pause, Customers: 2, Found: explore.Found{Runs: 9, Met: 8}}, declared.PauseProof, NotDecided, "the database"},
		{"it has it, and none shows the contrary", lock, Result{Customers: 2, Found: explore.Found{Runs: 1}}, declared.Exclusive, Agrees, "the only schedule"},
		{"it has it, and a schedule shows the contrary", lock, Result{Customers: 2, Found: badBy(verdict.NoLock, verdict.Oversold)}, declared.Exclusive, Contradicts, "no-lock"},
		{"some could not be played", lock, Result{Customers: 2, Found: explore.Found{Runs: 9, GivenUp: []string{"busy"}}}, declared.Exclusive, NotDecided, "could not be played"},
		{"the event met nothing", lock, Result{Event: schedule.Wait, Customers: 2, Found: explore.Found{Runs: 9}}, declared.ClockFree, NotDecided, "wait happened in no run"},
		{"it lacks it, and the event met nothing", lock, Result{Event: schedule.Cut, Customers: 2, Found: explore.Found{Runs: 9}}, declared.LossAware, Contradicts, "none of 9 schedules"},
		{"the event met nothing, and some could not be played", lock, Result{Event: schedule.Wait, Customers: 2, Found: explore.Found{Runs: 9, GivenUp: []string{"busy"}}}, declared.ClockFree, NotDecided, "could not be played"},
		{"another event was explored", lock, Result{Event: schedule.Wait, Customers: 2, Found: explore.Found{Runs: 9, Met: 8}}, declared.PauseProof, NotDecided, "no exploration"},
		{"too few customers for it to show", lock, Result{Event: schedule.Wait, Customers: 2, Found: explore.Found{Runs: 9, Met: 8}}, declared.OwnerChecked, NotDecided, "no exploration"},
		{"the storage is checked, and all held", fenced, Result{Event: schedule.Kill, Customers: 2, Found: explore.Found{Runs: 9, Met: 8}}, declared.StorageChecked, Agrees, "none of 9"},
		{"the storage is checked, and one did not hold", fenced, Result{Event: schedule.Kill, Customers: 2, Found: badBy(verdict.Unexplained, verdict.Stuck)}, declared.StorageChecked, Contradicts, "unexplained"},
		{"the storage is checked, and cannot know of a sale that is made again", again, Result{Event: schedule.Lose, Customers: 2, Found: badBy(verdict.UnknownCommit, verdict.Twice)}, declared.StorageChecked, Agrees, "none of"},
		{"a sale is made again", again, Result{Event: schedule.Lose, Customers: 2, Found: badBy(verdict.UnknownCommit, verdict.Twice)}, declared.Once, Agrees, "unknown-commit"},
		{"none is made again", again, Result{Event: schedule.Lose, Customers: 2, Found: explore.Found{Runs: 9, Met: 8}}, declared.Once, Contradicts, "none of 9"},
		{"it is not, and took a late write", lock, Result{Event: schedule.Pause, Customers: 2, Found: badBy(verdict.LateWrite, verdict.Oversold)}, declared.StorageChecked, Agrees, "late-write"},
	} {
		all := Judge(declared.Strategy{Properties: tt.of}, schedule.Sales{}, []Result{tt.result})
		i := slices.IndexFunc(all, func(j Judgement) bool { return j.Property == tt.property })
		if j := all[i]; j.Ruling != tt.want || !strings.Contains(j.By.String(), tt.by) {
			t.Errorf("%s: %s %s by %q, want %s by %q", tt.what, j.Property, j.Ruling, j.By, tt.want, tt.by)
		}
	}
}

// TestUnruled: a surprise by which a search decides nothing is no ruling's, and none of one shop is.
func TestUnruled(t *testing.T) {
	busy := explore.Found{Runs: 9, GivenUp: []string{"busy"}}
	for _, tt := range []struct {
		what   string
		result Result
		want   string
	}{
		{"a ruling has it", Result{Surprises: surprises(schedule.Expectation{}, badBy(verdict.NoLock, verdict.Oversold))}, ""},
		{"one shop, where the strategy has more", Result{Sales: schedule.Sales{OneShop: true}, Surprises: surprises(schedule.Expectation{}, badBy(verdict.NoLock, verdict.Oversold))}, "no-lock"},
		{"it could not be played", Result{Surprises: surprises(schedule.Expectation{}, busy)}, "could not be played"},
	} {
		if got := words.English.Say(tt.result.Unruled()...); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}

// TestACrashContradicts whatever a strategy declares.
func TestACrashContradicts(t *testing.T) {
	crash := []Result{{Customers: 2, Found: badBy(verdict.Crash, verdict.Crashed)}}
	for _, s := range ladder.All() {
		of := s.Describe()
		found := len(Unexplained(of, crash)) > 0 || slices.ContainsFunc(Judge(of, schedule.Sales{}, crash), func(j Judgement) bool { return j.Ruling == Contradicts })
		if !found {
			t.Errorf("%s: a sale that crashes is no contradiction", s.Name)
		}
	}
}

// TestJudgeBaskets rules on properties of baskets. What a way lacks with one item explains its failures, too.
func TestJudgeBaskets(t *testing.T) {
	lock := declared.Properties{Has: declared.Exclusive | declared.Recovers | declared.DurableAnswers | declared.Once}
	sorted := declared.Properties{Has: declared.Crossable | declared.Whole | declared.Complete | declared.FreesLocks}
	unsorted := declared.Properties{Has: sorted.Has &^ declared.Crossable}
	overtakeProof := declared.Properties{Has: sorted.Has | declared.OvertakeProof}
	pauseProof := declared.Properties{Has: lock.Has | declared.PauseProof}
	crossed, late := badBy(verdict.CrossedLocks, verdict.Left), badBy(verdict.LateWrite, verdict.Oversold)
	for _, tt := range []struct {
		what        string
		one, basket declared.Properties
		result      Result
		property    declared.Property
		want        Ruling
		by          string
	}{
		{"two wait for each other, as declared", lock, unsorted, Result{Customers: 2, Found: crossed}, declared.Crossable, Agrees, "crossed-locks: A.set"},
		{"two wait for each other, against what is declared", lock, sorted, Result{Customers: 2, Found: crossed}, declared.Crossable, Contradicts, "crossed-locks"},
		{"none wait for each other, against what is declared", lock, unsorted, Result{Customers: 2, Found: explore.Found{Runs: 9}}, declared.Crossable, Contradicts, "none of 9"},
		{"none is torn", lock, sorted, Result{Event: schedule.Kill, Customers: 2, Found: explore.Found{Runs: 9, Met: 8}}, declared.Whole, Agrees, "none of 9"},
		{"an order is torn", lock, sorted, Result{Event: schedule.Kill, Customers: 2, Found: badBy(verdict.TornOrder, verdict.HalfSold)}, declared.Whole, Contradicts, "torn-order"},
		{"units are abandoned", lock, sorted, Result{Event: schedule.Kill, Customers: 2, Found: badBy(verdict.Abandoned, verdict.Unclaimed)}, declared.Whole, Contradicts, "abandoned"},
		{"a late write of a way that is not pause-proof either", lock, overtakeProof, Result{Event: schedule.Pause, Customers: 2, Found: late}, declared.OvertakeProof, Agrees, "none of 9"},
		{"a late write of a way that is pause-proof", pauseProof, overtakeProof, Result{Event: schedule.Pause, Customers: 2, Found: late}, declared.OvertakeProof, Contradicts, "late-write"},
		{"no schedule takes what is not there", lock, sorted, Result{Customers: 2, Found: explore.Found{Runs: 9}}, declared.Isolated, NotDecided, "no exploration"},
	} {
		all := Judge(declared.Strategy{Properties: tt.one, Baskets: &tt.basket}, schedule.Sales{Baskets: true}, []Result{tt.result})
		i := slices.IndexFunc(all, func(j Judgement) bool { return j.Property == tt.property })
		if j := all[i]; j.Ruling != tt.want || !strings.Contains(j.By.String(), tt.by) {
			t.Errorf("%s: %s %s by %q, want %s by %q", tt.what, j.Property, j.Ruling, j.By, tt.want, tt.by)
		}
	}
	of := declared.Strategy{Properties: declared.Properties{Has: lock.Has | declared.StorageChecked}, Baskets: &sorted}
	for found, want := range map[*explore.Found]int{&crossed: 1, {Runs: 9}: 0} {
		if got := Unexplained(of, []Result{{Customers: 2, Sales: schedule.Sales{Baskets: true}, Found: *found}}); len(got) != want {
			t.Errorf("%d are unexplained, want %d", len(got), want)
		}
	}
}

// TestUnexplained: a bad schedule that no lacking property explains contradicts, too.
func TestUnexplained(t *testing.T) {
	lock := declared.Properties{Has: declared.Exclusive | declared.Recovers | declared.Once}
	for cause, want := range map[verdict.Cause]int{verdict.LateWrite: 0, verdict.Overrun: 0, verdict.Unexplained: 1, verdict.LostRelease: 0, verdict.UnknownCommit: 1} {
		if got := Unexplained(declared.Strategy{Properties: lock}, []Result{{Event: schedule.Pause, Customers: 2, Found: badBy(cause, verdict.Oversold)}}); len(got) != want {
			t.Errorf("%s: %d are unexplained, want %d", cause, len(got), want)
		}
	}
}

// TestWhatIsLeftOut: the default plays every event that says something, and what is not played is named.
func TestWhatIsLeftOut(t *testing.T) {
	lock := declared.Strategy{Name: "mine", Properties: declared.Properties{Has: declared.Exclusive | declared.OwnerChecked}}
	rows := declared.Strategy{Name: "mine", Properties: declared.Properties{NotApplicable: declared.OwnerChecked | declared.AtomicRelease}}
	for _, tt := range []struct {
		what       string
		of         declared.Strategy
		surveys    []Plan
		some, none []string
	}{
		{"the default of a lock", lock, Default(lock), []string{"failover; flushall;", "a third customer under pause, kill, cut, forget, lag;", "more than 4 switches of 3 customers"},
			[]string{"wait", "lose", "one shop", "no event"}},
		{"the default without a lock", rows, Default(rows), []string{"a third customer under wait, pause, kill, cut, lose, forget, lag;"}, []string{"one shop", "no event"}},
		{"what was asked for", lock, []Plan{{Customers: 2, Events: []schedule.Event{schedule.Wait}}},
			[]string{"pause; kill; cut; lose; forget; failover; flushall; lag;", "a third customer under wait;", "customers of one shop"}, []string{"switches", "one by one"}},
	} {
		left := LeftOut(words.English, tt.of, tt.surveys)
		for _, want := range tt.some {
			if !strings.Contains(left, want) {
				t.Errorf("%s leaves out %q, want %q in it", tt.what, left, want)
			}
		}
		for _, not := range tt.none {
			if strings.Contains(left, not) {
				t.Errorf("%s leaves out %q, want no %q in it", tt.what, left, not)
			}
		}
	}
}
