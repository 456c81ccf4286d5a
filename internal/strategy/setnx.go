package strategy

import (
	"context"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
)

var setnx = Strategy{
	Name:       "setnx",
	Doc:        "SETNX to take the lock, DEL to free it, and no expiry: a holder that dies keeps it for ever",
	Source:     "the first pattern of the SETNX command's page, and most copied snippets",
	Guard:      "SETNX; DEL",
	Decrement:  "read-then-write",
	Telling:    "crash",
	Properties: Exclusive | Renews | OwnerChecked | AtomicRelease | ClockFree | PauseProof,
	build: func(d Deps) (guard, decrement) {
		return polled{Options: d.Options, try: func(ctx context.Context, key string) (lease, error) {
			ok, err := sendSetnx(ctx, d.Redis, key, 1)
			if err != nil || !ok {
				return nil, err
			}
			sale.At(ctx, sale.Acquiring)
			return plainDel{d.Redis, key}, nil
		}}, readThenWrite
	},
}

// sendSetnx sends SETNX itself: go-redis turns its SetNX into SET with NX.
func sendSetnx(ctx context.Context, client redis.UniversalClient, key string, value any) (bool, error) {
	return client.Do(ctx, "SETNX", key, value).Bool()
}

// plainDel frees the lock with DEL, whoever holds it by now.
type plainDel struct {
	redis redis.UniversalClient
	key   string
}

func (l plainDel) release(ctx context.Context) error {
	sale.At(ctx, sale.Releasing)
	return l.redis.Del(ctx, l.key).Err()
}
