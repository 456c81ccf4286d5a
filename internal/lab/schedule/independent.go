package schedule

import (
	"strings"

	"stocklock/internal/shop/labmode"
)

// access is what a request does to its server, as far as others can notice.
type access int

const (
	reads access = iota
	inserts
	writes
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

func (r Request) access() access {
	word, _, _ := strings.Cut(r.Text, " ")
	word = strings.ToUpper(word)
	switch {
	case r.Server != labmode.MySQLServer:
		if redisReads[word] {
			return reads
		}
	case word == "SELECT" && !r.locksRow():
		return reads
	case word == "INSERT" && !strings.Contains(strings.ToUpper(r.Text), "ON DUPLICATE KEY"):
		return inserts
	}
	return writes
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

// rowLock is what a statement locks of the item's row.
type rowLock int

const (
	noRow        rowLock = iota
	sharedRow            // an INSERT of an order: its foreign key keeps the row from being changed
	exclusiveRow         // what changes the row, or reads it for that
)

func (r Request) rowLock() rowLock {
	switch {
	case r.locksRow():
		return exclusiveRow
	case r.Server == labmode.MySQLServer && r.access() == inserts && strings.Contains(r.Text, "orders"):
		return sharedRow
	}
	return noRow
}

// waitsFor says whether a statement waits until a transaction ends that has locked the row so.
func (l rowLock) waitsFor(held rowLock) bool {
	return l == exclusiveRow && held != noRow || l == sharedRow && held == exclusiveRow
}

// independent says whether two choices can change places without anybody noticing. They are of
// different customers and follow each other. Steps on different servers are; so are two that only
// read, and an INSERT beside anything of another customer. An event is independent of what is sent
// to a server that it does nothing to; where the strategy goes by a clock of its own, of nothing
// while a lease passes.
func independent(a, b Option, localClock bool) bool {
	if a.Choice.Customer == b.Choice.Customer && a.Choice.Customer != 0 {
		return false
	}
	switch {
	case a.Choice.IsStep() && b.Choice.IsStep():
		if a.Request.Server == "" || b.Request.Server == "" { // a first step that nobody has seen yet
			return false
		}
		if a.Request.Server != b.Request.Server {
			return true
		}
		one, other := a.Request.access(), b.Request.access()
		return one == reads && other == reads || one == inserts || other == inserts
	case !a.Choice.IsStep() && !b.Choice.IsStep():
		return false
	case a.Choice.IsStep():
		a, b = b, a
	}
	switch a.Choice.Event { // a is the event, b the step of another customer
	case Arrive, Lose:
		return true
	case Kill: // its connection to MySQL ends, and with it its transaction
		return b.Request.Server != labmode.MySQLServer
	case Forget, FlushAll, Failover:
		return b.Request.Server == labmode.MySQLServer
	default:
		return b.Request.Server == labmode.MySQLServer && !localClock
	}
}
