package trial

import (
	"testing"
	"testing/synctest"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/scenario"
)

// TestOneShopIsStoppedAtATime: of two requests that are sent in turn, the second is sent when the
// first has its answer, and keeps no shop away from the others meanwhile.
func TestOneShopIsStoppedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCustomers(2, wishes{plain: true})
		stops := func(int) scenario.Injection { return scenario.Injection{Alone: true, InTurn: true} }
		first := c.next(stops, false)
		var second *hit
		go func() { second = c.next(stops, false) }()
		synctest.Wait()
		if second != nil {
			t.Fatal("the second was sent while the first had no answer")
		}
		for range 3 {
			if other := c.next(nil, false); other.shop == first.shop {
				t.Errorf("request %d was sent to the shop that is stopped", other.number)
			}
		}
		c.answered(first, load.Answer{})
		synctest.Wait()
		if second == nil {
			t.Fatal("the second was not sent when the first had its answer")
		}
	})
}
