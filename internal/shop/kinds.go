package shop

import (
	"log/slog"
	"net/http"
)

// kind is a problem type of RFC 9457: what clients may rely on.
type kind struct {
	slug       string // its type is /problems/<slug>
	status     int
	retryAfter int // seconds; 0 for no such header
	title      string
	meaning    string // for the client: what happened, and what to do
}

var (
	malformed = kind{"malformed", http.StatusBadRequest, 0, "The request cannot be read",
		"A number, a header or the body is not what it has to be. Nothing was done. Correct the request."}
	invalid = kind{"invalid", http.StatusUnprocessableEntity, 0, "The request asks for something impossible",
		"The request can be read, but a value is out of range. Nothing was done. Correct the request."}
	keyReused = kind{"idempotency-key-reused", http.StatusUnprocessableEntity, 0, "The Idempotency-Key belongs to another request",
		"Something else was done under this key, such as an order of another item. Nothing was done now. Use a new key for every wish."}
	tooLarge = kind{"too-large", http.StatusRequestEntityTooLarge, 0, "The request body is too large",
		"A body has at most 2048 bytes. Nothing was done."}
	tooSlow = kind{"too-slow", http.StatusRequestTimeout, 0, "The request came too slowly",
		"The body had not come when the time for a request was over. Nothing was done. Send it again."}
	wrongMediaType = kind{"unsupported-media-type", http.StatusUnsupportedMediaType, 0, "The request body is not JSON",
		"Send bodies with Content-Type: application/json, in UTF-8 and without Content-Encoding. Nothing was done."}
	notFound = kind{"not-found", http.StatusNotFound, 0, "There is no such thing",
		"There is no such item, order or path. Nothing was done."}
	methodNotAllowed = kind{"method-not-allowed", http.StatusMethodNotAllowed, 0, "The method is not allowed here",
		"The header Allow says which methods are."}
	soldOut = kind{"sold-out", http.StatusConflict, 0, "Sold out",
		"Fewer units are left than were asked for. Nothing was sold."}
	fencedOff = kind{"fenced-off", http.StatusConflict, 0, "Overtaken by a newer holder of the lock",
		"The sale was held up for longer than its lock lasted, and the database refused its write. Nothing was sold. Try again."}
	cancelled = kind{"already-cancelled", http.StatusConflict, 0, "The order is cancelled already",
		"Its units came back when it was cancelled. Nothing was done now."}
	tooMany = kind{"too-many-units", http.StatusConflict, 0, "The item would have too many units",
		"An item has at most 1000000000000 units. Nothing was done."}
	versionChanged = kind{"version-changed", http.StatusPreconditionFailed, 0, "The item changed since it was read",
		"If-Match has another version than the item. Nothing was done. Read the item again, and decide again."}
	versionRequired = kind{"version-required", http.StatusPreconditionRequired, 0, "The version is missing",
		"A correction needs If-Match with the ETag of the item that was seen. Nothing was done."}
	busy = kind{"busy", http.StatusServiceUnavailable, 1, "The item is busy",
		"The lock was not free in time, or too many requests are under way. Nothing was done. Try again after Retry-After."}
	conflict = kind{"conflict", http.StatusServiceUnavailable, 1, "The item changed meanwhile",
		"Others changed the item whenever this request was about to. Nothing was done. Try again after Retry-After."}
	lockLost = kind{"lock-lost", http.StatusServiceUnavailable, 1, "The lock was lost",
		"Redis could not be reached for so long that the lock may be another's. The sale stopped before it wrote. Nothing was sold. Try again after Retry-After."}
	unavailable = kind{"unavailable", http.StatusServiceUnavailable, 1, "The shop cannot answer now",
		"MySQL or Redis did not answer. Unless the detail says otherwise, it may have been done or not: " +
			"repeat the request under the same Idempotency-Key to find out."}
	shuttingDown = kind{"shutting-down", http.StatusServiceUnavailable, 1, "The shop is shutting down",
		"Nothing was done. Try again: another shop will answer."}
	internalError = kind{"internal", http.StatusInternalServerError, 0, "The shop failed",
		"A defect, noted in the shop's log under the request id. It may have been done or not: " +
			"repeat the request under the same Idempotency-Key to find out."}
)

// kinds lists all problem types, as they are documented.
var kinds = []kind{
	malformed, invalid, keyReused, tooLarge, tooSlow, wrongMediaType, notFound, methodNotAllowed, soldOut, fencedOff,
	cancelled, tooMany, versionChanged, versionRequired,
	busy, conflict, lockLost, unavailable, shuttingDown, internalError,
}

// logLevel is debug for errors of clients, and for problems whose answer says everything.
func (k kind) logLevel() slog.Level {
	switch k {
	case internalError:
		return slog.LevelError
	case unavailable:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
