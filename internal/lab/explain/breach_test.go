package explain

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
)

func TestFirstViolation(t *testing.T) {
	expires := func(e *Evidence) {
		e.redis(9.0, "set", 9.1, "expire", 509.5, "expired", 519.0, "set", 519.1, "expire", 540.0, "del")
	}
	for _, tt := range []struct {
		what  string
		build func(e *Evidence)
		want  verdict.Cause
		says  []string
	}{
		{"no lock at all", func(e *Evidence) {
			e.Exclusive = false
			e.add(customer{id: 1, shop: 1, points: unguarded(1, 12), reads: 2, wrote: 1}, customer{id: 2, shop: 1, points: unguarded(2, 11), reads: 2, wrote: 1})
			e.order(2, 2)
			e.order(1, 2)
			e.order(3, 1)
		}, verdict.NoLock, []string{"#1 on shop 1", "#2 on shop 1", "stock of 2"}},
		{"a mutex in each process", func(e *Evidence) {
			e.Exclusive = false
			e.add(customer{id: 1, shop: 1, points: whole(1, 2, 12, 13), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: whole(2, 3, 11, 12), reads: 2, wrote: 1})
			e.order(2, 2)
			e.order(1, 2)
			e.order(3, 1)
		}, verdict.OneProcess, []string{"mutex of its own process"}},
		{"a sum that both read", func(e *Evidence) {
			e.Exclusive = false
			e.Declared.State.Remaining, e.Declared.State.Whole = "SELECT 1", true
			e.add(customer{id: 1, shop: 1, points: unguarded(1, 12), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: unguarded(2, 11), reads: 2, wrote: 1})
			e.fact(sale.Read, sale.From, func(int) string { return sale.FromSum })
			e.order(2, 2)
			e.order(1, 2)
			e.order(3, 0)
		}, verdict.WriteSkew, []string{"#2 on shop 2 summed up the rows while #1 on shop 1", "sum of 2"}},
		{"locks of two keys", func(e *Evidence) {
			e.Exclusive = false
			e.add(customer{id: 1, shop: 1, points: whole(1, 2, 12, 13), reads: 2, wrote: 1}, customer{id: 2, shop: 1, points: whole(2, 3, 11, 12), reads: 2, wrote: 1})
			e.fact(sale.Acquired, sale.LockKey, func(n int) string { return fmt.Sprint("customer:", n) })
			e.order(2, 2)
			e.order(1, 2)
			e.order(3, 1)
		}, verdict.WrongKey, []string{"#1 on shop 1 had the lock customer:1", "#2 on shop 1 had the lock customer:2", "stock of 2"}},
		{"a commit after the release", func(e *Evidence) {
			late := whole(10, 12, 16, 15)
			late[sale.Releasing] = 14
			e.add(customer{id: 1, shop: 1, points: late, reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 5, points: whole(14.5, 15.5, 18, 19), reads: 2, wrote: 1})
			e.redis(9.5, "set", 14.4, "set", 19.0, "del")
			e.order(1, 2)
			e.order(2, 2)
			e.order(3, 1)
		}, verdict.LateCommit, []string{"COMMIT of its order 100 was answered 2.0 ms later", "#2 on shop 2 got the lock in between", "The lock worked", "Both read a stock of 2"}},
		{"a commit after the release, where Redis is not watched", func(e *Evidence) {
			late := whole(10, 12, 16, 15)
			late[sale.Releasing] = 14
			e.add(customer{id: 1, shop: 1, points: late, reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 5, points: whole(14.5, 15.5, 18, 19), reads: 2, wrote: 1})
			e.order(1, 2)
			e.order(2, 2)
			e.order(3, 1)
		}, verdict.LateCommit, []string{"got the lock in between"}},
		{"a snapshot from before the lock", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 14, 15), reads: 2, wrote: 1}, customer{id: 2, shop: 1, sent: 5, points: whole(16, 17, 18, 19), reads: 2, wrote: 1})
			e.redis(9.5, "set", 15.0, "set", 19.0, "del")
			e.order(1, 2)
			e.order(2, 2)
			e.order(3, 1)
		}, verdict.OldSnapshot, []string{"committed order 100 2.0 ms before #2 on shop 1 got the lock", "snapshot", "The lock worked: Redis announced"}},
		{"the same in one process, which passes its lock on", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 14, 15), reads: 2, wrote: 1}, customer{id: 2, shop: 1, sent: 5, points: whole(16, 17, 18, 19), reads: 2, wrote: 1})
			e.redis(9.5, "set", 90.0, "del")
			e.order(1, 2)
			e.order(2, 2)
			e.order(3, 1)
		}, verdict.OldSnapshot, []string{"The lock worked: #2 got it from #1 inside shop 1"}},
		{"work longer than the lease", func(e *Evidence) { overlap("read sleep 1180ms")(e); expires(e) }, verdict.Overrun,
			[]string{"#1 on shop 1 worked for 118", "lease of 500 ms ended in Redis (+500 ms)", "#2 on shop 2 then got the lock"}},
		{"a lease after which others had theirs", func(e *Evidence) {
			overlap("read sleep 1180ms")(e)
			e.redis(9.0, "set", 9.1, "expire", 209.5, "expired", 210.0, "set", 210.1, "expire", 512.0, "expired", 519.0, "set", 519.1, "expire", 540.0, "del")
			e.Lease = 200 * time.Millisecond
		}, verdict.Overrun, []string{"ended in Redis (+200 ms)"}},
		{"a process that was stopped", func(e *Evidence) { overlap("write stop 1180ms")(e); expires(e) }, verdict.LateWrite, []string{"stopped for 118", "SIGSTOP"}},
		{"a holder that cannot renew", func(e *Evidence) {
			overlap("read sleep 1180ms")(e)
			expires(e)
			e.Interventions = append(e.Interventions, Intervention{From: at(14), Until: at(1250), Shop: "shop 1", What: "redis-cut"})
		}, verdict.Unnoticed, []string{"#1 on shop 1 was cut off from Redis"}},
		{"another shop's partition is not to blame", func(e *Evidence) {
			overlap("read sleep 1180ms")(e)
			expires(e)
			e.Interventions = append(e.Interventions, Intervention{From: at(14), Until: at(1250), Shop: "shop 3", What: "redis-cut"})
		}, verdict.Overrun, nil},
		{"a failover", func(e *Evidence) {
			overlap("write sleep 1180ms")(e)
			e.redis(9.0, "set", 9.1, "expire", 100.0, "gone")
			e.Changes = append(e.Changes, Change{Time: at(519), Server: "replica", Key: "stock:7", What: "set"})
		}, verdict.Forgotten, []string{"its Redis died (+90 ms)"}},
		{"a restart without the data", func(e *Evidence) {
			overlap("write sleep 1180ms")(e)
			e.redis(9.0, "set", 9.1, "expire", 100.0, "gone", 519.0, "set")
			e.Interventions = []Intervention{{From: at(99), Until: at(110), What: "redis-emptied"}}
		}, verdict.Forgotten, []string{"when its Redis restarted without its data (+90 ms). It gave the lock to #2 on shop 2"}},
		{"an eviction", func(e *Evidence) {
			overlap("write stop 300ms")(e)
			e.redis(9.0, "set", 9.1, "expire", 100.0, "evicted", 101.0, "set")
		}, verdict.Evicted, []string{"ran out of memory and evicted the lock (+90 ms)"}},
		{"a deadline that was taken over", func(e *Evidence) {
			overlap("read sleep 1180ms")(e)
			e.redis(9.0, "set", 519.0, "set", 540.0, "del")
		}, verdict.Overrun, []string{"#2 on shop 2 took the lock over (+509 ms)"}},
		{"a clock that runs ahead", func(e *Evidence) {
			e.Interventions = []Intervention{{From: begun, Shop: "shop 2", What: "clock-ahead 5s"}}
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: whole(13, 14, 30, 31), reads: 2, wrote: 1})
			e.redis(9.5, "set", 12.5, "set", 25.5, "del")
			e.order(1, 2)
			e.order(2, 2)
			e.order(3, 1)
		}, verdict.ClockSkew, []string{"shop 2 has its clock ahead by 5s", "only 3.0 ms before"}},
		{"the same, noted the other way round", func(e *Evidence) {
			e.Interventions = []Intervention{{From: begun, Shop: "shop 2", What: "clock-ahead 5s"}}
			e.add(customer{id: 1, shop: 1, points: whole(10.4, 12, 25, 26), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: whole(10.2, 14, 30, 31), reads: 2, wrote: 1})
			e.redis(9.5, "set", 9.6, "set", 25.5, "del")
			e.order(1, 2)
			e.order(2, 2)
			e.order(3, 1)
		}, verdict.ClockSkew, []string{"#2 on shop 2 took the lock over from #1 on shop 1"}},
		{"a clock that runs ahead of a lease longer than that of others", func(e *Evidence) {
			e.Interventions = []Intervention{{From: begun, Shop: "shop 2", What: "clock-ahead 100s"}}
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 475, 476), reads: 2, wrote: 1, lease: 10_000}, customer{id: 2, shop: 2, points: whole(463, 464, 480, 481), reads: 2, wrote: 1})
			e.redis(9.5, "set", 462.5, "set", 475.5, "del")
			e.order(1, 2)
			e.order(2, 2)
			e.order(3, 1)
		}, verdict.ClockSkew, []string{"whose lease of 10000 ms had begun only 453 ms before"}},
		{"a lease that was over before its holder knew of it", func(e *Evidence) {
			e.add(customer{id: 1, shop: 1, points: whole(520, 522, 545, 546), reads: 2, wrote: 1}, customer{id: 2, shop: 2, points: whole(530, 531, 540, 541), reads: 2, wrote: 1})
			e.redis(9.0, "set", 9.1, "expire", 510.0, "expired", 529.0, "set", 529.1, "expire")
			e.order(2, 2)
			e.order(1, 2)
			e.order(3, 1)
		}, verdict.LateGrant, []string{"before shop 1 learned of it"}},
		{"nothing that explains it", func(e *Evidence) { overlap("")(e); e.redis(9.0, "set", 9.1, "expire") }, verdict.Unexplained, []string{"does not show why"}},
		{"no trace", func(e *Evidence) { overlap("")(e); e.Events, e.Traced = nil, false }, verdict.Untraced, []string{"Orders 100 and 101 both read a stock of 2"}},
	} {
		t.Run(tt.what, func(t *testing.T) { check(t, told(t, evidence(tt.build)), tt.want, tt.says) })
	}
}

// lateSale is #0, late at a point from 20 to 530; the lock is #1's by then, and #2 gets in behind.
func lateSale(p sale.Point) func(e *Evidence) {
	return func(e *Evidence) {
		late := customer{id: 0, shop: 3, points: whole(5, 6, 20, 531), reads: 3, wrote: 2, fault: string(p) + " sleep 510ms"}
		late.points[sale.Releasing] = 530
		if p == sale.Releasing {
			late.points[sale.Releasing] = 20
		}
		e.InitialStock = 3
		e.add(late,
			customer{id: 1, shop: 1, points: whole(506, 507, 560, 561), reads: 2, wrote: 1},
			customer{id: 2, shop: 2, points: whole(532, 533, 555, 556), reads: 2, wrote: 1})
		e.redis(4.0, "set", 4.1, "expire", 504.5, "expired", 505.0, "set", 505.1, "expire", 530.5, "del", 531.5, "set", 531.6, "expire", 556.0, "del")
		e.order(0, 3)
		e.order(2, 2)
		e.order(1, 2)
		e.order(4, 1)
	}
}

func TestReleaseOfAnothersLock(t *testing.T) {
	check(t, told(t, evidence(lateSale(sale.Written))), verdict.ForeignDelete, []string{"#0 on shop 3 released", "freed the lock that was #1 on shop 1's", "#2 on shop 2 got in"})
	check(t, told(t, evidence(lateSale(sale.Releasing))), verdict.SplitRelease, []string{"#0 on shop 3 went on with its release", "deleted the lock that was #1 on shop 1's"})

	// #0 freed the lock of #1. #1 had written by then, and its release freed the lock of #2: #3
	// got in.
	cascade := func(e *Evidence) {
		e.InitialStock = 4
		late := customer{id: 0, shop: 3, points: whole(5, 6, 20, 531), reads: 4, wrote: 3, fault: "written sleep 510ms"}
		late.points[sale.Releasing] = 530
		e.add(late,
			customer{id: 1, shop: 1, points: whole(506, 507, 529, 540), reads: 3, wrote: 2},
			customer{id: 2, shop: 2, points: whole(532, 533, 560, 561), reads: 2, wrote: 1},
			customer{id: 3, shop: 3, points: whole(541, 542, 555, 556), reads: 2, wrote: 1})
		e.Events[len(e.Events)-1].Time = at(556)
		e.redis(4.0, "set", 504.5, "expired", 505.0, "set", 530.5, "del", 531.5, "set", 539.0, "del", 540.5, "set")
		e.order(0, 4)
		e.order(1, 3)
		e.order(3, 2)
		e.order(2, 2)
		e.order(4, 1)
	}
	check(t, told(t, evidence(cascade)), verdict.ForeignDelete, []string{"#0 on shop 3", "The release of #1 on shop 1 then freed the lock of #2 on shop 2 in turn"})
}

// TestLockTakenInTwoSteps has #2 take the lock long before its guard is complete: just when #1
// notes that it has the lock, which #0 had freed by then.
func TestLockTakenInTwoSteps(t *testing.T) {
	e := evidence(func(e *Evidence) {
		lateSale(sale.Written)(e)
		e.Requests, e.Events, e.Changes = nil, nil, nil
		late := customer{id: 0, shop: 3, points: whole(5, 6, 20, 506), reads: 3, wrote: 2, fault: "written sleep 484ms"}
		late.points[sale.Releasing] = 504
		two := customer{id: 2, shop: 2, points: whole(560, 561, 570, 571), reads: 2, wrote: 1}
		two.points[sale.Acquiring] = 515
		e.add(late, customer{id: 1, shop: 1, points: whole(510, 511, 580, 581), reads: 2, wrote: 1}, two)
		e.redis(4.0, "set", 503.0, "expired", 503.1, "set", 504.9, "del", 514.0, "set", 559.0, "expire")
	})
	check(t, told(t, e), verdict.ForeignDelete, []string{"#0 on shop 3 released", "#2 on shop 2 got in"})
}

// TestALockThatNobodyWatches: the cause follows from the traces, and the missing column is said.
func TestALockThatNobodyWatches(t *testing.T) {
	e := evidence(overlap("write stop 1180ms"))
	e.Changes, e.Unwatched = nil, "etcd"
	x := explained(e)
	check(t, x, verdict.LateWrite, []string{"was stopped for", "got the lock from etcd after", "no column of the lock: it is in etcd"})
	for _, l := range x.Columns {
		if l.Kind == LockColumn {
			t.Errorf("a column of the lock: %+v", l)
		}
	}
	watched := explained(evidence(overlap("write stop 1180ms")))
	if said := words.English.Say(watched.Why...); strings.Contains(said, "no column") {
		t.Errorf("a lock that is watched: %s", said)
	}
}

// TestALockThatWasLostIsNotSaidToExclude has a lease end between two sales that both read one stock.
func TestALockThatWasLostIsNotSaidToExclude(t *testing.T) {
	x := told(t, evidence(func(e *Evidence) {
		e.add(customer{id: 1, shop: 1, points: whole(10, 12, 14, 15), reads: 2, wrote: 1}, customer{id: 2, shop: 2, sent: 5, points: whole(16, 17, 18, 19), reads: 2, wrote: 1})
		e.redis(9.5, "set", 15.0, "expired", 16.0, "set")
		e.order(1, 2)
		e.order(2, 2)
		e.order(3, 1)
	}))
	check(t, x, verdict.OldSnapshot, nil)
	if said := words.English.Say(x.Why...); strings.Contains(said, "excluded") {
		t.Errorf("it says %q", said)
	}
}

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
