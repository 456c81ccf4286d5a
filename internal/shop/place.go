package shop

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
)

// requestMargin is how long a request may take besides its wait for the lock, until its write
// begins: to wait for a connection, and to read.
const requestMargin = 5 * time.Second

// errOverdue ends a request that took too long before it wrote anything.
var errOverdue = refusal{unavailable, "the request took too long before anything was written: nothing was done"}

// inPlace runs fn in one of the shop's places for requests. The place is free again when fn has
// returned: a client that reads its answer slowly holds none.
func inPlace[T any](s *Shop, c *gin.Context, fn func(ctx context.Context) (T, error)) (result T, err error) {
	if err := s.enter(c); err != nil {
		return result, err
	}
	defer s.leave()
	return inTime(s, c, fn)
}

// inTime runs fn with the request's deadline. A write that has begun does not end with it, and fn
// returns after the write.
func inTime[T any](s *Shop, c *gin.Context, fn func(ctx context.Context) (T, error)) (result T, err error) {
	ctx, cancel := context.WithTimeoutCause(c.Request.Context(), s.Deps.Wait+requestMargin+s.ExtraTime, errOverdue)
	defer cancel()
	result, err = fn(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errOverdue) && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, stock.ErrUnknown) {
		err = errOverdue
	}
	return result, err
}

// enter takes a place, and waits a little for one in a crowd. Load is shed before it costs memory: a
// request that waits for a lock or a connection holds on to its buffers. Requests with a body enter
// when the body has been read, so that slow senders do not take places.
func (s *Shop) enter(c *gin.Context) error {
	if !s.places.TryAcquire(1) {
		if err := s.waitForPlace(c); err != nil {
			return err
		}
	}
	s.inFlight.Add(1)
	return nil
}

// How long a request waits for a place before it is rejected. The times differ, so that a crowd that
// came at once does not come back at once.
const (
	leastRejection = 400 * time.Millisecond
	mostRejection  = 500 * time.Millisecond
)

// waitForPlace waits in a room for as many requests as there are places. The first that came gets
// the next place. The connection of a request that finds the room full is closed without an answer.
//
// Clients in a loop ignore Retry-After: rejected at once they would come back at once, and the
// rejections would cost the processor time that sales need.
func (s *Shop) waitForPlace(c *gin.Context) error {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > s.MaxInFlight {
		c.Set(outcomeKey, outcomeClosed)
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithTimeoutCause(c.Request.Context(), leastRejection+rand.N(mostRejection-leastRejection), errCrowded)
	defer cancel()
	if err := s.places.Acquire(ctx, 1); err != nil {
		if errors.Is(context.Cause(ctx), errCrowded) {
			return errCrowded
		}
		return err // the client has gone, or the shop ends
	}
	return nil
}

func (s *Shop) leave() {
	s.inFlight.Add(-1)
	s.places.Release(1)
}
