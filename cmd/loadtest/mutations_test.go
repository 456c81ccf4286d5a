package main

import (
	"os"
	"strings"
	"testing"
)

// mutation is one change of the shop's source.
type mutation struct {
	what, file, old, new string
	strategy             string
	surprises            []string // the cells whose verdict depends on what is changed
}

// mutations are run by TestMutations, with the tag mutations: it takes minutes.
var mutations = []mutation{
	{
		"set-ex-nx checks the owner before it deletes", "internal/strategy/ladder/set_ex_nx.go",
		`
			ok, err := d.Redis.SetNX(ctx, key, 1, d.Lease).Result()
			if err != nil || !ok {
				return nil, err
			}
			sale.At(ctx, sale.Acquiring)
			return plainDel{d.Redis, key}, nil
`,
		`
			owner := ownerID()
			ok, err := d.Redis.SetNX(ctx, key, owner, d.Lease).Result()
			if err != nil || !ok {
				return nil, err
			}
			sale.At(ctx, sale.Acquiring)
			return compareAndDelete{d.Redis, key, owner}, nil
`,
		"set-ex-nx", []string{"set-ex-nx:late-release", "set-ex-nx:split-release"},
	},
	{
		"fenced writes without looking at the fence", "internal/stock/write.go",
		`ErrFenced, "id = ? AND fence = ?", sale.ItemID, sale.Token`, `ErrFenced, "id = ? AND ? > 0", sale.ItemID, sale.Token`,
		"fenced", []string{"fenced:eviction", "fenced:failover", "fenced:pause", "fenced:redis-restart"},
	},
	{
		"the watchdog renews no hold", "internal/redislock/state.go",
		"(m.state == held || m.state == waiting) && now >= m.due", "m.state == waiting && now >= m.due",
		"reentrant", []string{"reentrant:overrun"},
	},
	{
		"a sale does not look whether its lock is lost", "internal/strategy/decrement.go",
		"wanted.Ready = lastLook(ctx)", "ctx = context.WithoutCancel(ctx)\n\twanted.Ready = lastLook(ctx)",
		"reentrant", []string{"reentrant:partition"},
	},
}

// TestMutationsFit wants each mutation to find what it changes, once.
func TestMutationsFit(t *testing.T) {
	for _, m := range mutations {
		content, err := os.ReadFile("../../" + m.file)
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(content), m.old); n != 1 {
			t.Errorf("%s: %s has %d times what is to be changed, want once: %s", m.what, m.file, n, m.old)
		}
	}
}
