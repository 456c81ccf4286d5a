package testserver

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Transaction is one that a server has in its binlog.
type Transaction struct {
	GTID       string
	Statements []string // as their clients sent them
}

// Transactions reads the binlog of a server of a pair, from its first transaction to its last.
func (m *MySQL) Transactions(ctx context.Context) (all []Transaction, err error) {
	words := wordsOf(m.isMySQL)
	err = m.Ask(ctx, func(db *sql.DB) error {
		files, err := texts(ctx, db, "SHOW BINARY LOGS")
		if err != nil {
			return err
		}
		for _, file := range files {
			events, err := texts(ctx, db, "SHOW BINLOG EVENTS IN '"+file["Log_name"]+"'")
			if err != nil {
				return err
			}
			for _, event := range events {
				if gtid := words.gtid.FindString(event["Info"]); event["Event_type"] == "Gtid" && gtid != "" {
					all = append(all, Transaction{GTID: gtid})
				}
				if n := len(all) - 1; n >= 0 && event["Event_type"] == words.statement {
					all[n].Statements = append(all[n].Statements, strings.TrimPrefix(event["Info"], "# "))
				}
			}
		}
		return nil
	})
	return all, err
}

// LogStatements makes the server keep every statement of its clients, for [MySQL.Statements].
func (m *MySQL) LogStatements(ctx context.Context) error {
	return m.asAdmin(ctx, "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1")
}

// Statements returns what shops have sent about an item since a time, as the server has kept it.
func (m *MySQL) Statements(ctx context.Context, item uint64, since time.Time) (sent []string, err error) {
	about := regexp.MustCompile(fmt.Sprintf("\\b(?:item_)?id`?(?: =| IN \\() ?%d\\b", item))
	err = m.Ask(ctx, func(db *sql.DB) error {
		kept, err := texts(ctx, db, fmt.Sprintf("SELECT CONVERT(argument USING utf8mb4) AS argument FROM mysql.general_log"+
			" WHERE command_type = 'Query' AND user_host LIKE '"+shopUser+"%%' AND argument REGEXP '^(SELECT|INSERT|UPDATE) ' AND event_time >= FROM_UNIXTIME(%.6f)",
			float64(since.UnixMicro())/1e6))
		for _, row := range kept {
			if statement := row["argument"]; about.MatchString(statement) {
				sent = append(sent, statement)
			}
		}
		return err
	})
	return sent, err
}

// Certification counts the transactions that a node of Galera has refused because another one had been faster:
// those of its own clients at their COMMIT, and those that it ended for a transaction of another node.
func (m *MySQL) Certification(ctx context.Context) (failures, aborts int, err error) {
	if failures, err = number(m.Status(ctx, "wsrep_local_cert_failures")); err != nil {
		return 0, 0, err
	}
	aborts, err = number(m.Status(ctx, "wsrep_local_bf_aborts"))
	return failures, aborts, err
}

// OrdersOf returns how many orders of an item the server has.
func (m *MySQL) OrdersOf(ctx context.Context, item uint64) (int, error) {
	return number(m.Value(ctx, fmt.Sprintf("SELECT COUNT(*) FROM %s.orders WHERE item_id = %d", mysqlDatabase, item)))
}

// texts asks for all rows of an answer, by the names of their columns.
func texts(ctx context.Context, db *sql.DB, statement string) (found []map[string]string, err error) {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, name := range names {
			row[name] = values[i].String
		}
		found = append(found, row)
	}
	return found, rows.Err()
}
