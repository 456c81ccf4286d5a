package ladder

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var luaSetex = Declare(strategy.Strategy{
	Name: "lua-setex",
	Doc:  "one script that looks with EXISTS and sets with PSETEX, one that compares and deletes: as good as SET NX PX, no better",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return polled{Options: d.Options, try: func(ctx context.Context, key string) (release, error) {
			owner := ownerID()
			got, err := setIfAbsentScript.Run(ctx, d.Redis, []string{key}, owner, d.Lease.Milliseconds()).Int()
			if err != nil || got == 0 {
				return nil, err
			}
			sale.At(ctx, sale.Acquiring)
			return compareAndDelete(d.Redis, key, owner), nil
		}}, strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source:     "the scripts that were pasted before SET had NX and EX, and still are",
	Guard:      "script: EXISTS, PSETEX; script: GET equals, DEL",
	Decrement:  "read-then-write",
	Telling:    "overrun",
	Servers:    declared.RewindProof,
	Properties: ownerChecked.Declared.Properties,
})

var (
	//go:embed set_if_absent.lua
	setIfAbsentSource string
	setIfAbsentScript = redis.NewScript(setIfAbsentSource)
)
