package ladder

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var luaSetex = readsUnder(strategy.Strategy{
	Name: "lua-setex",
	Doc:  "one script that looks with EXISTS and sets with PSETEX, one that compares and deletes: as good as SET NX PX, no better",
}, declared.Strategy{
	Source:     "the scripts that were pasted before SET had NX and EX, and still are",
	Guard:      "script: EXISTS, PSETEX; script: GET equals, DEL",
	Telling:    "overrun",
	Properties: ownerChecked.Declared.Properties,
}, func(d strategy.Deps) strategy.Guard {
	return polledBy(d, func(ctx context.Context, key, owner string) (bool, error) {
		return setIfAbsentScript.Run(ctx, d.Redis, []string{key}, owner, d.Lease.Milliseconds()).Bool()
	}, compareAndDelete)
})

var (
	//go:embed set_if_absent.lua
	setIfAbsentSource string
	setIfAbsentScript = redis.NewScript(setIfAbsentSource)
)
