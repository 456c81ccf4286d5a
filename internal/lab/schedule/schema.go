package schedule

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
)

// LoadSchema asks a database for its tables of InnoDB that have no triggers, and no key on a column that is computed from others.
func LoadSchema(ctx context.Context, db *sql.DB) (Schema, error) {
	s := Schema{}
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
	change := func(table string, how func(*Table)) {
		if t, known := s[table]; known {
			how(&t)
			s[table] = t
		}
	}
	const here = " WHERE table_schema = DATABASE()"
	each("SELECT table_name, '', '' FROM information_schema.tables"+here+" AND engine = 'InnoDB' AND table_type = 'BASE TABLE'",
		func(table, _, _ string) { s[table] = Table{} })
	each("SELECT event_object_table, '', '' FROM information_schema.triggers WHERE event_object_schema = DATABASE()",
		func(table, _, _ string) { delete(s, table) })
	each("SELECT table_name, COALESCE(column_name, ''), index_name FROM information_schema.statistics"+here+" AND non_unique = 0 ORDER BY seq_in_index",
		func(table, column, index string) {
			if column == "" { // an expression
				delete(s, table)
			}
			change(table, func(t *Table) {
				t.Unique = append(t.Unique, column)
				if index == "PRIMARY" {
					t.Primary = append(t.Primary, column)
				}
			})
		})
	each("SELECT table_name, column_name, referenced_table_name FROM information_schema.key_column_usage"+here+" AND referenced_table_name IS NOT NULL",
		func(table, column, parent string) {
			change(table, func(t *Table) { t.Foreign, t.Parents = append(t.Foreign, column), append(t.Parents, parent) })
			change(parent, func(t *Table) { t.Children = append(t.Children, table) })
		})
	// InnoDB lets foreign keys name columns that are not unique.
	each("SELECT referenced_table_name, referenced_column_name, '' FROM information_schema.key_column_usage"+here+" AND referenced_table_name IS NOT NULL",
		func(parent, column, _ string) {
			change(parent, func(t *Table) { t.Unique = append(t.Unique, column) })
		})
	each("SELECT table_name, column_name, '' FROM information_schema.columns"+here+" AND generation_expression <> ''",
		func(table, column, _ string) {
			if slices.Contains(slices.Concat(s[table].Unique, s[table].Foreign), column) { // a statement changes it without its name
				delete(s, table)
			}
		})
	each("SELECT table_name, COALESCE(LOWER(column_default), ''), LOWER(extra) FROM information_schema.columns"+here,
		func(table, byDefault, extra string) {
			change(table, func(t *Table) {
				t.Born = t.Born || clock.MatchString(byDefault)
				t.Changed = t.Changed || clock.MatchString(extra)
			})
		})
	return s, err
}

var clock = regexp.MustCompile(`current_timestamp|now\(|curdate|curtime|sysdate|utc_`)
