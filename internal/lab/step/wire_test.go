package step_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

const examples = "../../../examples"

// open opens a stage on two shops of this checkout, which sell by a strategy, as any other service. Their
// locks have a lease of a second. Start has more lines of start.
func open(t *testing.T, strategy string, start ...string) *step.Service {
	t.Helper()
	shop := catalogtest.Shop(t)
	text, err := os.ReadFile(examples + "/stocklock/none.yaml")
	if err != nil {
		t.Fatal(err)
	}
	described := strings.NewReplacer("../../bin/shop", shop.Program, "SHOP_STRATEGY: none", "SHOP_STRATEGY: "+strategy+"\n    SHOP_LEASE: 1s").Replace(string(text))
	of, err := shop.Any(strategy)
	if err != nil {
		t.Fatal(err)
	}
	described += "scripts:\n  none: none\n"
	for sha, name := range of.Scripts {
		described += fmt.Sprintf("  %s: %s\n", sha, name)
	}
	for _, line := range start {
		described = strings.Replace(described, "start:\n", "start:\n  "+line+"\n", 1)
	}
	path := filepath.Join(t.TempDir(), "service.yaml")
	if err := os.WriteFile(path, []byte(described), 0o600); err != nil {
		t.Fatal(err)
	}
	return openFile(t, path)
}

// explored explores without what pruning leaves out, and with it, and wants the same verdicts of both.
func explored(t *testing.T, s *step.Service, events ...schedule.Event) explore.Found {
	t.Helper()
	found, err := explore.Explore(t.Context(), s.Plan(2, events...).On(s), explore.Search{}, nil)
	if err != nil || found.Unknown().Key != "" {
		t.Fatalf("%v %s", err, found.Unknown())
	}
	return found
}

// TestWhatIsFound: every order of two sales, pruned and in full, and the shortest bad one, drawn.
func TestWhatIsFound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		strategy string
		want     verdict.Cause // empty for a strategy that holds
		shortest string
	}{
		{"none", verdict.NoLock, "A.select B.select"},
		{"conditional", "", ""},
		{"for-update", "", ""},
	} {
		t.Run(tt.strategy, func(t *testing.T) {
			s := open(t, tt.strategy)
			found := explored(t, s)
			all, err := explore.Explore(t.Context(), s.Plan(2).On(s), explore.Search{Unpruned: true}, nil)
			if err != nil || all.Unknown().Key != "" {
				t.Fatalf("%v %s", err, all.Unknown())
			}
			if fmt.Sprint(all.Causes()) != fmt.Sprint(found.Causes()) || all.Runs < found.Runs {
				t.Errorf("pruned: %d runs, %v; in full: %d runs, %v", found.Runs, found.Causes(), all.Runs, all.Causes())
			}
			if tt.want == "" {
				if found.Bad > 0 || found.Runs == 0 {
					t.Errorf("%d of %d are bad: %v", found.Bad, found.Runs, found.Causes())
				}
				return
			}
			if err := explore.Confirm(t.Context(), s.PlaySchedule, &found); err != nil {
				t.Fatal(err)
			}
			shown := found.Repeated()
			if len(shown) != 1 || shown[0].Outcome.Cause != tt.want || shown[0].Schedule.String() != tt.shortest {
				t.Fatalf("found %v: want %s by %s", shown, tt.want, tt.shortest)
			}
			var drawn bytes.Buffer
			schedule.Draw(&drawn, words.English, shown[0], 0)
			if !strings.Contains(drawn.String(), "SELECT * FROM `items`") || !strings.Contains(drawn.String(), "A, B") {
				t.Errorf("drawn without the service's own statements, or without both orders:\n%s", &drawn)
			}
		})
	}
}

// TestALeaseThatNobodyRenews ends while its holder works, early and in its own time.
func TestALeaseThatNobodyRenews(t *testing.T) {
	t.Parallel()
	s := open(t, "owner-get-del")
	if leases, renewed := s.Leases(); !leases || renewed {
		t.Fatalf("leases %v, renewed %v", leases, renewed)
	}
	if found := explored(t, s); found.Bad > 0 {
		t.Errorf("without the end of its lease %d of %d are bad", found.Bad, found.Runs)
	}
	order := steptest.Parse(t, "A.set wait B.set B.select")
	for name, play := range map[string]func() (schedule.Record, error){
		"early":           func() (schedule.Record, error) { return s.PlaySchedule(t.Context(), "", 2, order) },
		"in its own time": func() (schedule.Record, error) { return s.InTime(t.Context(), "", 2, order) },
	} {
		r, err := play()
		if err != nil || r.Outcome.Verdict != verdict.Oversold || r.Outcome.Cause != verdict.Overrun {
			t.Errorf("%s: %+v %v", name, r.Outcome, err)
		}
	}
}

// TestALeaseThatIsRenewed does not end while its holder works. Where its process is stopped, or its renewals are
// withheld, a lock without a fence lets both sell, and a fence refuses the first.
func TestALeaseThatIsRenewed(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[string]verdict.Kind{"reentrant": verdict.Oversold, "fenced-relative": verdict.Held} {
		s := open(t, strategy)
		if leases, renewed := s.Leases(); !leases || !renewed {
			t.Fatalf("%s: leases %v, renewed %v", strategy, leases, renewed)
		}
		if _, err := s.InTime(t.Context(), "", 2, steptest.Parse(t, "A.acquire wait")); err == nil || !strings.Contains(err.Error(), "was renewed") {
			t.Errorf("%s: a lease that is renewed ended: %v", strategy, err)
		}
		for event, cause := range map[schedule.Event]verdict.Cause{schedule.Pause: verdict.LateWrite, schedule.Withhold: verdict.Unnoticed} {
			if want == verdict.Held {
				cause = ""
			}
			got := schedule.Outcome{Verdict: verdict.Held}
			for steps := 1; steps <= 4 && !got.Bad(); steps++ {
				r, err := s.Fault(t.Context(), event, steps, true)
				if err != nil {
					t.Fatalf("%s, %s after %d: %v", strategy, event, steps, err)
				}
				got = r.Outcome
			}
			if got.Verdict != want || got.Cause != cause {
				t.Errorf("%s, %s: %s %s, want %s %s", strategy, event, got.Verdict, got.Cause, want, cause)
			}
		}
	}
}

// TestAnOrderThatAnotherProcessWrites: what a process has noted in a stream before it was killed is written by another one.
// How many of its requests come before that is not the same in each run.
func TestAnOrderThatAnotherProcessWrites(t *testing.T) {
	t.Parallel()
	s := open(t, "redis-stream")
	for steps := 5; steps < 12; steps++ {
		r, err := s.Fault(t.Context(), schedule.Kill, steps, false)
		if errors.Is(err, step.ErrUnmet) {
			continue
		}
		if err != nil || r.Outcome.Bad() {
			t.Fatalf("killed after %d requests: %+v %v", steps, r.Outcome, err)
		}
		if o := r.Outcome; o.Answers["B"] == "sold_out" && len(o.Orders) == 1 && o.Orders[0].Customer == "A" {
			return
		}
	}
	t.Error("nobody has written what A noted")
}

// TestFaults: a process that dies at each of its requests, and a connection that is cut before each answer.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := open(t, "conditional")
	for _, event := range []schedule.Event{schedule.Kill, schedule.Lose} {
		for steps := 1; steps <= 2; steps++ {
			r, err := s.Fault(t.Context(), event, steps, false)
			if err != nil || r.Outcome.Bad() || !r.Played.Has(event) || len(r.Outcome.Orders) != 1 {
				t.Errorf("%s after %d: %+v %v", event, steps, r.Outcome, err)
			}
			if a := r.Outcome.Answers["A"]; event == schedule.Kill && a != "no answer" {
				t.Errorf("a process that was killed has answered with %s", a)
			}
		}
	}
	if _, err := s.Fault(t.Context(), schedule.Pause, 1, false); err == nil {
		t.Error("a lease ended that there is not")
	}
}

// TestRedisLosesTheLock: where a holder works, and Redis loses its lock in each of the ways, the next customer
// gets in, and both sell. A fence in the database refuses one of them. Where the sale has nothing in Redis any
// more, the fault met nothing.
func TestRedisLosesTheLock(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[string]verdict.Cause{"owner-get-del": verdict.Forgotten, "fenced-relative": ""} {
		s := open(t, strategy)
		for _, event := range []schedule.Event{schedule.FlushAll, schedule.Evict, schedule.Restart, schedule.Failover} {
			var got verdict.Cause
			for steps := 1; ; steps++ {
				r, err := s.Fault(t.Context(), event, steps, true)
				if errors.Is(err, step.ErrUnmet) && steps > 4 {
					break
				}
				if err != nil {
					t.Fatalf("%s, %s after %d: %v", strategy, event, steps, err)
				}
				if !r.Played.Has(event) {
					t.Errorf("%s, %s after %d: only %s was played", strategy, event, steps, r.Played)
				}
				if r.Outcome.Bad() {
					got = r.Outcome.Cause
				}
			}
			if got != want {
				t.Errorf("%s, %s: found %q, want %q", strategy, event, got, want)
			}
		}
	}
}
