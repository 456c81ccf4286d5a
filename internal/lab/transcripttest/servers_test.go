package transcripttest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/redisconn"
	"stocklock/internal/shop/labmode"
)

// Setup are the statements before a transcript, for so many units. They begin anew, too.
func Setup(units int64) []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS pair_items (pair VARCHAR(20) PRIMARY KEY, stock INT)",
		"CREATE TABLE IF NOT EXISTS pair_orders (id INT PRIMARY KEY AUTO_INCREMENT, pair VARCHAR(20), customer CHAR(1), stock_read INT, stock_written INT)",
		"DELETE FROM pair_orders WHERE pair = '" + Pair + "'",
		fmt.Sprintf("REPLACE INTO pair_items VALUES ('%s', %d)", Pair, units),
	}
}

// Type sends the lines, each customer on a connection of its own to each server. The database is
// empty, and so is the Redis. It returns the lines with their answers,
// as redis-cli and mysql print them without the time it took, and the units that were left and the
// orders that were made in the end.
func Type(ctx context.Context, db *sql.DB, client redisconn.Client, units int64, lines []schedule.Line) (typed []schedule.Line, left, orders int64, err error) {
	for _, s := range Setup(units) {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return nil, 0, 0, fmt.Errorf("%s: %w", s, err)
		}
	}
	terminals := map[string]*sql.Conn{}
	defer func() {
		for _, c := range terminals {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, l := range lines {
		answer := ""
		switch {
		case l.Event == schedule.Wait:
			err = expire(ctx, client)
		case l.Event == schedule.Kill:
			if c := terminals[l.Customer]; c != nil {
				delete(terminals, l.Customer)
				err = c.Close()
			}
		case l.Server == labmode.MySQLServer:
			if terminals[l.Customer] == nil {
				if terminals[l.Customer], err = db.Conn(ctx); err != nil {
					return nil, 0, 0, err
				}
			}
			answer, err = query(ctx, terminals[l.Customer], l.Text)
		default:
			answer = redisAnswer(client.Do(ctx, arguments(l.Text)...))
		}
		if err != nil {
			return nil, 0, 0, fmt.Errorf("%s: %w", l.Text, err)
		}
		l.Answer = answer
		typed = append(typed, l)
	}
	if err := db.QueryRowContext(ctx, "SELECT stock FROM pair_items").Scan(&left); err != nil {
		return nil, 0, 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM pair_orders").Scan(&orders)
	return typed, left, orders, err
}

// expire lets the time pass in which the lease ends: a lock without an expiry stays.
func expire(ctx context.Context, client redisconn.Client) error {
	const lock = "stock:" + Pair
	ttl, err := client.Do(ctx, "PTTL", lock).Int64()
	if err != nil || ttl < 0 {
		return err
	}
	if ttl > LeaseMS {
		return fmt.Errorf("the lock has a lease of %d ms", ttl)
	}
	return client.Do(ctx, "PEXPIRE", lock, 0).Err
}

var word = regexp.MustCompile(`"[^"]*"|\S+`)

// arguments splits a command as redis-cli does: a text in quotes is one argument.
func arguments(command string) []any {
	var all []any
	for _, w := range word.FindAllString(command, -1) {
		all = append(all, strings.Trim(w, `"`))
	}
	return all
}

// redisAnswer is an answer as redis-cli prints it.
func redisAnswer(answer redisconn.Reply) string {
	if answer.Err != nil {
		return "(error) " + answer.Err.Error()
	}
	switch v := answer.Value.(type) {
	case nil:
		return "(nil)"
	case int64:
		return fmt.Sprintf("(integer) %d", v)
	case string:
		if v == "OK" {
			return v
		}
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(answer.Value)
}

// query sends a statement and returns the answer as mysql prints it, in short.
func query(ctx context.Context, conn *sql.Conn, statement string) (string, error) {
	if strings.HasPrefix(statement, "SELECT") {
		var value string
		if err := conn.QueryRowContext(ctx, statement).Scan(&value); err != nil {
			return "", err
		}
		return "stock: " + value, nil
	}
	done, err := conn.ExecContext(ctx, statement)
	if err != nil {
		return "", err
	}
	rows, err := done.RowsAffected()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Query OK, %s affected", schedule.Plural(rows, "row")), nil
}
