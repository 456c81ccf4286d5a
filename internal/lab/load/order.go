package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"stocklock/internal/shop"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// Order is one order, as a customer sends it to a shop in lab mode, or a request about a reservation.
type Order struct {
	Shop      string // base URL
	ItemID    uint64
	More      []uint64 // further items of an order of several
	Quantity  int      // of each item
	RequestID string   // names the request in the shop's answers, orders and traces; empty for one of the shop's
	Strategy  string   // how the shop sells it
	Run       string   // what the order is counted under

	Act         Act    // of a reservation; empty for an order
	Reservation string // the id of the one that it is about; none for a new one, and for a sweep
	Reference   string // of the payment that it confirms by
	Seconds     int    // for which it reserves

	IdempotencyKey string        // none for empty
	Subject        string        // in SubjectHeader; none for empty
	Fault          labmode.Fault // injected into the sale; none for the zero value
	Nested         bool          // the sale takes its lock a second time
	Lease          time.Duration // of its lock; 0 for the shop's usual one
	Wait           time.Duration // for its lock; 0 for the shop's usual one
	AsPosted       bool          // the shop is told the order of the lines, and those of the same item one by one

	Tag any // the caller's own; not sent
}

// SubjectHeader is where the shops of the lab find the customer, where they are told so.
const SubjectHeader = "X-Subject"

// Reservations has the SHOP_ variables of a shop in the lab that offers reservations. No payment window is over before a
// reservation's time.
func Reservations() map[string]string {
	return map[string]string{
		"SHOP_SUBJECT_HEADER": SubjectHeader, "SHOP_STAFF_SUBJECT_HEADER": SubjectHeader, "SHOP_LIMIT": "1000",
		"SHOP_RESERVATIONS": "true", "SHOP_PAYMENT_WINDOW": "1s", "SHOP_PAYMENT_GRACE": "0s",
	}
}

// Act is what a request does with a reservation.
type Act string

const (
	Reserving  Act = "reserve"
	Paying     Act = "payment" // it begins the payment window
	Confirming Act = "confirmation"
	Failing    Act = "failure" // the provider's notice
	Releasing  Act = "release"
	Sweeping   Act = "sweep" // which ends what is overdue
)

// Staff reports whether the shop takes the request on the listener of its staff.
func (a Act) Staff() bool { return a == Paying || a == Confirming || a == Failing }

func (o Order) url() string {
	switch o.Act {
	case "":
	case Reserving:
		return o.Shop + shop.ReservationsPath
	case Sweeping:
		return o.Shop + labmode.SweepPath
	default:
		return o.Shop + shop.ReservationsPath + "/" + o.Reservation + "/" + string(o.Act)
	}
	if len(o.More) > 0 {
		return o.Shop + shop.OrdersOfItems
	}
	return o.Shop + shop.OrdersPath(o.ItemID)
}

func (o Order) body() string {
	switch o.Act {
	case "":
	case Reserving:
		return fmt.Sprintf(`{"lines":[{"item_id":%d,"quantity":%d}],"seconds":%d}`, o.ItemID, o.Quantity, o.Seconds)
	case Confirming:
		return fmt.Sprintf(`{"reference":%q}`, o.Reference)
	case Releasing:
		return `{"reason":"changed-mind"}`
	default:
		return ""
	}
	if len(o.More) == 0 {
		return fmt.Sprintf(`{"quantity":%d}`, o.Quantity)
	}
	lines := make([]string, 0, 1+len(o.More))
	for _, item := range append([]uint64{o.ItemID}, o.More...) {
		lines = append(lines, fmt.Sprintf(`{"item_id":%d,"quantity":%d}`, item, o.Quantity))
	}
	return `{"lines":[` + strings.Join(lines, ",") + `]}`
}

func (o Order) header() http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	if o.RequestID != "" {
		h.Set(shop.RequestIDHeader, o.RequestID)
	}
	if o.IdempotencyKey != "" {
		h.Set(shop.IdempotencyKeyHeader, o.IdempotencyKey)
	}
	if o.Subject != "" {
		h.Set(SubjectHeader, o.Subject)
	}
	asked := labmode.Experiment{Strategy: o.Strategy, Run: o.Run, Fault: o.Fault, Nested: o.Nested, Lease: o.Lease, Wait: o.Wait}
	if o.AsPosted {
		for _, item := range append([]uint64{o.ItemID}, o.More...) {
			asked.Posted = append(asked.Posted, stock.Line{ItemID: item, Quantity: int64(o.Quantity)})
		}
	}
	asked.Set(h)
	return h
}

// releaseTimeout bounds the request that ends a hold.
const releaseTimeout = 5 * time.Second

// Release ends the hold of a sale at a shop, within five seconds. The error says that the sale was not held, too.
func Release(ctx context.Context, shop, request string) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	return ask(ctx, http.MethodDelete, shop+labmode.HoldsPath+request, nil, http.StatusNoContent, "end the hold of "+request)
}

// View makes a page view of the order's item, with the order's request id and fault. The error says that the
// page was not shown.
func View(ctx context.Context, o Order) error {
	return ask(ctx, http.MethodGet, o.Shop+shop.ItemPath(o.ItemID), o.header(), http.StatusOK, fmt.Sprintf("the page of item %d", o.ItemID))
}

// ask sends a request without a body, which is to be answered with a status. What names it in the error.
func ask(ctx context.Context, method, url string, header http.Header, status int, what string) error {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	r.Header = header
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != status {
		return fmt.Errorf("%s: %s", what, answer.Status)
	}
	return nil
}

// sentOnce keeps net/http from repeating a request with an Idempotency-Key by itself when its connection
// breaks. A repeat that nobody listens to would hide that the first request may have sold.
func sentOnce(r *http.Request) { r.GetBody = nil }

// maxAnswer bounds how many bytes of an answer are read: more than those of an order of 50 lines, the most
// that a shop takes.
const maxAnswer = 64 << 10

// Send sends one order by itself, and waits for the answer until ctx ends.
func Send(ctx context.Context, o Order) Answer { return SendBy(ctx, http.DefaultClient, o) }

// SendBy is [Send] by a client, such as one that keeps more connections.
func SendBy(ctx context.Context, client *http.Client, o Order) Answer {
	a := Answer{Order: o, Sent: time.Now()}
	took := func(err error) Answer {
		a.Latency = time.Since(a.Sent)
		return a.conclude(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url(), strings.NewReader(o.body()))
	if err != nil {
		return took(err)
	}
	request.Header = o.header()
	sentOnce(request)
	response, err := client.Do(request)
	if err != nil {
		return took(err)
	}
	defer response.Body.Close()
	a.Body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err == nil {
		a.Status, a.Header = response.StatusCode, response.Header
	}
	return took(err)
}
