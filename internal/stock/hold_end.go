package stock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// maxEnded is how many overdue holds a sale ends that lacks their units.
const maxEnded = 16

// EndHolds ends up to limit overdue holds, the longest overdue first, and puts their units back. It returns how
// many it ended, how long the first was overdue, and whether there may be more. It leaves out those that others
// have locked, and those that the server refuses to end.
//
// It finds them by an index that has the live ones alone, and locks nothing to do so.
func (s *Store) EndHolds(ctx context.Context, shop string, limit int) (ended int, late time.Duration, more bool, err error) {
	waitFor := anyItem
	for behind := time.Unix(0, 0); ; waitFor = noItem { // where it ends none of so many, it looks behind them
		var overdue []Hold
		failed := s.read(ctx, &overdue, "SELECT id, live_until FROM holds FORCE INDEX (holds_live) WHERE live_until > ? AND live_until < UTC_TIMESTAMP(6) ORDER BY live_until LIMIT ?", behind, limit)
		if failed != nil || len(overdue) == 0 {
			return 0, late, false, errors.Join(err, wrapped("look for overdue reservations", failed))
		}
		late = cmp.Or(late, s.db.NowFunc().Sub(*overdue[0].LiveUntil))
		ended, failed = s.endHolds(ctx, shop, each(overdue, func(h Hold) uint64 { return h.ID }), waitFor, Held, Paying)
		err, more = errors.Join(err, failed), len(overdue) == limit
		if ended > 0 || !more || ctx.Err() != nil || Unreachable(failed) {
			return ended, late, ended > 0 && more, err
		}
		behind = *overdue[len(overdue)-1].LiveUntil
	}
}

func anyItem(uint64) bool { return true }
func noItem(uint64) bool  { return false }

// EndOverdue ends holds that are overdue and whose payment has not begun: up to 16 of the sale's customer, and up to 16
// that have units of its items. It returns how many it ended.
func (s *Store) EndOverdue(ctx context.Context, shop string, wanted Sale) (ended int, err error) {
	var ids []uint64
	err = s.read(ctx, &ids, "(SELECT id FROM holds FORCE INDEX (holds_open) WHERE subject = ? AND live_until < UTC_TIMESTAMP(6) LIMIT ?) UNION"+
		" (SELECT hold_id FROM hold_lines FORCE INDEX (hold_lines_live) WHERE item_id IN ? AND live_until < UTC_TIMESTAMP(6) LIMIT ?)",
		wanted.Subject, maxEnded, itemsOf(wanted.Lines()), maxEnded)
	if err != nil || len(ids) == 0 {
		return 0, wrapped("look for overdue reservations", err)
	}
	return s.endHolds(ctx, shop, ids, func(item uint64) bool { return slices.Contains(itemsOf(wanted.Lines()), item) }, Held)
}

// read reads the rows of a SELECT, which [again] repeats.
func (s *Store) read(ctx context.Context, dest any, query string, args ...any) error {
	_, err := again(ctx, func() (struct{}, error) {
		return struct{}{}, s.db.WithContext(ctx).Raw(query, args...).Scan(dest).Error
	})
	return err
}

// waitEvery is after how many times that ended something endHolds waits for a locked item, too. Others end meanwhile.
const waitEvery = 8

// endHolds ends those of these holds that are overdue, and in one of the states. It begins with those that have no unit of an
// item that others have locked. Where it ended none, it waits for such items of one hold, because that of a crowd is never free
// at a look. It locks nothing else meanwhile: a row can stay locked for a minute.
func (s *Store) endHolds(ctx context.Context, shop string, ids []uint64, waitFor func(item uint64) bool, in ...HoldState) (int, error) {
	ended, left, err := s.endEach(ctx, shop, ids, nil, in)
	others := slices.DeleteFunc(slices.Clone(left), func(l HoldLine) bool { return waitFor(l.ItemID) })
	left = slices.DeleteFunc(left, func(l HoldLine) bool {
		return slices.ContainsFunc(others, func(o HoldLine) bool { return o.HoldID == l.HoldID })
	})
	if len(left) == 0 || ended > 0 && rand.IntN(waitEvery) > 0 {
		return ended, err
	}
	items := itemsLeft(left) // each as likely as another, however many holds have it
	item := items[rand.IntN(len(items))]
	having := slices.DeleteFunc(slices.Clone(left), func(l HoldLine) bool { return l.ItemID != item })
	hold := having[rand.IntN(len(having))].HoldID
	ofHold := slices.DeleteFunc(slices.Clone(left), func(l HoldLine) bool { return l.HoldID != hold })
	n, _, failed := s.endEach(ctx, shop, each(left, func(l HoldLine) uint64 { return l.HoldID }), itemsLeft(ofHold), in)
	return ended + n, errors.Join(err, failed)
}

// itemsLeft are the items of these lines, each once.
func itemsLeft(lines []HoldLine) []uint64 {
	items := each(lines, func(l HoldLine) uint64 { return l.ItemID })
	slices.Sort(items)
	return slices.Compact(items)
}

// endEach is endThose, where one that the server refuses to end keeps no other.
func (s *Store) endEach(ctx context.Context, shop string, ids, items []uint64, in []HoldState) (ended int, left []HoldLine, err error) {
	ended, left, err = s.endThose(ctx, shop, ids, items, in)
	if is, _ := classOf(err); is == refused && len(ids) > 1 {
		err = nil
		for _, id := range ids {
			n, more, failed := s.endEach(ctx, shop, []uint64{id}, nil, in)
			ended, left, err = ended+n, append(left, more...), errors.Join(err, failed)
		}
		return ended, left, err
	}
	if errors.Is(err, ErrConflict) { // another sweep, or a sale, was faster: the next round comes
		err = nil
	}
	return ended, left, wrapped(fmt.Sprint("end overdue reservations ", ids), err)
}

// endThose ends holds in one transaction. It waits for these items, before it locks a hold, and for nothing else. It returns how many it
// ended, and of those that it left the lines whose items others have locked.
func (s *Store) endThose(ctx context.Context, shop string, ids, items []uint64, in []HoldState) (n int, left []HoldLine, err error) {
	var holds []Hold
	err = s.Transact(ctx, func(tx Tx) error {
		var own, free, there []uint64
		if len(items) > 0 {
			if err := tx.Query(&own, "SELECT id FROM items FORCE INDEX (PRIMARY) WHERE id IN ? ORDER BY id"+forUpdate, items); err != nil {
				return err
			}
		}
		err := tx.Query(&holds, "SELECT id, state, steps FROM holds WHERE id IN ? AND state IN ? AND live_until < UTC_TIMESTAMP(6) ORDER BY id FOR UPDATE SKIP LOCKED", ids, in)
		if err != nil || len(holds) == 0 {
			return cmp.Or(err, errUnwritten)
		}
		var lines []HoldLine
		if err := tx.Query(&lines, "SELECT hold_id, item_id, quantity FROM hold_lines WHERE hold_id IN ?", each(holds, func(h Hold) uint64 { return h.ID })); err != nil {
			return err
		}
		if err := tx.Query(&free, "SELECT id FROM items FORCE INDEX (PRIMARY) WHERE id IN ? FOR UPDATE SKIP LOCKED", itemsLeft(lines)); err != nil {
			return err
		}
		if len(free) < len(itemsLeft(lines)) { // the others are locked, or an operator has deleted them
			if err := tx.Query(&there, "SELECT id FROM items WHERE id IN ?", itemsLeft(lines)); err != nil {
				return err
			}
		}
		left = slices.DeleteFunc(slices.Clone(lines), func(l HoldLine) bool { return slices.Contains(free, l.ItemID) || !slices.Contains(there, l.ItemID) })
		isLeft := func(id uint64) bool {
			return slices.ContainsFunc(left, func(l HoldLine) bool { return l.HoldID == id })
		}
		holds = slices.DeleteFunc(holds, func(h Hold) bool { return isLeft(h.ID) })
		lines = slices.DeleteFunc(lines, func(l HoldLine) bool { return isLeft(l.HoldID) })
		if len(holds) == 0 {
			return errUnwritten
		}
		now := tx.db.NowFunc()
		ended, steps := make([]uint64, len(holds)), make([]HoldStep, len(holds))
		for i, h := range holds {
			ended[i], steps[i] = h.ID, HoldStep{h.ID, h.Steps + 1, h.State, Expired, now, shop, "overdue", ""}
		}
		if err := tx.putBack(summed(each(lines, func(l HoldLine) Line { return Line{ItemID: l.ItemID, Quantity: l.Quantity} }))); err != nil {
			return err
		}
		if _, _, err := tx.Exec("UPDATE hold_lines SET live_until = NULL WHERE hold_id IN ("+marks(len(ended))+")", anyOf(ended)...); err != nil {
			return err
		}
		_, _, err = tx.Exec("UPDATE holds SET state = 'expired', steps = steps + 1, live_until = NULL, pay_until = pay_until, ended_at = ?, ended_by = ? WHERE id IN ("+marks(len(ended))+")",
			append([]any{now, shop}, anyOf(ended)...)...)
		if err != nil {
			return err
		}
		return tx.db.Create(&steps).Error
	})
	if err != nil {
		return 0, nil, err
	}
	s.expired.Add(int64(len(holds)))
	return len(holds), left, nil
}

// Expired returns how many holds the store has ended because they were overdue.
func (s *Store) Expired() int64 { return s.expired.Load() }

// ClearHoldKeys is [Store.ClearKeys] for the keys of holds.
func (s *Store) ClearHoldKeys(ctx context.Context, ttl time.Duration, limit int) (int, error) {
	removed, err := Within(ctx, s, func(tx Tx) (int64, error) {
		removed, _, err := tx.Exec("DELETE FROM hold_keys WHERE keyed_at < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND ORDER BY keyed_at LIMIT ?", ttl.Microseconds(), limit)
		if removed == 0 {
			err = cmp.Or(err, errUnwritten)
		}
		return removed, err
	})
	return int(removed), wrapped("clear the keys of reservations", err)
}

// ForgetHolds deletes the lines and the history of up to limit holds that ended before a time, and their
// customer's name. That they ended is kept: a payment may come late. What was forgotten has no history, so the
// oldest that has one says where to begin: the index has all that have ended, and they are more and more. Holds of the lab
// have none, and those before that are left.
func (s *Store) ForgetHolds(ctx context.Context, ttl time.Duration, limit int) (int, error) {
	forgotten, err := Within(ctx, s, func(tx Tx) (int, error) {
		var oldest []time.Time
		err := tx.Query(&oldest, "SELECT h.created_at - INTERVAL 1 DAY FROM hold_history y FORCE INDEX (PRIMARY) STRAIGHT_JOIN holds h ON h.id = y.hold_id ORDER BY y.hold_id LIMIT 1")
		if err != nil || len(oldest) == 0 {
			return 0, cmp.Or(err, errUnwritten)
		}
		return tx.forgetHolds("holds_ended) WHERE ended_at >= ? AND ended_at < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND AND subject <> '' ORDER BY ended_at LIMIT ? FOR UPDATE SKIP LOCKED",
			oldest[0], ttl.Microseconds(), limit)
	})
	return forgotten, wrapped("forget reservations", err)
}

// forgetHolds forgets those that are found by an index and a condition.
func (t Tx) forgetHolds(by string, args ...any) (int, error) {
	var ids []uint64
	if err := t.Query(&ids, "SELECT id FROM holds FORCE INDEX ("+by, args...); err != nil || len(ids) == 0 {
		return 0, cmp.Or(err, errUnwritten)
	}
	for _, statement := range []string{
		"DELETE FROM hold_lines WHERE hold_id", "DELETE FROM hold_history WHERE hold_id",
		"UPDATE holds SET ended_by = IF(ended_by = subject, '', ended_by), subject = '' WHERE id",
	} {
		if _, _, err := t.Exec(statement+" IN ("+marks(len(ids))+")", anyOf(ids)...); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

// HeldUnits is how many holds of a state are live, and how many units they have.
type HeldUnits struct {
	State        HoldState
	Units, Holds int64
}

// CountHeld counts what is held, by state, and the payments that are to be returned. It reads the row of each live hold,
// and those of its lines, and nothing of those that are over.
func (s *Store) CountHeld(ctx context.Context) (held map[HoldState]HeldUnits, toReturn int64, err error) {
	held = map[HoldState]HeldUnits{}
	var rows []HeldUnits
	err = s.read(ctx, &rows, "SELECT h.state, SUM(l.quantity) AS units, COUNT(DISTINCT h.id) AS holds FROM holds h FORCE INDEX (holds_live)"+
		" JOIN hold_lines l ON l.hold_id = h.id WHERE h.live_until IS NOT NULL GROUP BY h.state")
	for _, row := range rows {
		held[row.State] = row
	}
	if err == nil {
		err = s.read(ctx, &toReturn, "SELECT COUNT(*) FROM payments WHERE state = ?", ToReturn)
	}
	return held, toReturn, wrapped("count what is held", err)
}
