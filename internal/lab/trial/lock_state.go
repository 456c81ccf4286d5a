package trial

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"stocklock/internal/lab/seen"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// lockState is what servers say of an item's lock at a moment. The zero value has no lock.
type lockState struct {
	asked        time.Time
	keys         map[string]keyState
	own          bool              // no two holders have the same value
	inValue      bool              // the values are the ends of the leases
	transactions map[string]string // of MySQL: their statements, by their ids
	lost         bool              // the servers have lost it since, and what looks like it is another sale's
}

// keyState is one key of a lock, at one server.
type keyState struct {
	value string        // as DUMP has it
	row   bool          // of MySQL, which says only that another one is the first to end
	end   time.Time     // when its lease ends, by the server's clock; zero for never
	now   time.Time     // the server's clock
	grain time.Duration // what the server leaves out of end
}

// fullState is lockState with the transactions of MySQL.
func (a *attack) fullState(ctx context.Context) lockState {
	s := a.lockState(ctx)
	if a.Of.WaitsInMySQL {
		waits, err := a.Waits.Look(ctx)
		if err != nil && ctx.Err() == nil {
			a.problems.add(err)
		}
		s.transactions = waits.Transactions
	}
	return s
}

// lockState asks the servers. A server that cannot be asked has no key.
func (a *attack) lockState(ctx context.Context) lockState {
	s := lockState{
		asked: time.Now(), keys: map[string]keyState{}, inValue: a.Of.Lease.Kept == declared.LeaseInValue,
		own: a.Of.Properties.Has.Includes(declared.OwnerChecked),
	}
	switch of := a.Of; {
	case a.Testbed == nil:
	case of.Lease.Kept == declared.LeaseInEtcd:
		a.askEtcd(ctx, s.keys)
	case of.NeedsQuorum:
		for i, server := range a.Testbed.Quorum {
			a.askRedis(ctx, fmt.Sprint(i, " "), server, s.keys)
		}
	default:
		a.askRedis(ctx, "", a.Testbed.Redis(), s.keys)
	}
	if a.Of.Lease.Kept == declared.LeaseInMySQL {
		a.askRow(ctx, s.keys)
	}
	return s
}

// askRedis adds the item's keys of locks that a server has.
func (a *attack) askRedis(ctx context.Context, prefix string, server *testserver.Redis, into map[string]keyState) {
	if server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	found, _ := seen.Keys(ctx, server.Client, seen.LockKeys(a.item.ItemID, a.item.State)...)
	for _, key := range found {
		k := keyState{value: key.Dump, end: key.End, now: key.Now}
		if lease := a.Of.Lease; lease.Kept == declared.LeaseInValue {
			if n, err := strconv.ParseInt(key.Text, 10, 64); err == nil {
				k.end = time.Unix(0, n*int64(lease.Unit))
			}
		}
		into[prefix+key.Name] = k
	}
}

// askEtcd adds the first key below the lock's, whose lease is the lock's. Its value is its name.
func (a *attack) askEtcd(ctx context.Context, into map[string]keyState) {
	if a.Testbed.Etcd == nil {
		return
	}
	first, left, err := a.Testbed.Etcd.HolderUnder(ctx, sale.Key(a.item.ItemID)+"/")
	if err != nil || first == "" {
		return
	}
	now := time.Now()
	into[first] = keyState{value: first, now: now, end: now.Add(left), grain: time.Second}
}

// askRow adds the lease that MySQL has in a row.
func (a *attack) askRow(ctx context.Context, into map[string]keyState) {
	var left *float64
	err := a.Store.Pool().QueryRowContext(ctx, a.Of.Lease.Query, a.item.ItemID).Scan(&left)
	if err != nil || left == nil {
		return
	}
	now := time.Now()
	into["row"] = keyState{row: true, now: now, end: now.Add(time.Duration(*left * float64(time.Millisecond)))}
}

// anotherRow is by how much later the lease of another row ends at least.
const anotherRow = time.Second

// since says what has become of the leases of a lock: most have ended, or most were renewed. Empty
// means neither.
func (was lockState) since(is lockState) How {
	leases, ended, renewed := 0, 0, 0
	for key, then := range was.keys {
		if then.end.IsZero() {
			continue
		}
		leases++
		now, there := is.keys[key]
		later := now.end.After(then.end.Add(then.grain))
		switch {
		case was.inValue: // others may move it, and nobody takes it before
			if !there || now.now.After(then.end) {
				ended++
			}
		case !there || now.value != then.value || then.row && now.end.Sub(then.end) > anotherRow:
			ended++
		case then.row:
		case later && (was.own || now.now.Before(then.end)):
			renewed++
		case later:
			ended++ // and perhaps another sale has taken it
		}
	}
	switch {
	case ended > leases/2:
		return Ended
	case renewed > leases/2:
		return Renewed
	}
	return ""
}

// holds reports whether most keys of a lock are still its holder's: they have the same value, and
// nobody can have taken them meanwhile. No lock that all sales give the same value is renewed: one with
// another end is another sale's.
func (was lockState) holds(is lockState) bool {
	same := 0
	for key, then := range was.keys {
		now, there := is.keys[key]
		untaken := now.end.Equal(then.end)
		if was.own || was.inValue || then.row {
			untaken = was.own || now.now.Before(then.end)
		}
		if there && (now.value == then.value || was.inValue) && untaken {
			same++
		}
	}
	return same > len(was.keys)/2 && !was.lost
}

// ends returns when the first lease of the lock ends, by the clock of this process.
func (was lockState) ends() (time.Time, bool) {
	var first time.Time
	for _, k := range was.keys {
		if end := was.asked.Add(k.end.Sub(k.now)); !k.end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first, !first.IsZero()
}
