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
	"stocklock/internal/strategy/declared"
)

// LoadSchema asks a database for its tables of InnoDB that have no triggers, and no key on a column that is computed from others.
func LoadSchema(ctx context.Context, db *sql.DB) (schedule.Schema, error) {
	s := schedule.Schema{}
	var err error // the first one
	each := func(query string, row func(table, value, kind string)) {
		if err != nil {
			return
		}
		var rows *sql.Rows
		if rows, err = db.QueryContext(ctx, query); err != nil {
			err = fmt.Errorf("the schema: %w", err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var table, value, kind string
			if err = rows.Scan(&table, &value, &kind); err != nil {
				return
			}
			row(table, value, kind)
		}
		err = rows.Err()
	}
	change := func(table string, how func(*schedule.Table)) {
		if t, known := s[table]; known {
			how(&t)
			s[table] = t
		}
	}
	const here = " WHERE table_schema = DATABASE()"
	each("SELECT table_name, '', '' FROM information_schema.tables"+here+" AND engine = 'InnoDB' AND table_type = 'BASE TABLE'",
		func(table, _, _ string) { s[table] = schedule.Table{} })
	each("SELECT event_object_table, '', '' FROM information_schema.triggers WHERE event_object_schema = DATABASE()",
		func(table, _, _ string) { delete(s, table) })
	each("SELECT table_name, COALESCE(column_name, ''), index_name FROM information_schema.statistics"+here+" AND non_unique = 0 ORDER BY seq_in_index",
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
	each("SELECT table_name, column_name, referenced_table_name FROM information_schema.key_column_usage"+here+" AND referenced_table_name IS NOT NULL",
		func(table, column, parent string) {
			change(table, func(t *schedule.Table) { t.Foreign, t.Parents = append(t.Foreign, column), append(t.Parents, parent) })
			change(parent, func(t *schedule.Table) { t.Children = append(t.Children, table) })
		})
	// InnoDB lets foreign keys name columns that are not unique.
	each("SELECT referenced_table_name, referenced_column_name, '' FROM information_schema.key_column_usage"+here+" AND referenced_table_name IS NOT NULL",
		func(parent, column, _ string) {
			change(parent, func(t *schedule.Table) { t.Unique = append(t.Unique, column) })
		})
	each("SELECT table_name, column_name, '' FROM information_schema.columns"+here+" AND generation_expression <> ''",
		func(table, column, _ string) {
			if slices.Contains(slices.Concat(s[table].Unique, s[table].Foreign), column) { // a statement changes it without its name
				delete(s, table)
			}
		})
	each("SELECT table_name, COALESCE(LOWER(column_default), ''), LOWER(extra) FROM information_schema.columns"+here,
		func(table, byDefault, extra string) {
			change(table, func(t *schedule.Table) {
				t.Born = t.Born || clock.MatchString(byDefault)
				t.Changed = t.Changed || clock.MatchString(extra)
			})
		})
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

// keepsElsewhere says whether the strategy declares that something else than a lock in Redis keeps others
// out.
func (r *shopsRun) keepsElsewhere() bool {
	return len(r.of.State.Keys) > 0 || r.of.State.Scattered() || r.of.Lease.Kept == declared.LeaseInMySQL
}
