package step

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// LoadSchema asks a database for its tables of InnoDB that have no triggers.
func LoadSchema(ctx context.Context, db *sql.DB) (schedule.Schema, error) {
	s := schedule.Schema{}
	each := func(query string, row func(table, value, kind string)) error {
		rows, err := db.QueryContext(ctx, query)
		if err != nil {
			return fmt.Errorf("the schema: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var table, value, kind string
			if err := rows.Scan(&table, &value, &kind); err != nil {
				return err
			}
			row(table, value, kind)
		}
		return rows.Err()
	}
	change := func(table string, how func(*schedule.Table)) {
		if t, known := s[table]; known {
			how(&t)
			s[table] = t
		}
	}
	const here = " WHERE table_schema = DATABASE()"
	err := each("SELECT table_name, '', '' FROM information_schema.tables"+here+" AND engine = 'InnoDB' AND table_type = 'BASE TABLE'",
		func(table, _, _ string) { s[table] = schedule.Table{} })
	if err == nil {
		err = each("SELECT event_object_table, '', '' FROM information_schema.triggers WHERE event_object_schema = DATABASE()",
			func(table, _, _ string) { delete(s, table) })
	}
	if err == nil {
		err = each("SELECT table_name, COALESCE(column_name, ''), index_name FROM information_schema.statistics"+here+" AND non_unique = 0 ORDER BY seq_in_index",
			func(table, column, index string) {
				if column == "" { // an expression
					delete(s, table)
				}
				change(table, func(t *schedule.Table) {
					t.Unique = append(t.Unique, column)
					if index == "PRIMARY" {
						t.Primary = append(t.Primary, column)
					}
				})
			})
	}
	if err == nil {
		err = each("SELECT table_name, column_name, referenced_table_name FROM information_schema.key_column_usage"+here+" AND referenced_table_name IS NOT NULL",
			func(table, column, parent string) {
				change(table, func(t *schedule.Table) { t.Foreign, t.Parents = append(t.Foreign, column), append(t.Parents, parent) })
				change(parent, func(t *schedule.Table) { t.Children = append(t.Children, table) })
			})
	}
	if err == nil {
		err = each("SELECT table_name, COALESCE(LOWER(column_default), ''), LOWER(extra) FROM information_schema.columns"+here,
			func(table, byDefault, extra string) {
				change(table, func(t *schedule.Table) {
					t.Born = t.Born || clock.MatchString(byDefault)
					t.Changed = t.Changed || clock.MatchString(extra)
				})
			})
	}
	return s, err
}

var clock = regexp.MustCompile(`current_timestamp|now\(|curdate|curtime|sysdate|utc_`)

// schemaFor is that of a strategy, which can have made tables of its own when it was built.
func (s *Shops) schemaFor(ctx context.Context, on *stock.Store, strategy string) (schedule.Schema, error) {
	if known, ok := s.rehearsals.tables.Load(strategy); ok {
		return known.(schedule.Schema), nil
	}
	schema, err := LoadSchema(ctx, on.Pool())
	if err == nil {
		s.rehearsals.tables.Store(strategy, schema)
	}
	return schema, err
}

func (r *shopsRun) touches(b *buyer) []schedule.Touch {
	if b.state == absent && r.plan.Baskets {
		return schedule.Everything("") // the way decides about which item it comes
	}
	if server := b.next().Server; b.lose && server == labmode.MySQLServer {
		return schedule.Everything(server) // the end of its connection frees what it has
	}
	return r.schema.StepTouches(int(b.customer-'A'), r.parties())
}

// eventTouches is what an event touches that hits b, or all where b is nil.
func (r *shopsRun) eventTouches(e schedule.Event, b *buyer) []schedule.Touch {
	switch {
	case e == schedule.Arrive && r.plan.OneShop:
		return schedule.Everything("") // it can share what is under way in its process
	case e == schedule.Arrive || e == schedule.Lose:
		return nil // the customer's next step does
	case e == schedule.Kill && b.state == onRow:
		return schedule.Everything(labmode.MySQLServer) // MySQL may carry out what waits
	case e == schedule.Lag: // what is committed after it is not seen
		return []schedule.Touch{{Server: labmode.MySQLServer, Does: schedule.Reads}}
	case e == schedule.DBFailover:
		return schedule.Everything(labmode.MySQLServer)
	case e == schedule.Kill: // its connections end
		return r.schema.Locks(b.holds())
	case e.Forgets():
		return schedule.Everything(r.lockServer())
	case r.plan.LocalClock:
		return schedule.Everything("")
	}
	return append(schedule.Everything(r.lockServer()), schedule.Touch{Server: labmode.MySQLServer, Thing: schedule.Clock, Does: schedule.Writes})
}

// lockServer is the server that the lock is on.
func (r *shopsRun) lockServer() string {
	switch {
	case r.of.NeedsEtcd:
		return labmode.EtcdServer
	case r.of.NeedsQuorum:
		return labmode.QuorumServer
	}
	return labmode.RedisServer
}

// keepsTime says whether a request can be about a lease that [shopsRun.lookAtLock] does not see: a statement that
// asks MySQL for the time, or a command that changes a key that the strategy does not declare.
func (r *shopsRun) keepsTime(request schedule.Request) bool {
	if request.Server == labmode.MySQLServer {
		return request.AsksForTime()
	}
	if r.of.AtPoints() {
		return false
	}
	known := lockKeys(r.items, r.of.State)
	return slices.ContainsFunc(r.schema.Touches(request), func(t schedule.Touch) bool {
		key, isKey := t.Key()
		return t.Does&schedule.Writes != 0 && (t.Thing == "" || isKey && !slices.Contains(known, key))
	})
}

func (r *shopsRun) inapplicable(e schedule.Event) string { return Inapplicable(r.of, e) }

func (r *shopsRun) canHappen(e schedule.Event) bool {
	if r.plan.Everything {
		return true
	}
	switch e {
	case schedule.Wait:
		return r.lock.Locked() || (r.plan.LocalClock || r.timed) && slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state != absent })
	case schedule.Lag:
		return true
	case schedule.Forget:
		return r.lock.Locked() || r.lock.Kept != ""
	}
	return len(r.chosen) > 0
}

func (r *shopsRun) canHit(e schedule.Event, b *buyer) bool {
	switch {
	case e == schedule.Arrive:
		return b.state == absent
	case e == schedule.Lose && b.state == absent:
		return !r.of.AtPoints() // what is lost is the answer to the first step
	case e == schedule.Lose && r.of.AtPoints() && b.atStep() && b.next().Server != labmode.MySQLServer:
		return false // the step is no single request
	case b.state == absent || b.state == ended:
		return false
	}
	if r.plan.Everything {
		return true
	}
	switch e {
	case schedule.Lose:
		return b.atStep()
	case schedule.Pause:
		return (r.lock.Locked() || r.timed || r.of.State.Scattered()) && b.sent > 0
	case schedule.Cut:
		// A customer that is held after its last look at the lock is late with or without Redis, as
		// after pause.
		looks := b.next().Server != labmode.MySQLServer || b.request(b.next()).IsLook(r.schema)
		return r.lock.Locked() && b.sent > 0 && b.atStep() && looks && len(b.tx) == 0
	}
	return b.sent > 0
}
