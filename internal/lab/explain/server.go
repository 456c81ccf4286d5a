package explain

import "time"

// Change is a change of a lock's key, as Redis itself announced it.
type Change struct {
	Time   time.Time // when the announcement was read: a little after the change
	Server string    // which Redis, such as "redis" or "redis 3 of 5"
	Key    string
	What   string // Redis's name of the event: set, hset, expire, expired, del; or [Gone]
}

// Gone is the change of a server that closed its connections: it died, and what
// it had is lost to its clients.
const Gone = "gone"

// Intervention is what the lab did to a shop or a server.
type Intervention struct {
	From  time.Time
	Until time.Time // zero while it lasts
	Shop  string    // which shop it was done to, empty for a server
	What  string
}
