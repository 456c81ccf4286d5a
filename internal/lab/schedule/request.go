package schedule

import (
	"slices"

	"stocklock/internal/shop/labmode"
)

// Request is one request of a sale to a server.
type Request struct {
	Server string `json:"server"` // redis, mysql or quorum-N
	Text   string `json:"text"`   // the command as it is sent
	Tx     bool   `json:"-"`      // a statement of a transaction
	Source string `json:"-"`      // of a script that is not the repository's own, where it is known
	// Isolation is that of the transaction, in the words of database/sql. Earlier are the statements that
	// the transaction has sent already.
	Isolation string      `json:"-"`
	Earlier   []Statement `json:"-"`
}

// IsLook says whether the request changes nothing and waits for nothing.
func (r Request) IsLook(s Schema) bool {
	return !slices.ContainsFunc(s.Touches(r), func(t Touch) bool { return t.Does&^(Reads|Asks) != 0 })
}

// ServerName is the name of a server for people.
func ServerName(server string) string {
	if server == labmode.EtcdServer {
		return server
	}
	return "Redis"
}
