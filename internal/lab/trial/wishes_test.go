package trial

import (
	"fmt"
	"testing"

	"stocklock/internal/lab/load"
)

// TestWishesComeFromTheSeed also looks whether every kind of wish is among the first requests.
func TestWishesComeFromTheSeed(t *testing.T) {
	first := func(seed uint64) (all []wish) {
		w := wishes{seed: seed, item: 7, keys: true, after: map[string]bool{}, sent: map[string]int{}}
		for n := range 60 {
			all = append(all, w.next(n, n == 5))
			w.answered(&Customer{wish: all[n], Answer: load.Answer{Outcome: load.Sold}})
		}
		return all
	}
	if once, again := first(1), first(1); fmt.Sprint(once) != fmt.Sprint(again) || fmt.Sprint(once) == fmt.Sprint(first(2)) {
		t.Error("the seed does not decide what is bought")
	}
	several, beside, again := 0, 0, 0
	for seed := range uint64(20) {
		times := map[string]int{}
		last := ""
		for n, w := range first(seed) {
			if w.quantity > 1 {
				several++
			}
			if n == 5 && (w.quantity != 1 || times[w.key] > 0 && w.key != "") {
				t.Errorf("seed %d: the request with a fault is %+v", seed, w)
			}
			switch {
			case w.key != "" && w.key == last:
				beside++
			case times[w.key] > 0 && w.key != "":
				again++
			}
			times[w.key]++
			last = w.key
		}
	}
	if several < 40 || beside < 20 || again < 20 {
		t.Errorf("%d wishes for several units, %d repeats beside, %d later", several, beside, again)
	}
	plain := wishes{plain: true}
	for n := range 60 {
		if w := plain.next(n, false); w != (wish{quantity: 1}) {
			t.Errorf("under contention, request %d is %+v", n, w)
		}
	}
}
