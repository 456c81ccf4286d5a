package section

import (
	"context"
	"database/sql"

	"github.com/go-sql-driver/mysql"
)

var mysqlSection = Section{
	Name: "mysql", Doc: "SELECT a counter from MySQL, then UPDATE it to the value plus one, each in its own transaction", Counts: true,
	Open: func(c Config) (Work, error) {
		cfg, err := mysql.ParseDSN(c.MySQL)
		if err != nil {
			return nil, err
		}
		cfg.InterpolateParams = true // one round trip per statement
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			return nil, err
		}
		db := sql.OpenDB(connector)
		db.SetMaxIdleConns(4)
		return mysqlWork{db}, nil
	},
}

type mysqlWork struct{ db *sql.DB }

func (w mysqlWork) Reset(ctx context.Context, counter string) error {
	if _, err := w.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS counters (name VARCHAR(100) PRIMARY KEY, n BIGINT NOT NULL)"); err != nil {
		return err
	}
	_, err := w.db.ExecContext(ctx, "REPLACE INTO counters VALUES (?, 0)", counter)
	return err
}

func (w mysqlWork) Run(ctx context.Context, counter string) error {
	n, err := w.Total(ctx, counter)
	if err != nil {
		return err
	}
	_, err = w.db.ExecContext(ctx, "UPDATE counters SET n = ? WHERE name = ?", n+1, counter)
	return err
}

func (w mysqlWork) Total(ctx context.Context, counter string) (n int64, err error) {
	err = w.db.QueryRowContext(ctx, "SELECT n FROM counters WHERE name = ?", counter).Scan(&n)
	return n, err
}

func (w mysqlWork) Close() error { return w.db.Close() }
