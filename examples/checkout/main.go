// Checkout buys one unit with a payment: it reserves, pays, and confirms. It stands for a merchant's backend.
//
//	go run ./examples/checkout --shop http://127.0.0.1:8080 --staff http://127.0.0.1:8081 --item 1
//
// The payment provider is a stub: a function that takes the money at once. A real one sends the customer to a page of
// its own, and sends a notice when the money is there. After each of the two, in any order, the backend asks the
// provider whether this amount is paid, and then calls [paid].
package main

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	customer, staff := listener{}, listener{subject: "payments"}
	flag.StringVar(&customer.url, "shop", "http://127.0.0.1:8080", "where the shop serves customers")
	flag.StringVar(&staff.url, "staff", "http://127.0.0.1:8081", "where it serves the staff")
	flag.StringVar(&customer.subject, "customer", "ann", "who buys; a gateway would have verified that")
	flag.StringVar(&customer.header, "subject-header", "X-Subject", "the header in which the shop expects the customer")
	flag.StringVar(&staff.header, "staff-header", "X-Subject", "the header in which it expects the staff")
	item := flag.Uint64("item", 1, "what to buy")
	flag.Parse()
	if err := buy(customer, staff, *item); err != nil {
		fmt.Fprintln(os.Stderr, "checkout:", err)
		os.Exit(1)
	}
}

type reservation struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	HeldUntil time.Time `json:"held_until"`
	OrderID   string    `json:"order_id"`
}

// buy reserves as the customer, and pays as the merchant's backend.
func buy(customer, staff listener, item uint64) error {
	r, _, err := customer.post("/reservations", fmt.Sprintf(`{"seconds": 600, "lines": [{"item_id": %d, "quantity": 1}]}`, item))
	if err != nil {
		return err
	}
	fmt.Printf("%s holds one unit of item %d until %s\n", r.ID, item, r.HeldUntil.Format(time.TimeOnly))
	if _, _, err := staff.post("/reservations/"+r.ID+"/payment", ""); err != nil {
		return err // nothing was paid
	}
	return paid(staff, r.ID, takeMoney())
}

// takeMoney is the provider: it takes the money, and names the payment.
func takeMoney() (reference string) { return "stub_" + rand.Text() }

// paid tells the shop of a payment, as often as it takes to know the outcome: money without an answer may have
// made an order.
func paid(staff listener, id, reference string) error {
	r, _, err := staff.untilKnown(http.MethodPost, "/reservations/"+id+"/confirmation", fmt.Sprintf(`{"reference": %q}`, reference))
	switch {
	case err == nil:
		fmt.Printf("%s is %s by %s: order %s\n", r.ID, r.State, reference, r.OrderID)
	case strings.Contains(err.Error(), "/problems/payment-must-be-returned"), // of another 409, find out whose money it is
		strings.Contains(err.Error(), "/problems/too-many-references"):
		return refund(staff, reference, err)
	}
	return err // a defect of this program
}

// refund returns money that was not taken, unless that was done: a provider sends its notices for days, and may have
// forgotten the first refund.
func refund(staff listener, reference string, why error) error {
	p, status, err := staff.untilKnown(http.MethodGet, "/payments/"+reference, "")
	switch {
	case p.State == "returned":
		return nil
	case err != nil && status != http.StatusNotFound: // nothing may be recorded of it
		return err
	}
	fmt.Printf("the money of %s goes back: %v\n", reference, why)
	// Ask the provider for that, under an idempotency key made of the reference. And then:
	_, status, err = staff.untilKnown(http.MethodPost, "/payments/"+reference+"/return", "")
	if status == http.StatusNotFound && strings.Contains(why.Error(), "/problems/too-many-references") {
		return nil
	}
	return err
}

// listener is one of the shop's, with who asks there.
type listener struct{ url, header, subject string }

var client = &http.Client{Timeout: 30 * time.Second}

// untilKnown sends a request until its answer says what became of it.
func (to listener) untilKnown(method, path, body string) (reservation, int, error) {
	for ; ; time.Sleep(time.Second) {
		r, status, err := to.send(method, path, body)
		switch {
		case err == nil:
			return r, status, nil
		case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests: // a slow network, a gateway's limit
		case status >= 200 && status < 500: // below 400 it is not the shop's
			return r, status, err
		}
		fmt.Fprintln(os.Stderr, "checkout: will be sent again:", err)
	}
}

func (to listener) post(path, body string) (reservation, int, error) {
	return to.send(http.MethodPost, path, body)
}

// send sends one request, most of which are answered with a reservation. Its error has the detail of a problem. The
// status is 0 without an answer.
func (to listener) send(method, path, body string) (r reservation, status int, err error) {
	request, err := http.NewRequest(method, to.url+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return r, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(to.header, to.subject)
	request.Header.Set("Idempotency-Key", rand.Text()) // a program that may end keeps it with the wish, to send both again
	answer, err := client.Do(request)
	if err != nil {
		return r, 0, err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return r, 0, err
	}
	if answer.StatusCode >= 300 {
		var problem struct{ Type, Detail string }
		_ = json.Unmarshal(got, &problem) // an answer of something else has none
		return r, answer.StatusCode, fmt.Errorf("%s: %d %s: %s", path, answer.StatusCode, problem.Type, problem.Detail)
	}
	if err = json.Unmarshal(got, &r); err != nil {
		err = fmt.Errorf("%s: %d, and no answer of the shop: %w", path, answer.StatusCode, err)
	}
	return r, answer.StatusCode, err
}
