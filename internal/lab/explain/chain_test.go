package explain

import (
	"context"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// chained are n sales through a lock that is kept by INCR. Two are inside at all times: the release
// of each frees the lock of the next one. With late, a fault made the first release late.
func chained(n int, late bool) Evidence {
	return evidence(func(e *Evidence) {
		e.InitialStock = int64(n - 1)
		for i := range n {
			t := 10 * float64(i)
			stock := int64(n - 1 - i)
			if i == n-1 {
				stock = 1 // which the one before had read, too
			}
			sold := customer{id: i, shop: i%3 + 1, points: whole(t, t+1, t+14, t+16), reads: stock, wrote: stock - 1}
			if i == 0 && late {
				sold.fault = "releasing sleep 2ms"
			}
			e.add(sold)
			e.redis(t-0.5, "incrby", t-0.4, "expire", t+5, "incrby", t+15, "del")
			e.order(i, stock)
		}
	})
}

func TestAChainOfReleasesIsExplainedInTime(t *testing.T) {
	check(t, told(t, chained(500, false)), verdict.Unexplained, []string{"#499 on shop 2 came in while #498 on shop 1 was inside"})
	x := explained(chained(500, true))
	check(t, x, verdict.SplitRelease, []string{"#0 on shop 1 went on with its release", "#499 on shop 2 got in while #498 on shop 1 was inside"})
	if said := words.English.Say(x.Why...); len(said) > 1000 {
		t.Errorf("%d characters are said of a chain: %.300s…", len(said), said)
	}
}

func TestTheSearchEnds(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for what, x := range map[string]*Explanation{
		"an ended context":   Explain(ended, chained(10, true)),
		"a deadline that is": explainWithin(context.Background(), chained(10, true), time.Nanosecond),
	} {
		if x.Cause != verdict.NotInTime || !strings.Contains(words.English.Say(x.Why...), "no explanation in time") {
			t.Errorf("with %s over: %s: %s", what, x.Cause, words.English.Say(x.Why...))
		}
	}
}

// Whatever writes to the key takes the lock, whoever keeps it, and in whatever type.
func TestAnyWriteTakesTheLock(t *testing.T) {
	for _, write := range []RedisEvent{"set", "hset", "hincrby", "incrby", "append", "setrange", "lpush", "sadd", "zadd", "xadd", "restore"} {
		e := evidence(overlap("read sleep 1180ms"))
		e.redis(9.0, string(write), 9.1, "expire", 509.5, "expired", 519.0, string(write), 519.1, "expire", 540.0, "del")
		x := explained(e)
		check(t, x, verdict.Overrun, []string{"ended in Redis (+500 ms)"})
		locked := 0
		for _, l := range x.Columns {
			for _, s := range l.Spans {
				if s.Kind == Locked {
					locked++
				}
			}
		}
		if locked != 2 {
			t.Errorf("%s: %d spans of the lock are drawn, want 2", write, locked)
		}
	}
	for _, other := range []RedisEvent{"del", "expired", "evicted", "rename_from", "move_from", "gone", "expire", "persist"} {
		if other.Writes() {
			t.Errorf("%s counts as a write", other)
		}
	}
}

// TestAWaitInVainTakesNothing has attempts that count a lock up which another one has.
func TestAWaitInVainTakesNothing(t *testing.T) {
	x := explained(evidence(func(e *Evidence) {
		e.add(customer{id: 1, shop: 1, points: whole(10, 12, 35, 36), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 5, points: whole(38, 39, 50, 51), reads: 1})
		e.redis(9.0, "incrby", 9.1, "expire", 15.0, "incrby", 25.0, "incrby", 36.0, "del", 37.0, "incrby", 51.0, "del")
		e.order(1, 2)
		e.order(2, 1)
	}))
	check(t, x, verdict.KeptOut, nil)
	for _, l := range x.Columns {
		if l.Kind == LockColumn && len(l.Spans) != 2 {
			t.Errorf("spans %+v, want one for each holder", l.Spans)
		}
	}
}
