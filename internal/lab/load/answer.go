package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"stocklock/internal/shop"
	"stocklock/internal/stock"
)

// Answer is what became of an [Order], as its customer saw it.
type Answer struct {
	Order   Order
	Outcome Outcome
	Status  int // 0 for no answer
	Header  http.Header
	Body    []byte        // its first 64 KiB
	Err     error         // why there is no answer
	Sent    time.Time     // when the request went to the connection
	Latency time.Duration // until the whole answer was read
}

// conclude adds the outcome. err says why there is no answer.
func (a Answer) conclude(err error) Answer {
	a.Err = err
	a.Outcome = classify(a.Status, a.Body, err)
	if a.Order.Act != "" && (a.Status == http.StatusOK || a.Status == http.StatusCreated) {
		a.Outcome = Done
		if a.Reserved().State == stock.Confirmed {
			a.Outcome = Sold
		}
	}
	return a
}

// Reserved is what the shop says of a reservation.
type Reserved struct {
	ID      string          `json:"id"`
	State   stock.HoldState `json:"state"`
	OrderID string          `json:"order_id"`
}

// Reserved returns what the shop says of a reservation. It is the zero value for an answer that says nothing of one.
func (a Answer) Reserved() (r Reserved) {
	_ = json.Unmarshal(a.Body, &r)
	return r
}

// Sale returns the order that the shop says it has made. Of a basket, only a shop in lab mode says all rows.
func (a Answer) Sale() (stock.Order, error) {
	var made struct {
		stock.Order
		ID string `json:"id"` // the public id, where the shop is not in lab mode
	}
	if err := json.Unmarshal(a.Body, &made); err != nil {
		return stock.Order{}, fmt.Errorf("an answer with %d that is no order: %w: %s", a.Status, err, a.Body)
	}
	made.PublicID = cmp.Or(made.PublicID, made.ID)
	return made.Order, nil
}

// Replayed reports whether the shop had made the order for an earlier request with the same
// idempotency key.
func (a Answer) Replayed() bool { return a.Header.Get(shop.ReplayedHeader) == "true" }

// Detail returns what a problem says to people, and the whole body of anything else.
func (a Answer) Detail() string {
	var problem struct{ Detail string }
	if json.Unmarshal(a.Body, &problem) == nil && problem.Detail != "" {
		return problem.Detail
	}
	return string(bytes.TrimSpace(a.Body))
}

// Percentile returns the smallest of sorted values that at least so many percent of them do not exceed.
func Percentile[T any](sorted []T, percent int) T { return sorted[(len(sorted)*percent+99)/100-1] }
