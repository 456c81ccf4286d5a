package soak

import (
	"fmt"
	"strings"
	"testing"
)

// episodes is what a seed makes, as it is printed.
func episodes(seed uint64, shops, n int) (printed []string, all []episode) {
	s := newSchedule(seed, shops, chosen(nil))
	for range n {
		e := s.next()
		printed, all = append(printed, fmt.Sprint(e.calm, e)), append(all, e)
	}
	return printed, all
}

func TestTheSameSeedMakesTheSameSchedule(t *testing.T) {
	once, _ := episodes(7, 3, 200)
	again, _ := episodes(7, 3, 200)
	other, _ := episodes(8, 3, 200)
	same := 0
	for i := range once {
		if once[i] != again[i] {
			t.Fatalf("episode %d of seed 7 is %q and then %q", i, once[i], again[i])
		}
		if once[i] == other[i] {
			same++
		}
	}
	if same > 20 {
		t.Errorf("%d of 200 episodes of the seeds 7 and 8 are the same", same)
	}
}

// TestTitlesAreWords that --faults takes, which are separated by commas.
func TestTitlesAreWords(t *testing.T) {
	for _, title := range Faults() {
		if strings.Contains(title, ",") {
			t.Errorf("%q is cut", title)
		}
	}
}

func TestTheScheduleInjectsEverythingAndNothingTwiceAtOnce(t *testing.T) {
	for _, shops := range []int{1, 3} {
		injected := map[string]int{}
		together := 0
		_, all := episodes(1, shops, 500)
		for _, e := range all {
			parts := map[string]bool{}
			for _, f := range e.faults {
				injected[f.title()]++
				for _, part := range f.affects(f.shop) {
					if parts[part] {
						t.Errorf("%s is affected twice in one episode: %s", part, e)
					}
					parts[part] = true
				}
				if f.shop < 0 || f.shop >= shops || f.ends && f.shop == 0 && shops > 1 {
					t.Errorf("%s, of %d shops", f, shops)
				}
				if f.lasts < f.shortest || f.lasts > f.longest {
					t.Errorf("%s: want %s to %s", f, f.shortest, f.longest)
				}
			}
			if len(e.faults) > 1 {
				together++
			}
		}
		least, most := 1<<30, 0
		for i := range kinds {
			least, most = min(least, injected[kinds[i].title()]), max(most, injected[kinds[i].title()])
		}
		if least == 0 || most > 2*least {
			t.Errorf("with %d shops, kinds are injected %d to %d times: %v", shops, least, most, injected)
		}
		if together < 100 {
			t.Errorf("with %d shops, %d of 500 episodes have faults together", shops, together)
		}
	}
}

func TestFaultsCanBeChosen(t *testing.T) {
	if got := Faults("of MySQL", "failover"); len(got) != 2 || got[0] != "failover of Redis to a late replica" || got[1] != "kill -9 of MySQL" {
		t.Errorf("Faults = %q", got)
	}
	if got := len(Faults()); got != len(kinds) {
		t.Errorf("%d faults, want all %d", got, len(kinds))
	}
	s := newSchedule(1, 3, chosen([]string{"kill -9 of MySQL"}))
	for range 20 {
		if e := s.next(); len(e.faults) != 1 || e.faults[0].title() != "kill -9 of MySQL" {
			t.Errorf("injected %s", e)
		}
	}
}
