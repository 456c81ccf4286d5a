package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Problem is a problem type of RFC 9457: what clients may rely on.
type Problem struct {
	Slug       string // its type is /problems/<slug>
	Status     int
	retryAfter int // seconds; 0 for no such header
	Title      string
	Meaning    string // for the client: what happened, and what to do
}

var problems []Problem // those of the table, in its order

// Problems returns all problem types, in the order of the documentation.
func Problems() []Problem { return slices.Clone(problems) }

func problemType(slug string, status, retryAfter int, title, meaning string) Problem {
	p := Problem{slug, status, retryAfter, title, meaning}
	problems = append(problems, p)
	return p
}

// The table of problem types. Those that state the outcome of an order, or of a reservation in the lab, are exported.
//
// A new one is an entry here, and where it applies:
//   - the type and its status in openapi.yaml: the tests hold it to this table and to each answer;
//   - an error of [answers] below, such as one of stock/errors.go;
//   - an outcome of an order in internal/lab/load/outcome.go: without one, a load test counts the
//     answer as an error and its cell as invalid. A test there names each problem without one;
//   - the series of newMetrics in metrics.go that are shown as 0 from the beginning.
var (
	malformed = problemType("malformed", http.StatusBadRequest, 0, "The request cannot be read",
		"A number, a header or the body is not what it has to be. Nothing was done. Correct the request.")
	invalid = problemType("invalid", http.StatusUnprocessableEntity, 0, "The request asks for something impossible",
		"The request can be read, but a value is out of range. Nothing was done. Correct the request.")
	keyReused = problemType("idempotency-key-reused", http.StatusUnprocessableEntity, 0, "The Idempotency-Key belongs to another request",
		"Something else was done under this key, such as an order of another item. Nothing was done now. Use a new key for every wish.")
	tooLarge = problemType("too-large", http.StatusRequestEntityTooLarge, 0, "The request body is too large",
		"A body has at most 8192 bytes. Nothing was done.")
	tooSlow = problemType("too-slow", http.StatusRequestTimeout, 0, "The request came too slowly",
		"The body had not come when the time for a request was over. Nothing was done. Send it again.")
	wrongMediaType = problemType("unsupported-media-type", http.StatusUnsupportedMediaType, 0, "The request body is not JSON",
		"Send bodies with Content-Type: application/json, in UTF-8 and without Content-Encoding. Nothing was done.")
	notFound = problemType("not-found", http.StatusNotFound, 0, "There is no such thing",
		"There is no such item, order, reservation, payment or path. Nothing was done.")
	methodNotAllowed = problemType("method-not-allowed", http.StatusMethodNotAllowed, 0, "The method is not allowed here",
		"The header Allow says which methods are.")
	SoldOut = problemType("sold-out", http.StatusConflict, 0, "Sold out",
		"Fewer units are left than were asked for. Nothing was sold, also of the other lines of an order.")
	LimitReached = problemType("limit-reached", http.StatusConflict, 0, "The customer may not have so many units",
		"A customer may have only so many units of an item in all its orders. Nothing was sold. Units of a cancelled order count no more.")
	FencedOff = problemType("fenced-off", http.StatusConflict, 1, "Overtaken by a newer holder of the lock",
		"The sale was held up for longer than its lock lasted, and the database refused its write. Nothing was sold. Try again after Retry-After.")
	cancelled = problemType("already-cancelled", http.StatusConflict, 0, "The order is cancelled already",
		"Its units came back when it was cancelled. Nothing was done now.")
	tooLate = problemType("too-late", http.StatusConflict, 0, "The time to cancel is over",
		"A customer may cancel an order only for some time after it was made. Nothing was done.")
	tooMany = problemType("too-many-units", http.StatusConflict, 0, "The item would have too many units",
		fmt.Sprintf("An item has at most %d units. Nothing was done.", stock.MaxStock))
	versionChanged = problemType("version-changed", http.StatusPreconditionFailed, 0, "The item changed since it was read",
		"If-Match has another ETag than the item. Nothing was done. Read the item again, and decide again.")
	versionRequired = problemType("version-required", http.StatusPreconditionRequired, 0, "The version is missing",
		"A correction needs If-Match with the ETag of the item that was seen. Nothing was done.")
	Busy = problemType("busy", http.StatusServiceUnavailable, 1, "The item is busy",
		"The lock was not free in time, or too many requests are under way. Nothing was done. Try again after Retry-After.")
	Conflict = problemType("conflict", http.StatusServiceUnavailable, 1, "The item changed meanwhile",
		"Others changed the item whenever this request was about to. Nothing was done. Try again after Retry-After.")
	LockLost = problemType("lock-lost", http.StatusServiceUnavailable, 1, "The lock was lost",
		"Redis could not be reached for so long that the lock may be another's. The sale stopped before it wrote. Nothing was sold. Try again after Retry-After.")
	Unavailable = problemType("unavailable", http.StatusServiceUnavailable, 1, "The shop cannot answer now",
		"MySQL or Redis did not answer. Unless the detail says otherwise, it may have been done or not: "+
			"repeat the request under the same Idempotency-Key to find out.")
	ShuttingDown = problemType("shutting-down", http.StatusServiceUnavailable, 1, "The shop is shutting down",
		"Nothing was done. Try again: another shop will answer.")
	internalError = problemType("internal", http.StatusInternalServerError, 0, "The shop failed",
		"A defect, noted in the shop's log under the request id. It may have been done or not: "+
			"repeat the request under the same Idempotency-Key to find out.")
)

// logLevel is debug for errors of clients, and for problems whose answer says everything.
func (p Problem) logLevel() slog.Level {
	switch p {
	case internalError:
		return slog.LevelError
	case Unavailable:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// refusal is an error that contains its answer.
type refusal struct {
	Problem
	detail string
}

func (r refusal) Error() string { return r.Slug + ": " + r.detail }

// Malformed returns the error that answers a request which cannot be read.
func Malformed(detail string) error { return refusal{malformed, detail} }

var (
	errStarting = refusal{Unavailable, "the shop is starting: nothing was done"}
	errCrowded  = refusal{Busy, "too many requests are under way: nothing was done"}
	errFull     = refusal{Busy, "too many connections are open: nothing was done"}
	errDraining = refusal{ShuttingDown, "the shop is shutting down: nothing was done"}
	errUnknown  = refusal{Unavailable, "MySQL did not answer the transaction: the outcome is unknown"}
	errNotNow   = refusal{Unavailable, "MySQL or Redis cannot work now: this request did nothing"}
)

// answerTo is the answer to an error.
type answerTo struct {
	err    error
	is     Problem
	detail string
}

// answers has the answers to the errors of a sale or a change. The first match counts.
var answers = slices.Concat(lockAnswers, reservationAnswers, []answerTo{
	{stock.ErrUnknown, Unavailable, errUnknown.detail},
	{stock.ErrRepeated, Unavailable, "an order under this key is being made, or cannot be seen yet: this request did nothing"},
	{stock.ErrSoldOut, SoldOut, "fewer units are left than were asked for"},
	{stock.ErrLimit, LimitReached, "the customer would have more units than one may have"},
	{stock.ErrNotFound, notFound, "there is no item, order or reservation with this id"},
	{stock.ErrFenced, FencedOff, "a newer holder of the lock was faster: nothing was sold"},
	{stock.ErrConflict, Conflict, "the item kept changing meanwhile: nothing was done"},
	{stock.ErrCancelled, cancelled, "the order was cancelled before"},
	{stock.ErrStale, versionChanged, "the item has another ETag than If-Match: nothing was done"},
	{stock.ErrTooMany, tooMany, fmt.Sprintf("an item has at most %d units: nothing was done", stock.MaxStock)},
	{strategy.ErrOneItem, invalid, "the strategy of this request sells one item at a time"},
	{strategy.ErrBusy, Busy, "the lock was not free in time: nothing was sold"},
})

// explain finds the answer to an error.
func explain(ctx context.Context, err error) refusal {
	if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errDraining) {
		return errDraining
	}
	if r, ok := errors.AsType[refusal](err); ok {
		return r
	}
	if lines, ok := errors.AsType[stock.LineErrors](err); ok { // of several problems, that of the first line
		first := explain(ctx, lines[0].Err)
		return refusal{first.Problem, "nothing was sold, because some lines of the order cannot be had: see lines"}
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return refusal{a.is, a.detail}
		}
	}
	if unreachable(err) {
		return errNotNow
	}
	return refusal{internalError, "see the shop's log for this request id"}
}

// problemBody is the body of an error, application/problem+json of RFC 9457.
type problemBody struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Instance  string `json:"instance"`
	RequestID string `json:"request_id"`

	Lines []refusedLine `json:"lines,omitempty"`
}

// refusedLine is a line of an order that cannot be had.
type refusedLine struct {
	ItemID uint64 `json:"item_id"`
	Type   string `json:"type"` // of its problem
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
	s.Log.Log(ctx, r.logLevel(), "request failed", "problem", r.Slug, "error", err,
		"request", requestID(c), "path", c.Request.URL.Path)
	var refused []refusedLine
	lines, _ := errors.AsType[stock.LineErrors](err)
	for _, line := range lines {
		refused = append(refused, refusedLine{line.ItemID, problemPath + explain(ctx, line.Err).Slug})
	}
	refuse(c, r, refused...)
}

// maxInstance is how many bytes of a path an answer contains.
const maxInstance = 200

func refuse(c *gin.Context, r refusal, lines ...refusedLine) {
	c.Set(outcomeKey, r.Slug)
	if r.retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(r.retryAfter))
	}
	c.Header("Content-Type", "application/problem+json")
	c.AbortWithStatusJSON(r.Status, problemBody{
		Type: problemPath + r.Slug, Title: r.Title, Status: r.Status, Detail: r.detail,
		Instance: c.Request.URL.Path[:min(len(c.Request.URL.Path), maxInstance)], RequestID: requestID(c), Lines: lines,
	})
}

// problemPath is the path of a problem's type, without its slug.
const problemPath = "/problems/"

// ProblemSlug returns the slug of a problem's type, and false for a type that is not the shop's.
func ProblemSlug(ofType string) (slug string, ok bool) {
	slug, ok = strings.CutPrefix(ofType, problemPath)
	return slug, ok
}
