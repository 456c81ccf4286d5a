package shop

import (
	"context"
	"errors"

	"github.com/gin-gonic/gin"

	"stocklock/internal/redislock"
	"stocklock/internal/strategy"
)

// Acquire is redislock's Acquire, or its TryAcquire, which does not wait.
type Acquire func(ctx context.Context, key string) (held context.Context, lease *redislock.Lease, err error)

// Locked is a middleware. The handlers behind it hold the lock on the request's key. A request that
// does not get the lock is answered with busy. The request's context ends when the lock is lost.
// Handlers check it before every step that must not happen without the lock, and may acquire the
// same key again with it.
//
//	api.POST("/accounts/:id/transfers", shop.Locked(locker.Acquire, func(c *gin.Context) string {
//		return "account:" + c.Param("id")
//	}), transfer)
func Locked(acquire Acquire, key func(*gin.Context) string) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx := c.Request.Context()
		held, lease, err := acquire(ctx, key(c))
		if errors.Is(err, redislock.ErrNotAcquired) {
			err = strategy.ErrBusy
		}
		if err != nil {
			refuse(c, explain(ctx, err))
			return
		}
		defer lease.Release() // what could not be released ends with its lease
		c.Request = c.Request.WithContext(held)
		c.Next()
	}
}
