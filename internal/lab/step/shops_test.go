package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// TestARunThatIsGivenUp while its slots start leaves them to the next one.
func TestARunThatIsGivenUp(t *testing.T) {
	s := steptest.Open(t, "", step.Options{Lease: 300 * time.Millisecond, OwnSlots: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	plan := steptest.Parse(t, "A.select pause:A")
	if _, err := s.PlaySchedule(ctx, "none", 2, plan); err == nil {
		t.Error("a run was played to its end in 100 ms")
	}
	if _, err := s.PlaySchedule(t.Context(), "none", 2, plan); err != nil {
		t.Errorf("the next run: %v", err)
	}
}

// TestStage plays on one stage what does not stop a process.
func TestStage(t *testing.T) {
	const lease = 600 * time.Millisecond
	s := steptest.Open(t, "", step.Options{Lease: lease, OwnSlots: 1})
	t.Run("twenty replays end alike", func(t *testing.T) {
		plan := steptest.Parse(t, "A.set wait B.set B.select")
		var mu sync.Mutex
		outcomes := map[string]int{}
		var playing sync.WaitGroup
		for range 20 {
			playing.Go(func() {
				r, err := s.PlaySchedule(t.Context(), "set-ex-nx", 2, plan)
				mu.Lock()
				defer mu.Unlock()
				outcomes[fmt.Sprint(r.Outcome.Verdict, r.Outcome.N, r.Outcome.Cause, r.Outcome.Answers, r.Schedule, err)]++
				if err != nil || r.Outcome.Verdict != verdict.Oversold || r.Outcome.Cause != verdict.Overrun {
					t.Errorf("%s %s, %v", r.Outcome.Verdict, r.Outcome.Cause, err)
				}
			})
		}
		playing.Wait()
		if len(outcomes) != 1 {
			t.Errorf("different outcomes: %v", outcomes)
		}
	})
	t.Run("a row that is held blocks, and is seen to", func(t *testing.T) {
		for strategy, text := range map[string]string{
			"none": "A.select B.select A.update B.update A.insert",
			// B has its answer long before it writes.
			"redis-async": "A.take A.set A.select A.set2 B.take forget A.take2 A.set3 A.select2 A.set4 A.take3 A.update B.update A.insert",
		} {
			plan := steptest.Parse(t, text)
			r, err := s.PlaySchedule(t.Context(), strategy, 2, plan)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(r.Entries, func(e schedule.Entry) bool { return e.Choice.String() == "B.update" })
			if i < 0 || r.Entries[i].Blocked.String() != "the row is held by A's transaction" || r.Entries[i].Answer != "1 row" || r.Outcome.Verdict != verdict.Oversold {
				t.Errorf("%s: %s: %+v", strategy, r.Outcome.Verdict, r.Entries[max(i, 0)])
			}
		}
	})
	t.Run("an order that cannot be", func(t *testing.T) {
		for text, want := range map[string]string{
			"A.update":           "A's next step is A.select",
			"A.select A.select":  "A's next step is A.update",
			"kill:B A.select":    "B has not come yet",
			"A.select C.select":  "there is no customer C: this run has A to B",
			"A.select B.release": "B's next step is B.select",
			"A.select B.select wait A.update B.update B.insert":     "B waits for the row",
			"A.select A.update A.insert A.commit B.select B.updaet": "B has ended",
			"A.select A.update A.insert A.commit B.select wait":     "wait cannot be here",
			"A.select failover failover":                            "failover cannot be here: it changes nothing",
		} {
			plan := steptest.Parse(t, text)
			_, err := s.PlaySchedule(t.Context(), "none", 2, plan)
			if !errors.Is(err, explore.ErrCannot) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want one line with %q", text, err, want)
			}
		}
	})
	t.Run("a transaction that reads the same twice", func(t *testing.T) {
		r, err := s.PlaySchedule(t.Context(), "snapshot-before-lock", 2, nil)
		twice := slices.ContainsFunc(r.Entries, func(e schedule.Entry) bool { return e.Choice.String() == "A.select2" })
		if err != nil || !twice || r.Outcome.Verdict != verdict.Held {
			t.Errorf("one customer after the other: %s, %v, with A.select2: %t, want it to hold with that", r.Outcome.Verdict, err, twice)
		}
	})
	t.Run("an answer that is lost", func(t *testing.T) {
		plan := steptest.Parse(t, "A.select A.update A.insert lose:A A.commit")
		r, err := s.PlaySchedule(t.Context(), "none", 2, plan)
		i := slices.IndexFunc(r.Entries, func(e schedule.Entry) bool { return e.Note.Key == schedule.AnswerLost.Key })
		if err != nil || i < 0 || r.Entries[i].Choice.String() != "A.commit" || r.Outcome.Answers["A"] != "sold" || len(r.Outcome.Orders) != 1 || r.Outcome.Orders[0].Customer != "A" {
			t.Errorf("%+v, %v, want one order, and A told so after the shop has looked it up", r.Outcome, err)
		}
	})
	for what, slow := range map[string]struct {
		strategy string
		takes    time.Duration
	}{
		"lease":               {"set-ex-nx", lease},
		"customer's patience": {"redis-async", 3 * lease},
	} {
		t.Run("a machine that is too slow for the "+what, func(t *testing.T) {
			r, err := s.Play(t.Context(), step.Plan{Strategy: slow.strategy, Customers: 2}, func() explore.Chooser {
				first := true
				return func(n explore.Next) (int, error) {
					if first && len(n.Past) == 2 {
						time.Sleep(slow.takes)
						first = false
					}
					return n.ByDefault(), nil
				}
			})
			if err != nil || r.LeaseMS < 2*lease.Milliseconds() || r.Outcome.Bad() || r.Outcome.Answers["A"] != "sold" {
				t.Errorf("a run that takes %s has a lease of %d ms: %+v, %v", slow.takes, r.LeaseMS, r.Outcome, err)
			}
		})
	}
	for _, event := range []schedule.Event{schedule.Forget, schedule.Failover} {
		t.Run("a machine on which a renewal tells of a "+string(event), func(t *testing.T) {
			order := steptest.Parse(t, fmt.Sprintf("A.acquire %s B.acquire B.select", event))
			r, err := s.Play(t.Context(), step.Plan{Strategy: "reentrant", Customers: 2}.Following(order), func() explore.Chooser {
				follow := explore.Follow(order)
				return func(n explore.Next) (int, error) {
					if len(n.Past) == 3 { // a renewal comes every third of the lease
						time.Sleep(lease / 2)
					}
					return follow(n)
				}
			})
			if err != nil || r.LeaseMS == lease.Milliseconds() || r.Outcome.Verdict != verdict.Oversold {
				t.Errorf("%s with a lease of %d ms, %v: want it oversold with a longer one", r.Outcome.Verdict, r.LeaseMS, err)
			}
		})
	}
	t.Run("a customer who sends two requests", func(t *testing.T) {
		buy := step.Request{Name: "buy", Send: func(ctx context.Context, to step.Address) (string, bool) {
			a := load.Send(ctx, load.Order{Shop: to.URL, ItemID: to.Items[0], Quantity: 1, RequestID: to.ID, Strategy: to.Strategy})
			return string(a.Outcome), a.Outcome == load.Sold
		}}
		order := steptest.Parse(t, "A.update A.insert A.commit B.update A.update2")
		plan := step.Plan{Strategy: "conditional", Customers: 2, Requests: map[schedule.Customer][]step.Request{'A': {buy, buy}}}.Following(order)
		r, err := s.Play(t.Context(), plan, func() explore.Chooser { return explore.Follow(order) })
		noted := slices.ContainsFunc(r.Entries, func(e schedule.Entry) bool { return e.Note.String() == "A: buy was answered with sold" })
		if last := r.Entries[max(len(r.Entries)-1, 0)].Note; words.Chinese.Say(last) != "所有顾客都已结束" {
			t.Errorf("the last note is %q in Chinese", words.Chinese.Say(last))
		}
		if err != nil || !noted || r.Outcome.Answers["A"] != "sold_out" || len(r.Outcome.Orders) != 1 {
			t.Errorf("%+v, %v, first answer noted: %t", r.Outcome, err, noted)
		}
	})
	t.Run("how things stand in between", func(t *testing.T) {
		plan := steptest.Parse(t, "A.set A.select")
		at, err := step.As{Shops: s}.Position(t.Context(), "set-ex-nx", 2, plan)
		if err != nil || at.Ended || len(at.Entries) != 2 || at.Entries[1].State.Holder != "A" || !slices.Contains(at.Options, schedule.Choice{Customer: 'B', Step: "set"}) {
			t.Errorf("%+v, %v", at, err)
		}
	})
	t.Run("how things stand behind a pause, where nothing lags", func(t *testing.T) {
		at, err := step.As{Shops: s}.Position(t.Context(), "for-update", 2, steptest.Parse(t, "A.select pause:A"))
		if err != nil || at.Outcome.Bad() || slices.ContainsFunc(at.Options, func(c schedule.Choice) bool { return c.Event == schedule.Lag }) {
			t.Errorf("%+v, %v", at, err)
		}
	})
	t.Run("how things stood in a run that was given up", func(t *testing.T) {
		for patience, given := range map[time.Duration]bool{lease: true, 2 * lease: true, time.Minute: false} { // B waits for three leases, and two pass
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			at, err := step.As{Shops: s}.Position(ctx, "setnx", 2, steptest.Parse(t, "lose:A A.setnx"))
			if (err != nil) != given || (len(at.Entries) == 2) == given {
				t.Errorf("after %s: %+v, %v", patience, at, err)
			}
		}
	})
}

// TestAShopThatEnds ends the runs of others, too: each is made again with shops of its own, and counts as it ends there.
func TestAShopThatEnds(t *testing.T) {
	s := steptest.Open(t, "", step.Options{Lease: 300 * time.Millisecond, OwnSlots: 1})
	for i, want := range []verdict.Kind{verdict.Oversold, verdict.Crashed} {
		for _, order := range []string{"", "A.select kill:A"} { // shops that are shared, and others
			if _, err := s.PlaySchedule(t.Context(), "none", 2, steptest.Parse(t, order)); err != nil {
				t.Fatal(err)
			}
		}
		runs := map[int]int{} // by process: those that can use it at a time
		for _, pid := range s.PIDs() {
			runs[pid]++
		}
		try, ends := 0, i+1
		r, err := s.Play(t.Context(), step.Plan{Strategy: "none", Customers: 2}, func() explore.Chooser {
			try++
			follow := explore.Follow(steptest.Parse(t, "A.select B.select"))
			return func(next explore.Next) (int, error) {
				for pid, n := range runs {
					if len(next.Past) == 2 && try <= ends && (n == 1) == (try == 2) {
						delete(runs, pid)
						if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
							t.Error(err)
						}
					}
				}
				return follow(next)
			}
		})
		if err != nil || r.Outcome.Verdict != want || try != 2 {
			t.Errorf("where the shops end %d times, run %d is %s %v, %v, want it %s", ends, try, r.Outcome.Verdict, r.Outcome.Answers, err, want)
		}
	}
}

// TestAKillAtOneShop would take away customers to whom nothing is to happen.
func TestAKillAtOneShop(t *testing.T) {
	for _, event := range schedule.Events() {
		if got := step.Inapplicable(declared.Strategy{}, schedule.Sales{OneShop: true}, event); got.IsZero() == (event == schedule.Kill) {
			t.Errorf("%s: %q", event, got)
		}
	}
}

// TestALeaseIsEndedEarly where nothing but Redis goes by it.
func TestALeaseIsEndedEarly(t *testing.T) {
	const lease = 20 * time.Second
	s := steptest.Open(t, "", step.Options{Lease: lease})
	order := steptest.Parse(t, "A.set wait B.set B.select")
	plan := step.Plan{Strategy: "set-ex-nx", Customers: 2, Early: true}.Following(order)
	begun := time.Now()
	r, err := s.Play(t.Context(), plan, func() explore.Chooser { return explore.Follow(order) })
	if took := time.Since(begun); err != nil || r.Outcome.Cause != verdict.Overrun || took > lease {
		t.Errorf("set-ex-nx after %s: %+v, %v", took, r.Outcome, err)
	}
}

// TestKeptSchedules replays every schedule that the repository keeps, with its events on the
// processes themselves.
func TestKeptSchedules(t *testing.T) {
	t.Parallel()
	s := steptest.Open(t, "", step.Options{Lease: 600 * time.Millisecond, OwnSlots: 4})
	var playing sync.WaitGroup
	turns := make(chan bool, 4)
	for _, k := range schedule.KeptSchedules() {
		playing.Go(func() {
			turns <- true
			defer func() { <-turns }()
			r, err := s.PlaySchedule(t.Context(), k.Strategy, k.Schedule.Customers(), k.Schedule)
			if err != nil || r.Outcome.Verdict != k.Verdict || r.Outcome.Cause != k.Cause {
				t.Errorf("%s %s: %s %s, %v, want %s %s", k.Strategy, k.Schedule, r.Outcome.Verdict, r.Outcome.Cause, err, k.Verdict, k.Cause)
			}
		})
	}
	playing.Wait()
}
