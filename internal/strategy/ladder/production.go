package ladder

import (
	"cmp"

	"stocklock/internal/strategy/declared"
)

// ReferenceGuard describes [strategy.Reference] in a table.
const ReferenceGuard = "redislock: queue, direct hand-off, watchdog"

// DatabaseLock has the properties of strategies that lock only in the database. Their lock is the
// row's. It ends with the transaction or its connection. There is no lease, no release and no
// Redis.
var DatabaseLock = declared.Properties{
	Has: declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.ClockFree |
		declared.PauseProof | declared.StorageChecked,
	NotApplicable: declared.AtomicLease | declared.Renews | declared.OwnerChecked | declared.AtomicRelease |
		declared.Reentrant | declared.LossAware | declared.SurvivesDataLoss,
}

// inDatabase adds what follows from locking only in the database, where d declares nothing else.
func inDatabase(d declared.Strategy) declared.Strategy {
	d.Guard, d.Servers, d.Properties = "nothing", cmp.Or(d.Servers, declared.EveryServer), cmp.Or(d.Properties, DatabaseLock)
	return d
}

// BasketsInRows has the basket properties of a strategy that locks only rows, in the order of the items, in
// one transaction.
var BasketsInRows = declared.Properties{
	Has:           declared.Crossable | declared.AddsUp | declared.Isolated | declared.Whole | declared.Unstarved | declared.Complete,
	NotApplicable: declared.FreesLocks | declared.OvertakeProof,
}

// basketsUnderLocks has those of a strategy that does so under locks with leases, and compares their
// tokens.
var basketsUnderLocks = declared.Properties{Has: BasketsInRows.Has | declared.FreesLocks | declared.OvertakeProof}

// fenced has the properties of the reference lock with a database that refuses an overtaken holder.
var fenced = declared.Properties{Has: reentrant.Declared.Has | declared.StorageChecked}

// production has what the strategies of package strategy declare, by name.
var production = map[string]declared.Strategy{
	"fenced": {
		Source:     "Kleppmann, How to do distributed locking, 2016; the fence raised before the read",
		Guard:      ReferenceGuard,
		Decrement:  "raise the fence, read, write where the fence is one's own",
		Telling:    "pause",
		Servers:    declared.WritesAnywhere | declared.RewindProof | declared.SwitchoverProof,
		Properties: fenced,
		Baskets:    &basketsUnderLocks,
	},
	"fenced-relative": {
		Source:     "fenced, with conditional's write: restocks and other strategies may write at the same time",
		Guard:      ReferenceGuard,
		Decrement:  "UPDATE ... SET stock = stock - ?, fence = ? WHERE fence <= ? AND stock >= ?",
		Telling:    "pause",
		Servers:    declared.EveryServer,
		Properties: fenced,
		Baskets:    &basketsUnderLocks,
	},
	"for-update": inDatabase(declared.Strategy{
		Source:       "MySQL Reference Manual, Locking Reads",
		Decrement:    "SELECT ... FOR UPDATE, UPDATE, in a transaction",
		Telling:      "crash",
		Baskets:      &BasketsInRows,
		WaitsInMySQL: true,
	}),
	"optimistic": inDatabase(declared.Strategy{
		Source:    "Kung and Robinson, On Optimistic Methods for Concurrency Control, 1981",
		Decrement: "SELECT, UPDATE ... WHERE version = ? AND stock = ?, retried",
		Telling:   "contention",
		Baskets:   &declared.Properties{Has: BasketsInRows.Has &^ declared.Unstarved, NotApplicable: BasketsInRows.NotApplicable},
	}),
	"conditional": inDatabase(declared.Strategy{
		Source:       "plain SQL; what to use for a counter in one row",
		Decrement:    "UPDATE ... SET stock = stock - ? WHERE stock >= ?",
		Telling:      "contention",
		Baskets:      &BasketsInRows,
		WaitsInMySQL: true,
	}),
	"batched": inDatabase(declared.Strategy{
		Source:    "group commit, DeWitt et al., 1984; flat combining, Hendler et al., 2010",
		Decrement: "for all that wait: UPDATE ... SET stock = stock - sum WHERE stock >= sum, one INSERT",
		Telling:   "contention",
		Baskets:   &BasketsInRows,
	}),
}
