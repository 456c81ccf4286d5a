package shop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// refusal is an error that contains its answer.
type refusal struct {
	kind
	detail string
}

func (r refusal) Error() string { return r.slug + ": " + r.detail }

// Malformed returns the error that answers a request which cannot be read.
func Malformed(detail string) error { return refusal{malformed, detail} }

var (
	errStarting = refusal{unavailable, "the shop is starting: nothing was done"}
	errCrowded  = refusal{busy, "too many requests are under way: nothing was done"}
	errDraining = refusal{shuttingDown, "the shop is shutting down: nothing was done"}
	errUnknown  = refusal{unavailable, "MySQL did not answer the transaction: the outcome is unknown"}
	errNotNow   = refusal{unavailable, "MySQL or Redis cannot work now: this request did nothing"}
)

// answers has the answers to the errors of a sale or a change. The first match counts.
var answers = []struct {
	err    error
	kind   kind
	detail string
}{
	{stock.ErrUnknown, unavailable, errUnknown.detail},
	{stock.ErrSoldOut, soldOut, "fewer units are left than were asked for"},
	{stock.ErrNotFound, notFound, "there is no item or order with this id"},
	{stock.ErrFenced, fencedOff, "a newer holder of the lock was faster: nothing was sold"},
	{stock.ErrConflict, conflict, "the item kept changing meanwhile: nothing was done"},
	{stock.ErrCancelled, cancelled, "the order was cancelled before"},
	{stock.ErrStale, versionChanged, "the item has another version than If-Match: nothing was done"},
	{stock.ErrTooMany, tooMany, fmt.Sprintf("an item has at most %d units: nothing was done", stock.MaxStock)},
	{redislock.ErrLost, lockLost, "the lock was lost before anything was written: nothing was sold"},
	{redislock.ErrClosed, shuttingDown, "the shop is shutting down: nothing was sold"},
	{strategy.ErrBusy, busy, "the lock was not free in time: nothing was sold"},
}

// explain finds the answer to an error.
func explain(ctx context.Context, err error) refusal {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errDraining) {
		return errDraining
	}
	if r, ok := errors.AsType[refusal](err); ok {
		return r
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return refusal{a.kind, a.detail}
		}
	}
	if unreachable(err) {
		return errNotNow
	}
	return refusal{internalError, "see the shop's log for this request id"}
}

// unreachable reports whether err means that a server did not answer, or that it cannot work now.
func unreachable(err error) bool {
	return stock.Unreachable(err) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed) ||
		redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsMasterDownError(err) ||
		redis.IsClusterDownError(err) || redis.IsTryAgainError(err) || redis.IsMaxClientsError(err) ||
		redis.IsAuthError(err) || redis.IsPermissionError(err) ||
		redis.IsOOMError(err) || redis.IsNoReplicasError(err) ||
		redis.HasErrorPrefix(err, "MISCONF") || redis.HasErrorPrefix(err, "BUSY")
}

// advice tells an operator what to do about a server that is up but cannot work now, or returns "".
func advice(err error) string {
	if text := stock.Advice(err); text != "" {
		return text
	}
	for _, a := range []struct {
		is   bool
		text string
	}{
		{redis.IsReadOnlyError(err), "Redis is a replica: point SHOP_REDIS at the primary"},
		{redis.IsOOMError(err), "Redis is out of memory: raise maxmemory, or let keys expire"},
		{redis.IsNoReplicasError(err), "Redis has fewer replicas than min-replicas-to-write: bring them back"},
		{redis.HasErrorPrefix(err, "MISCONF"), "Redis cannot write its snapshot: free disk space, or see its log"},
		{redis.HasErrorPrefix(err, "BUSY"), "a script occupies Redis: SCRIPT KILL ends it"},
		{redis.IsAuthError(err), "Redis refuses the user or its password: correct SHOP_REDIS"},
		{redis.IsPermissionError(err), "Redis refuses a command to this user: grant the rights of SECURITY.md"},
		{redis.IsMaxClientsError(err), "Redis has too many clients: raise maxclients"},
		{redis.IsClusterDownError(err), "the Redis Cluster is down: bring its masters back"},
	} {
		if a.is {
			return a.text
		}
	}
	return ""
}

// adviceInterval is the time between two log records of one advice.
const adviceInterval = time.Minute

// advise logs the advice for err, at most once in adviceInterval.
func (s *Shop) advise(ctx context.Context, err error) {
	text := advice(err)
	if text == "" {
		return
	}
	now := time.Now()
	if last, seen := s.advised.Load(text); seen && now.Sub(last.(time.Time)) < adviceInterval {
		return
	}
	s.advised.Store(text, now)
	s.Log.ErrorContext(ctx, "a server cannot work now", "advice", text, "error", err)
}

// problem is the body of an error, application/problem+json of RFC 9457.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Instance  string `json:"instance"`
	RequestID string `json:"request_id"`
}

// fail answers with the problem for err, and logs what the answer leaves out.
func (s *Shop) fail(c *gin.Context, err error) {
	ctx := c.Request.Context()
	r := explain(ctx, err)
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), context.Canceled) {
		// The client has gone. That is no failure of the shop, and many clients that leave must not
		// cause a flood of warnings.
		s.Log.DebugContext(ctx, "client gone", "error", err, "request", requestID(c), "path", c.Request.URL.Path)
		refuse(c, r)
		c.Set(outcomeKey, "client-gone")
		return
	}
	s.advise(ctx, err)
	s.Log.Log(ctx, r.logLevel(), "request failed", "problem", r.slug, "error", err,
		"request", requestID(c), "path", c.Request.URL.Path)
	refuse(c, r)
}

// maxInstance is how many bytes of a path an answer contains.
const maxInstance = 200

func refuse(c *gin.Context, r refusal) {
	c.Set(outcomeKey, r.slug)
	if r.retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(r.retryAfter))
	}
	c.Header("Content-Type", "application/problem+json")
	c.AbortWithStatusJSON(r.status, problem{
		Type: problemPath + r.slug, Title: r.title, Status: r.status, Detail: r.detail,
		Instance: c.Request.URL.Path[:min(len(c.Request.URL.Path), maxInstance)], RequestID: requestID(c),
	})
}
