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

// requestMargin is the time until the write begins, besides the wait for the lock. It is for the
// wait for a connection, and for the read.
const requestMargin = 5 * time.Second

// errOverdue ends a request that took too long before it wrote anything.
var errOverdue = refusal{unavailable, "the request took too long before anything was written: nothing was done"}

// inPlace runs fn in one of the shop's places for requests. The place is free as soon as fn has
// returned, so a client that reads its answer slowly holds none.
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

// enter takes a place, and in a crowd waits a little for one. It sheds load before that costs
// memory, because a request that waits for a lock or a connection keeps its buffers. A request with
// a body enters after the body was read, so slow senders take no places.
func (s *Shop) enter(c *gin.Context) error {
	if !s.places.TryAcquire(1) {
		if err := s.waitForPlace(c); err != nil {
			return err
		}
	}
	s.inFlight.Add(1)
	return nil
}

// How long a request waits for a place before it is rejected. The times differ, so that a crowd
// does not return at once.
const (
	leastRejection = 400 * time.Millisecond
	mostRejection  = 500 * time.Millisecond
)

// waitForPlace waits in a room for as many requests as there are places. The first request gets the
// next place. If the room is full, the connection of a request is closed without an answer.
//
// Clients in a loop ignore Retry-After. After an immediate rejection they would return immediately,
// and the rejections would use the processor time that sales need.
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
