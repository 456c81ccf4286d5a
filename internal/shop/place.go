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
var errOverdue = refusal{unavailable, "the request took too long before anything was written: nothing was sold"}

// inPlace runs fn in one of the shop's places for requests. The place is free again when fn has
// returned: a client that reads its answer slowly holds none.
//
// The context of fn has the request's deadline. A write that has begun does not end with it, and fn
// returns after the write.
func inPlace[T any](s *Shop, c *gin.Context, fn func(ctx context.Context) (T, error)) (result T, err error) {
	if !s.enter() {
		s.waitToBeRejected(c)
		return result, errCrowded
	}
	defer s.leave()
	ctx, cancel := context.WithTimeoutCause(c.Request.Context(), s.Deps.Wait+requestMargin+s.ExtraTime, errOverdue)
	defer cancel()
	result, err = fn(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errOverdue) && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, stock.ErrUnknown) {
		err = errOverdue
	}
	return result, err
}

// enter takes a place, or reports that there is none: load is shed before it costs memory. A
// request that waits for a lock or a connection holds on to its buffers. Requests with a body enter
// when the body has been read, so that slow senders do not take places.
func (s *Shop) enter() bool {
	if s.inFlight.Add(1) > s.MaxInFlight {
		s.leave()
		return false
	}
	return true
}

// How long a request waits that is rejected because there is no place.
const (
	leastRejection = 100 * time.Millisecond
	mostRejection  = 500 * time.Millisecond
)

// waitToBeRejected delays the answer of a request that found no place. Clients in a loop ignore
// Retry-After: answered at once they would come back at once, and their rejections would cost the
// processor time that sales need. As many may wait as there are places; the connection of any other
// is closed without an answer.
func (s *Shop) waitToBeRejected(c *gin.Context) {
	defer s.rejected.Add(-1)
	if s.rejected.Add(1) > s.MaxInFlight {
		c.Set(outcomeKey, outcomeClosed)
		panic(http.ErrAbortHandler)
	}
	select {
	case <-time.After(leastRejection + rand.N(mostRejection-leastRejection)):
	case <-c.Request.Context().Done():
	}
}

func (s *Shop) leave() { s.inFlight.Add(-1) }
