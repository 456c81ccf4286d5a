package schedule

import (
	"strings"

	"stocklock/internal/shop/labmode"
)

// Access is what a request does to its server, as far as others can notice.
type Access int

const (
	Reads   Access = iota // changes nothing
	Inserts               // adds a row
	Writes                // all else
)

// Request is one request of a sale to a server.
type Request struct {
	Server string `json:"server"` // redis, mysql or quorum-N
	Text   string `json:"text"`   // the command as it is sent
	Tx     bool   `json:"-"`      // a statement of a transaction
}

// redisReads are the commands of locks and sales that change nothing.
var redisReads = map[string]bool{
	"GET": true, "EXISTS": true, "TTL": true, "PTTL": true, "TIME": true, "HGET": true, "HGETALL": true, "HEXISTS": true,
	"MGET": true, "TYPE": true, "STRLEN": true, "DIGEST": true,
}

// Access is read from the command.
func (r Request) Access() Access {
	word, _, _ := strings.Cut(r.Text, " ")
	word = strings.ToUpper(word)
	switch {
	case r.Server != labmode.MySQLServer:
		if redisReads[word] {
			return Reads
		}
	case word == "SELECT" && !r.locksRow():
		return Reads
	case word == "INSERT" && !strings.Contains(strings.ToUpper(r.Text), "ON DUPLICATE KEY"):
		return Inserts
	}
	return Writes
}

// locksRow says whether a statement waits for a row that another transaction has written.
func (r Request) locksRow() bool {
	if r.Server != labmode.MySQLServer {
		return false
	}
	text := strings.ToUpper(r.Text)
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "UPDATE", "DELETE", "REPLACE":
		return true
	case "SELECT":
		return strings.Contains(text, "FOR UPDATE") || strings.Contains(text, "IN SHARE MODE") || strings.Contains(text, "FOR SHARE")
	case "INSERT":
		return strings.Contains(text, "ON DUPLICATE KEY")
	}
	return false
}

// RowLock is what a statement locks of the item's row.
type RowLock int

const (
	NoRow        RowLock = iota
	SharedRow            // an INSERT of an order: its foreign key keeps the row from being changed
	ExclusiveRow         // what changes the row, or reads it for that
)

// RowLock is read from the statement.
func (r Request) RowLock() RowLock {
	switch {
	case r.locksRow():
		return ExclusiveRow
	case r.Server == labmode.MySQLServer && r.Access() == Inserts && strings.Contains(r.Text, "orders"):
		return SharedRow
	}
	return NoRow
}

// WaitsFor says whether a statement waits until a transaction ends that has locked the row so.
func (l RowLock) WaitsFor(held RowLock) bool {
	return l == ExclusiveRow && held != NoRow || l == SharedRow && held == ExclusiveRow
}

// ServerName is the name of a server for people.
func ServerName(server string) string {
	if server == labmode.EtcdServer {
		return server
	}
	return "Redis"
}
