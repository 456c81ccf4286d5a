package shop

import (
	"strconv"
	"strings"
)

// A client of the API sends and reads these, besides the bodies in openapi.yaml.
const (
	RequestIDHeader      = requestIDHeader      // names the request in the answer, the order and the log
	IdempotencyKeyHeader = idempotencyKeyHeader // makes a repeated request safe
	ReplayedHeader       = replayedHeader       // true on an answer that was given before
)

// OrdersPath returns the path to which the orders of an item are posted.
func OrdersPath(item uint64) string {
	return apiPrefix + strings.Replace(ordersOfItem, ":item", strconv.FormatUint(item, 10), 1)
}

// The slugs of the problems that state the outcome of an order.
var (
	SoldOut      = soldOut.slug
	Busy         = busy.slug
	FencedOff    = fencedOff.slug
	LockLost     = lockLost.slug
	Conflict     = conflict.slug
	Unavailable  = unavailable.slug
	ShuttingDown = shuttingDown.slug
)

// problemPath is the path of a problem's type, without its slug.
const problemPath = "/problems/"

// ProblemSlug returns the slug of a problem's type, and false for a type that is not the shop's.
func ProblemSlug(problemType string) (slug string, ok bool) {
	slug, ok = strings.CutPrefix(problemType, problemPath)
	return slug, ok
}
