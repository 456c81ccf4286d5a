package polling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"stocklock/internal/redislock"
)

// Options are the settings of a [Locker]. The zero value suits most callers.
type Options struct {
	// Lease is how long a lock lives without renewal. Zero means [redislock.DefaultLease]. The
	// shortest is 50 milliseconds.
	Lease time.Duration
	// Wait is how long Acquire and Do wait for a lock. Zero means as long as their context lasts.
	Wait time.Duration
	// Retry is the mean pause between two tries. Zero means 20 milliseconds.
	Retry time.Duration
	// Hooks are called on events of the locks. Evicts is not called.
	Hooks redislock.Hooks
}

const minLease = 50 * time.Millisecond

func (o Options) withDefaults() Options {
	o.Lease = cmp.Or(o.Lease, redislock.DefaultLease)
	if o.Lease < minLease || o.Wait < 0 {
		panic(fmt.Sprintf("polling: Options have a lease of %s and a wait of %s, want %s or more, and zero or more", o.Lease, o.Wait, minLease))
	}
	if o.Retry <= 0 {
		o.Retry = 20 * time.Millisecond
	}
	return o
}

// margin is subtracted from every local deadline, for clocks that run at different rates. It is 1 %
// of the lease and two milliseconds.
func (o Options) margin() time.Duration { return o.Lease/100 + 2*time.Millisecond }

func (o Options) renewEvery() time.Duration { return o.Lease / 3 }

func notAcquired(key string, cause error) error {
	return fmt.Errorf("acquire %q: %w", key, errors.Join(redislock.ErrNotAcquired, cause))
}

func notHeld(key string) error { return fmt.Errorf("release %q: %w", key, redislock.ErrNotHeld) }

// unknown wraps an error after which the outcome of the request is unknown.
func unknown(ctx context.Context, doing, key string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(cause, err)
		if doing == "acquire" {
			return notAcquired(key, err)
		}
	}
	return fmt.Errorf("polling: %s %q: outcome unknown: %w", doing, key, err)
}
