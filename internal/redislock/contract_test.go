package redislock

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// Kind is a locker with the contract of the interface [Locking], which is the same for all.
type Kind struct {
	Name    string
	Servers int    // independent ones, of which a majority decides
	Suffix  string // of a lock's key in Redis, after its tagged name
	Make    func(clients []Client, o Options) Locking
}

// Kinds has also those that other packages of this folder make: see kinds_test.go.
var Kinds = []Kind{{"redislock", 1, layout + ":lock", func(clients []Client, o Options) Locking { return New(clients[0], o) }}}

// contract runs a test of the contract on each kind of locker.
func contract(t *testing.T, test func(t *testing.T, k Kind)) {
	for _, k := range Kinds {
		t.Run(k.Name, func(t *testing.T) { test(t, k) })
	}
}

// clients are connected to servers of their own, as which the databases of one server do.
func (k Kind) clients(t testing.TB, connect func(db int) *redis.Client) (clients []Client) {
	needsServer(t)
	for db := range k.Servers {
		clients = append(clients, connect(db))
	}
	return clients
}

func (k Kind) make(t testing.TB, clients []Client, o Options) Locking {
	return closing(t, k.Make(clients, o))
}

func (k Kind) new(t testing.TB, o Options) Locking { return k.with(t, o, func(*redis.Client) {}) }

func (k Kind) with(t testing.TB, o Options, prepare func(*redis.Client)) Locking {
	return k.make(t, k.clients(t, func(db int) *redis.Client {
		client, _ := newClient(t, shared.addr, db)
		prepare(client)
		return client
	}), o)
}

// count says how many servers have a lock, and deletes it there if wanted: on all at one moment, since a quorum gives
// its value back to a server between two renewals.
func (k Kind) count(t testing.TB, key string, del bool) (n int64) {
	client, _ := newClient(t, shared.addr, 0)
	var there []*redis.IntCmd
	_, err := client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		for db := range k.Servers {
			p.Do(t.Context(), "select", db)
			there = append(there, p.Exists(t.Context(), tagged(key)+k.Suffix))
			if del {
				p.Del(t.Context(), tagged(key)+k.Suffix)
			}
		}
		return nil
	})
	must(t, err)
	for _, cmd := range there {
		n += cmd.Val()
	}
	return n
}
