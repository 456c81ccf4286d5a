package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// checkFacts holds each sentence of an explanation against the record that it was made of. It reads the
// record itself, and uses nothing of what found the explanation.
func checkFacts(t *testing.T, e Evidence, x *Explanation) {
	t.Helper()
	if x == nil {
		return
	}
	for _, text := range x.Why {
		truth, known := truths[text.Key]
		of := claim{e, text.Facts.(Facts)}
		if !known {
			t.Errorf("%s: nothing holds it against the record", text.Key)
		} else if wrong := all(truth(of), of.ownLease()); wrong != "" {
			t.Errorf("%s: %s, but %s", text.Key, words.English.Say(text), wrong)
		}
	}
}

func certain(claim) string { return "" }

// truths hold what each phrase says against the record. A phrase without facts says what the verdict or
// the declaration says, or that nothing is known.
var truths = map[string]func(c claim) string{
	"read-the-cache": func(c claim) string {
		reads := c.events(c.f.Other, sale.Read)
		if len(reads) == 0 || c.order(c.f.Holder) == nil {
			return "it read nothing, or there is no order that it overwrote"
		}
		last := reads[len(reads)-1]
		n, _ := NumberOf(last.Facts, "stock")
		return all(unless(last.Facts["from"] == sale.FromCache && n == c.f.Stock, "it noted %v", last.Facts),
			unless(Number(c.order(c.f.Holder).ID) == c.f.OtherOrder && c.at(c.f.Holder, sale.Written).Before(last.Time), "the order was written at %s, and the read was at %s", c.at(c.f.Holder, sale.Written), last.Time))
	},
	"view-stored-old": func(c claim) string {
		var viewed, stored labmode.Event
		for _, e := range c.Events {
			if e.Request == c.View.ID && e.Point == sale.Viewed {
				viewed = e
			} else if e.Request == c.View.ID && e.Point == sale.Stored {
				stored = e
			}
		}
		n, _ := NumberOf(stored.Facts, "stock")
		written := c.at(c.f.Holder, sale.Written)
		return unless(Label(c.View.ID) == c.f.Third.Request && n == c.f.Stock && viewed.Time.Before(written) && stored.Time.After(written) && stored.Time.Sub(c.after()).Abs() < time.Millisecond,
			"it read at %s and stored %d at %s, and the order was written at %s", viewed.Time, n, stored.Time, written)
	},
	"nothing-kept-out": func(c claim) string { return c.both(c.f.Holder, c.f.Other) },
	"mutex-of-one-process": func(c claim) string {
		return all(c.both(c.f.Holder, c.f.Other), unless(c.f.Holder.Shop != c.f.Other.Shop, "it is the same process"))
	},
	"both-summed": func(c claim) string {
		return all(c.both(c.f.Holder, c.f.Other), c.hasFact(c.f.Holder, sale.Read, sale.From, sale.FromSum), c.hasFact(c.f.Other, sale.Read, sale.From, sale.FromSum))
	},
	"different-locks": func(c claim) string {
		return all(c.both(c.f.Holder, c.f.Other), c.hasFact(c.f.Holder, sale.Acquired, sale.LockKey, c.f.Key), c.hasFact(c.f.Other, sale.Acquired, sale.LockKey, c.f.OtherKey),
			unless(c.f.Key != c.f.OtherKey, "it is one key"))
	},
	"no-reason-seen": func(c claim) string { return c.both(c.f.Holder, c.f.Other) },
	"committed-late": func(c claim) string {
		out, done := c.at(c.f.Holder, sale.Releasing), c.at(c.f.Holder, sale.Written)
		return all(c.apart(), unless(words.Rounded(done.Sub(out)) == c.f.LastedMS && c.f.LastedMS > 0, "it released at %s and wrote at %s", out, done))
	},
	"read-old-snapshot": func(c claim) string {
		done, in := c.at(c.f.Holder, sale.Written), c.entered(c.f.Other)
		return all(c.apart(), unless(words.Rounded(in.Sub(done)) == c.f.LastedMS && c.f.LastedMS > 0, "it wrote at %s, and the other entered at %s", done, in),
			unless(c.at(c.f.Other, sale.Read).After(in), "it read before it had the lock"))
	},
	"lock-excluded": func(c claim) string {
		out, in := c.at(c.f.Holder, sale.Releasing), c.entered(c.f.Other)
		return all(c.apart(), unless(slices.ContainsFunc(c.Changes, func(ch Change) bool {
			return (ch.What == eventDel || ch.What == eventSet) && !ch.Time.Before(out) && ch.Time.Before(in.Add(busyTolerance))
		}), "Redis announced nothing then"))
	},
	"lock-passed-on": func(c claim) string {
		return all(c.apart(), unless(c.f.Holder.Shop == c.f.Other.Shop, "they are two processes"), unless(c.announced(eventExpired) != "", "a lease ended"))
	},
	"server-died": func(c claim) string {
		return all(c.both(c.f.Holder, c.f.Other), unless(c.changed(c.after(), Gone), "no server died then"))
	},
	"server-emptied": func(c claim) string {
		return all(c.both(c.f.Holder, c.f.Other), unless(c.changed(c.after(), Gone), "no server died then"))
	},
	"lock-evicted": func(c claim) string {
		return all(c.both(c.f.Holder, c.f.Other), unless(c.changed(c.after(), eventEvicted), "nothing was evicted then"))
	},
	"granted-too-late": func(c claim) string {
		taken := c.entered(c.f.Holder).Add(-time.Duration(c.f.AfterMS * float64(time.Millisecond)))
		return all(c.longerThanLease(c.f.AfterMS), unless(c.changed(taken, eventSet, "hset"), "nothing was set then"))
	},
	"clock-ahead": func(c claim) string {
		in := c.entered(c.f.Other)
		return all(c.both(c.f.Holder, c.f.Other), unless(c.intervened(c.f.Intervention, c.f.Other.Shop, in, in), "its clock was right"),
			unless(c.f.AfterMS < words.Rounded(c.lease(c.f.Holder)), "the lease was over"))
	},
	"could-not-renew": func(c claim) string {
		return unless(c.intervened(c.f.Intervention, c.f.Holder.Shop, c.entered(c.f.Holder), c.gone(c.f.Holder)), "it was not cut off")
	},
	"process-stopped": func(c claim) string { return c.faultLasted() },
	"its-process-stopped": func(c claim) string {
		return unless(slices.ContainsFunc(c.Events, func(e labmode.Event) bool {
			spec, _ := e.Facts["fault"].(string)
			fault, err := labmode.ParseFault(spec)
			return err == nil && (fault.Action == labmode.Stop || fault.Action == labmode.Hold) && e.Shop == c.f.Holder.Shop && e.Time.Before(c.gone(c.f.Holder))
		}), "nothing stopped it")
	},
	"worked-longer": func(c claim) string { return all(c.faultLasted(), c.longerThanLease(c.f.LastedMS)) },
	"inside-longer": func(c claim) string {
		return c.longerThanLease(words.Rounded(c.gone(c.f.Holder).Sub(c.entered(c.f.Holder)) + clockTolerance))
	},
	"lease-ended": func(c claim) string {
		return all(c.both(c.f.Holder, c.f.Other), unless(c.changed(c.after(), eventExpired), "nothing expired then"))
	},
	"lease-ended-unwatched": func(c claim) string { return c.both(c.f.Holder, c.f.Other) },
	"lane-missing":          func(c claim) string { return unless(c.Unwatched == c.f.Server, "it is watched") },
	"deadline-passed": func(c claim) string {
		return all(c.both(c.f.Holder, c.f.Other), unless(c.changed(c.after(), eventSet), "nothing was set then"),
			unless(c.f.AfterMS > words.Rounded(c.lease(c.f.Holder))*3/4, "the deadline of %s had not passed", c.lease(c.f.Holder)))
	},
	"released-late": claim.lateRelease,
	"deleted-late":  claim.lateRelease,
	"release-freed-in-turn": func(c claim) string {
		return all(c.both(c.f.Holder, c.f.Other), unless(!c.at(c.f.Third, sale.Releasing).IsZero(), "%s released nothing", c.f.Third.Request))
	},
	"releases-freed-in-turn": func(c claim) string { return unless(!c.at(c.f.Third, sale.Releasing).IsZero(), "it released nothing") },
	"came-in-behind": func(c claim) string {
		return unless(c.entered(c.f.Third).Before(c.entered(c.f.Other).Add(clockTolerance)), "it came first")
	},
	"both-read":     claim.sameStock,
	"both-appended": claim.sameStock,
	"both-read-untraced": func(c claim) string {
		for _, o := range c.Orders {
			if (Number(o.ID) == c.f.Order || Number(o.ID) == c.f.OtherOrder) && o.StockRead != c.f.Stock {
				return fmt.Sprintf("order %d read %d", o.ID, o.StockRead)
			}
		}
		return ""
	},
	"sold-beyond": func(c claim) string {
		sum := int64(0)
		for _, o := range c.Orders {
			sum += o.Quantity
		}
		return unless(sum == int64(c.f.Count) && sum > c.InitialStock && c.f.Initial == c.InitialStock, "there are %d of %d", sum, c.InitialStock)
	},
	"counted-twice": func(c claim) string {
		has := func(s *Sale) bool {
			o := c.order(s)
			return o != nil && o.StockWritten < c.f.Stock && c.f.Stock <= o.StockRead
		}
		return all(unless(has(c.f.Holder) && has(c.f.Other), "they are %+v and %+v", c.order(c.f.Holder), c.order(c.f.Other)), c.next())
	},
	"counter-evicted": func(c claim) string { return c.between(eventEvicted) },
	"counter-emptied": func(c claim) string { return c.between(Gone) },
	"counter-died":    func(c claim) string { return c.between(Gone) },
	"counter-set-anew": func(c claim) string {
		unwritten := 0
		var anew time.Time
		for _, ch := range c.Changes {
			if ch.What == eventSet && ch.Time.After(c.after()) && anew.IsZero() {
				anew = ch.Time
			}
		}
		for _, o := range c.Orders {
			for _, r := range c.Requests {
				if in := c.entered(&Sale{Label(r.ID), r.Shop}); r.ID == o.RequestID && !in.IsZero() && in.Before(c.after().Add(time.Microsecond*10)) && o.CreatedAt.After(anew) {
					unwritten++
				}
			}
		}
		return unless(!anew.IsZero() && unwritten == c.f.Count, "it was set anew at %s, with %d orders under way", anew, unwritten)
	},
	"counter-older":     func(c claim) string { return c.next() },
	"stopped-with-hold": func(c claim) string { return c.faultLasted() },
	"hold-gone": func(c claim) string {
		return all(c.lostHold(), c.hasOrder(), c.longerThanLease(c.f.AfterMS),
			unless(c.after().Sub(c.at(c.f.Holder, sale.Written)).Abs() < time.Millisecond, "it was written at %s", c.at(c.f.Holder, sale.Written)))
	},
	"held-next": func(c claim) string {
		return unless(c.entered(c.f.Other).Sub(c.entered(c.f.Holder)) > c.lease(c.f.Holder) && c.order(c.f.Other) != nil, "it held none then")
	},
	"answered-no-order": func(c claim) string { return all(c.outcome("sold"), c.noOrder()) },
	"died-before-order": func(c claim) string {
		passed := c.events(c.f.Holder, c.f.Point)
		return all(unless(len(passed) > 0, "it did not pass that point"), unless(len(c.events(c.f.Holder, sale.Written)) == 0, "it was written"),
			unless(slices.ContainsFunc(c.Interventions, func(d Intervention) bool {
				return d.What == Dead && d.Shop == c.f.Holder.Shop && d.From.Sub(c.after()).Abs() < time.Millisecond
			}), "its shop did not die then"))
	},
	"answers-first":        func(c claim) string { return unless(c.Declared.AnswersFirst, "it does not") },
	"so-were-others":       func(c claim) string { return unless(c.unordered() == c.f.Count+1, "%d were", c.unordered()) },
	"no-such-order":        certain,
	"no-reason-for-answer": certain,
	"rejected-with-order":  func(c claim) string { return all(c.outcome(c.f.Outcome), c.purchased(c.f.Order)) },
	"ordered-twice":        func(c claim) string { return all(c.purchased(c.f.Order), c.purchased(c.f.OtherOrder)) },
	"commit-answer-lost": func(c claim) string {
		fault, from := c.fault(c.f.Holder)
		o := c.order(c.f.Holder)
		return unless(fault.Action == labmode.Lose && !from.IsZero() && o != nil && Number(o.ID) == c.f.OtherOrder, "its fault is %s, its first order %+v", fault, o)
	},
	"sent-away": func(c claim) string {
		sum := c.SoldLater
		for _, o := range c.Orders {
			sum += o.Quantity
		}
		return all(c.outcome("sold_out"), unless(c.f.Stock == c.InitialStock-sum && c.f.Stock > 0, "%d of %d were sold", sum, c.InitialStock))
	},
	"sent-away-early": func(c claim) string {
		return all(c.outcome("sold_out"), unless(c.SentAway == c.of(c.f.Holder).ID, "it was %s", c.SentAway), unless(c.units()+c.SoldLater >= c.InitialStock, "%d were sold", c.units()))
	},
	"counted-out": func(c claim) string {
		byServer := map[string]int{}
		for _, ch := range c.Changes {
			if ch.What == "incrby" || ch.What == "decrby" {
				byServer[ch.Server]++
			}
		}
		for _, n := range byServer {
			if n == c.f.Count && int(c.f.Stock) == len(c.Orders) {
				return ""
			}
		}
		return fmt.Sprintf("Redis announced %v, and there are %d orders", byServer, len(c.Orders))
	},
	"died-with-units": func(c claim) string {
		dead := claim{c.Evidence, Facts{Holder: c.f.Third}}
		return all(dead.killedAt(c.f.Point), dead.noOrder(), unless(c.countedInRedis() && len(c.events(c.f.Third, sale.Read)) > 0, "it had none"))
	},
	"not-in-time": certain,

	"no-holder-seen": func(c claim) string { return unless(len(c.Events) == 0, "there are points") },
	"waits-for-itself": func(c claim) string {
		return all(unless(c.of(c.f.Holder).Nested, "it asks once"), unless(!c.entered(c.f.Holder).IsZero() && c.at(c.f.Holder, sale.Read).IsZero(), "it got in"))
	},
	"killed-taking": func(c claim) string { return c.killedAt(sale.Acquiring) },
	"killed-inside": func(c claim) string { return c.killedAt(c.f.Point) },
	"release-lost": func(c claim) string {
		out := first(c.at(c.f.Holder, sale.Releasing), c.gone(c.f.Holder))
		return unless(c.intervened(c.f.Intervention, c.f.Holder.Shop, out.Add(-clockTolerance), out), "it was not at %s: %+v", out, c.Interventions)
	},
	"fence-refuses-all": func(c claim) string {
		latest := slices.MaxFunc(c.Requests, func(x, y Request) int { return x.Answered.Compare(y.Answered) })
		return all(unless(c.Fenced && c.f.Count > 0, "it did not"), unless(latest.Outcome == "fenced", "the last answer was %s", latest.Outcome))
	},
	"last-holder":         func(c claim) string { return unless(!c.entered(c.f.Holder).IsZero(), "it never entered") },
	"no-lock-left":        func(c claim) string { return unless(len(c.Locks) == 0, "Redis had %+v", c.Locks) },
	"lock-without-expiry": func(c claim) string { return c.locked(false) },
	"lock-with-expiry":    func(c claim) string { return c.locked(true) },
	"asked-in-vain": func(c claim) string {
		var sold time.Time
		for _, r := range c.Requests {
			if r.Outcome == "sold" {
				sold = later(sold, r.Answered)
			}
		}
		busy := 0
		for _, r := range c.Requests {
			if r.Outcome == "busy" && r.Sent.After(sold) {
				busy++
			}
		}
		return unless(c.f.Count == busy, "%d were busy", busy)
	},

	"fault-hit": func(c claim) string {
		spec, _ := c.fault(c.f.Holder)
		paused := spec.Action == labmode.Hold && c.of(c.f.Holder).Paused && c.f.Fault == labmode.Stop
		wrong := unless((spec.Action == c.f.Fault || paused) && spec.Point == c.f.Point, "its fault is %s", spec)
		if c.f.LastedMS > 0 {
			wrong = all(wrong, c.faultLasted())
		}
		return wrong
	},
	"one-order-without-answer": func(c claim) string {
		fault, _ := c.fault(c.f.Holder)
		return all(c.hasOrder(), c.outcome(c.f.Outcome), unless(fault.Action == labmode.Lose, "its fault is %s", fault))
	},
	"done-before-its-end": func(c claim) string { return all(c.killedAt(), c.hasOrder()) },
	"counted-and-ordered": func(c claim) string { return all(c.hasOrder(), unless(c.countedInRedis(), "Redis counts nothing")) },
	"connection-ended": func(c claim) string {
		return all(c.killedAt(), unless(c.at(c.f.Holder, sale.Acquired, sale.Acquiring).IsZero(), "it had a lock"), unless(!c.countedInRedis() && !c.heldInMySQL(), "its units were elsewhere"))
	},
	"hold-ended": func(c claim) string { return all(c.killedAt(), c.noOrder()) },
	"hold-refused": func(c claim) string {
		return all(c.outcome("conflict"), c.noOrder(), c.longerThanLease(c.f.AfterMS))
	},
	"hold-stood":    func(c claim) string { return all(c.hasOrder(), unless(c.lostHold() != "", "it was gone")) },
	"wrote-nothing": func(c claim) string { return all(c.outcome(c.f.Outcome), c.noOrder()) },
	"ended-with-it": func(c claim) string { return all(c.killedAt(), unless(c.Recovers, "its lock stays")) },
	"freed-itself-for-next": func(c claim) string {
		return all(c.killedAt(), c.next(), unless(c.changed(c.after(), eventExpired), "nothing expired then"))
	},
	"lease-over-for-next":        func(c claim) string { return all(c.killedAt(), c.next()) },
	"nobody-came-after":          func(c claim) string { return c.killedAt() },
	"next-got-the-lock":          certain,
	"lease-ended-next-got-it":    certain,
	"server-died-next-got-it":    func(c claim) string { return c.announced(Gone) },
	"server-emptied-next-got-it": func(c claim) string { return c.announced(Gone) },
	"lock-evicted-next-got-it":   func(c claim) string { return c.announced(eventEvicted) },
	"snapshot-refused":           func(c claim) string { return all(c.outcome("conflict"), c.noOrder()) },
	"fence-refused":              func(c claim) string { return all(c.outcome("fenced"), c.noOrder()) },
	"learned-of-the-loss":        func(c claim) string { return all(c.outcome("lost"), c.noOrder()) },
	"read-again": func(c claim) string {
		reads := c.events(c.f.Holder, sale.Read)
		o := c.order(c.f.Holder)
		if len(reads) < 2 || o == nil {
			return "it read once, or has no order"
		}
		before, _ := NumberOf(reads[0].Facts, "stock")
		found, _ := NumberOf(reads[len(reads)-1].Facts, "stock")
		return unless(before == c.f.Initial && found == c.f.Stock && before != found && o.StockRead == found, "it read %d and %d, and its order is %+v", before, found, o)
	},
	"nobody-wrote-between": func(c claim) string { return c.nobodyElse() },
	"database-decides": func(c claim) string {
		return unless(c.at(c.f.Holder, sale.Acquired).IsZero() && !c.heldInMySQL() && !c.countedInRedis(), "it holds a lease, or a count")
	},
	"lease-renewed": func(c claim) string {
		inside := c.gone(c.f.Holder).Sub(c.entered(c.f.Holder))
		return all(c.nobodyElse(), c.announced(eventExpire),
			unless(time.Duration(c.f.Count-1)*c.lease(c.f.Holder)/6 < inside, "that is more than once every sixth of the lease in %s", inside))
	},
	"majority-knew": func(c claim) string {
		return all(c.nobodyElse(), unless(c.announced(Gone) == "" || c.announced(eventEvicted) == "", "no server lost it"))
	},
	"release-freed-nothing": func(c claim) string { return c.next() },
	"lock-has-no-expiry":    func(c claim) string { return c.nobodyElse() },
	"nobody-took-over":      func(c claim) string { return c.nobodyElse() },
	"kept-out-until-done":   func(c claim) string { return c.nobodyElse() },
	"row-kept-until-commit": func(c claim) string {
		return all(c.hasOrder(), unless(slices.ContainsFunc(c.events(c.f.Other, sale.Read), func(e labmode.Event) bool {
			n, _ := NumberOf(e.Facts, "stock")
			return n <= c.order(c.f.Holder).StockWritten
		}), "it read before"))
	},
	"subtracted": func(c claim) string {
		o, other := c.order(c.f.Holder), c.order(c.f.Other)
		return all(c.next(), unless(o != nil && other != nil && o.StockRead == c.f.Stock && o.StockRead <= other.StockWritten, "it did not find what the other one had left"))
	},
	"no-reason-for-hold": func(c claim) string { return c.next() },
	"entered-again": func(c claim) string {
		return unless(c.of(c.f.Holder).Nested && c.order(c.f.Holder) != nil, "it did not")
	},
	"nobody-between": certain,
	"counted-once":   func(c claim) string { return all(c.hasOrder(), unless(c.countedInRedis(), "Redis counts nothing")) },
	"row-decides": func(c claim) string {
		return unless(c.at(c.f.Holder, sale.Acquired).IsZero() && !c.countedInRedis(), "it has a lock, or a count")
	},
	"nobody-came": func(c claim) string { return c.nobodyElse() },
	"waited-its-turn": func(c claim) string {
		return all(unless(c.of(c.f.Other).Sent.Before(c.gone(c.f.Holder)), "it came later"),
			unless(c.after().Sub(c.entered(c.f.Other)).Abs() < time.Millisecond, "it entered at %s", c.entered(c.f.Other)),
			unless(c.entered(c.f.Other).After(c.gone(c.f.Holder).Add(-clockTolerance)), "it entered before the other was out"))
	},
}

// TestNumbersKeepAllDigits: neither a text nor a number of before loses any.
func TestNumbersKeepAllDigits(t *testing.T) {
	for _, saved := range []string{`{"token":"3676770354272702465"}`, `{"token":3676770354272702465}`} {
		var r struct {
			Token Number `json:"token,omitempty"`
		}
		if err := json.Unmarshal([]byte(saved), &r); err != nil || r.Token != 3676770354272702465 {
			t.Errorf("%s is read as %d, %v", saved, r.Token, err)
		}
		if text, err := json.Marshal(r); string(text) != `{"token":"3676770354272702465"}` {
			t.Errorf("%s %v", text, err)
		}
	}
}

// TestChineseNamesAllServersAndShops, however many there are.
func TestChineseNamesAllServersAndShops(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{words.Chinese.Say(words.Text{Key: "lane-view", Facts: Facts{Holder: &Sale{Shop: "shop 16"}}}), "商店 16 的页面浏览"},
		{words.Chinese.Say(words.Text{Key: "lane-lock", Facts: Facts{Server: Replica}}), "副本 中的锁"},
		{words.Chinese.Say(words.Text{Key: "lane-lock", Facts: Facts{Server: QuorumServer(1, 5)}}), "redis 2/5 中的锁"},
	} {
		if tt.text != tt.want {
			t.Errorf("it says %q, want %q", tt.text, tt.want)
		}
	}
}
