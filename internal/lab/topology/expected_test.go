package topology

import (
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

// broken is the table of topologies as it is meant to be, written down by hand once. All others hold.
var broken = map[string]map[verdict.Kind]string{
	"single-failover":            {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"async-failover":             {verdict.Lied: "*"},
	"async-rewind":               {verdict.Oversold: "none mutex wrong-key-customer wrong-key-shop reservation-unchecked", verdict.Lied: "*"},
	"async-switchover":           {verdict.Oversold: lockedAbsolute + " cached-read"},
	"async-errant":               {verdict.Lied: "*"},
	"semi-sync-failover":         {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"semi-sync-silent":           {},
	"semi-sync-errant":           {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"semi-sync-timeout-failover": {verdict.Lied: "*"},
	"replica-reads-late":         {verdict.Oversold: lockedAbsolute + " cached-read cached-page get-lock fenced"},
	"galera-failover":            {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"galera-isolated":            {verdict.Lied: "redis-async", verdict.Left: "ack-first"},
	"galera-writers-late": {verdict.Oversold: lockedAbsolute + " cached-read get-lock lock-in-transaction snapshot-before-lock ledger " +
		"check-constraint-absolute"},
}

// lockedAbsolute read, and write what they have computed from that, under a lock in Redis or under none.
const lockedAbsolute = "none mutex setnx setnx-expire getset getset-server-clock set-ex-nx lua-setex owner-get-del owner-watch owner-checked " +
	"owner-delex reentrant-fixed reentrant-timer reentrant redlock wrong-key-customer wrong-key-shop"

func TestExpected(t *testing.T) {
	for _, c := range Cases {
		wanted, ok := broken[c.Name()]
		if !ok {
			t.Errorf("what %s breaks is not written down", c.Name())
		}
		var all []declared.Strategy
		for _, of := range ladder.All() {
			all = append(all, of.Describe())
		}
		if n := len(c.Scenario.only); n > 0 && len(c.Of(all)) != n {
			t.Errorf("%s is for %d strategies, and %d are known", c.Name(), n, len(c.Of(all)))
		}
		for _, of := range c.Of(all) {
			want := verdict.Held
			for _, kind := range []verdict.Kind{verdict.Left, verdict.Lied, verdict.Oversold} { // the last one decides
				if names := wanted[kind]; names == "*" || slices.Contains(strings.Fields(names), of.Name) {
					want = kind
				}
			}
			if got := c.Expected(of); got.Verdict != want {
				t.Errorf("%s:%s: %s because it %s, want %s", of.Name, c.Name(), got.Verdict, got.Because, want)
			}
		}
	}
}
