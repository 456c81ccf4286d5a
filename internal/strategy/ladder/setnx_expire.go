package ladder

import (
	"context"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var setnxExpire = readsUnder(strategy.Strategy{
	Name: "setnx-expire",
	Doc:  "SETNX, then EXPIRE as a second command: nothing frees the lock of a holder that dies between the two",
}, declared.Strategy{
	Source:  "the usual first repair of setnx, from before Redis 2.6.12 gave SET its options",
	Guard:   "SETNX, EXPIRE; DEL",
	Telling: "crash-acquiring",
	Properties: declared.Properties{
		Has:           declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.ClockFree,
		NotApplicable: declared.AtomicRelease,
	},
}, func(d strategy.Deps) strategy.Guard {
	return polled{Options: d.Options, try: func(ctx context.Context, key string) (release, error) {
		ok, err := sendSetnx(ctx, d.Redis, key, 1)
		if err != nil || !ok {
			return nil, err
		}
		sale.At(ctx, sale.Acquiring)
		if err := d.Redis.PExpire(ctx, key, d.Lease).Err(); err != nil {
			return nil, err
		}
		return plainDel(d.Redis, key, ""), nil
	}}
})
