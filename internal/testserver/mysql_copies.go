package testserver

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// shopUser may do everything in the first database and nothing else. A server that is read-only refuses its
// writes, and not those of the user of [MySQL.DSN].
const shopUser = "shop"

// ShopDSN is [MySQL.DSN] for a user without rights beyond the database, on a server of several.
func (m *MySQL) ShopDSN() string {
	return strings.Replace(m.DSN(), mysqlUser+":", shopUser+":", 1)
}

// accounts are the statements that make the users of a server of several.
func accounts(password string) []string {
	return []string{
		"CREATE USER IF NOT EXISTS '" + shopUser + "'@'127.0.0.1' IDENTIFIED BY '" + password + "'",
		"GRANT ALL ON " + mysqlDatabase + ".* TO '" + shopUser + "'@'127.0.0.1'",
	}
}

// MySQLAlone is [Group.MySQL] with the accounts of servers that are several.
func (g *Group) MySQLAlone(ctx context.Context) (*MySQL, error) {
	password := RandomHex(12)
	return g.mysql(ctx, &MySQL{password: password, alone: accounts(password)}, nil)
}

// Value asks the server for one value, such as "@@gtid_binlog_pos".
func (m *MySQL) Value(ctx context.Context, expression string) (string, error) {
	row, err := m.row(ctx, "SELECT ("+expression+") AS value")
	return row["value"], err
}

// Status asks the server for one of its status variables. It is empty where the server has none of that name.
func (m *MySQL) Status(ctx context.Context, name string) (string, error) {
	row, err := m.row(ctx, "SHOW GLOBAL STATUS LIKE '"+name+"'")
	return row["Value"], err
}

// number makes what [MySQL.Value] or [MySQL.Status] returns a number.
func number(value string, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(value)
}

// row asks for the first row of an answer, by the names of its columns. It is empty where there is none.
func (m *MySQL) row(ctx context.Context, statement string) (map[string]string, error) {
	var found map[string]string
	err := m.Ask(ctx, func(db *sql.DB) error {
		rows, err := texts(ctx, db, statement)
		if len(rows) > 0 {
			found = rows[0]
		}
		return err
	})
	return found, err
}

// Ask calls question with a connection of the administrator, for what has no method.
func (m *MySQL) Ask(ctx context.Context, question func(*sql.DB) error) error {
	db, err := m.admin()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := question(db); err != nil {
		return fmt.Errorf("testserver: ask %s: %w", m.Name, err)
	}
	return nil
}

// Certifying returns how many commits of shops wait because of [MySQL.HoldApplying].
func (m *MySQL) Certifying(ctx context.Context) (int, error) {
	return number(m.Value(ctx, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '"+shopUser+"' AND STATE = 'Waiting for certification'"))
}

// withoutIdentity removes from a copy of a template what a server is told apart by.
func withoutIdentity(data string) error { return os.RemoveAll(filepath.Join(data, "auto.cnf")) }
