// Checkout buys one unit with a payment: it reserves, pays, and confirms. It stands for a merchant's backend.
//
//	go run ./examples/checkout --shop http://127.0.0.1:8080 --staff http://127.0.0.1:8081 --item 1
//
// The payment provider is a stub: a function that takes the money at once. A real one sends the customer to a page of
// its own, and sends a notice when the money is there. Both call [backend.paid], in any order.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	b := backend{client: &http.Client{Timeout: 30 * time.Second}}
	flag.StringVar(&b.shop, "shop", "http://127.0.0.1:8080", "where the shop serves customers")
	flag.StringVar(&b.staff, "staff", "http://127.0.0.1:8081", "where it serves the staff")
	flag.StringVar(&b.customer, "customer", "ann", "who buys; a gateway would have verified that")
	flag.StringVar(&b.customerHeader, "subject-header", "X-Subject", "the header in which the shop expects the customer")
	flag.StringVar(&b.staffHeader, "staff-header", "X-Subject", "the header in which it expects the staff")
	item := flag.Uint64("item", 1, "what to buy")
	flag.Parse()
	if err := b.buy(*item); err != nil {
		fmt.Fprintln(os.Stderr, "checkout:", err)
		os.Exit(1)
	}
}

type backend struct {
	client                      *http.Client
	shop, staff, customer       string
	customerHeader, staffHeader string
}

type reservation struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	HeldUntil time.Time `json:"held_until"`
	OrderID   string    `json:"order_id"`
}

func (b backend) buy(item uint64) error {
	wish := map[string]any{"seconds": 600, "lines": []any{map[string]any{"item_id": item, "quantity": 1}}}
	var r reservation
	if _, err := b.ask("/reservations", wish, &r); err != nil {
		return err
	}
	fmt.Printf("%s holds one unit of item %d until %s\n", r.ID, item, r.HeldUntil.Format(time.TimeOnly))
	if _, err := b.tell("/reservations/"+r.ID+"/payment", nil, &r); err != nil {
		return err // nothing was paid
	}
	return b.paid(r.ID, takeMoney())
}

// takeMoney is the provider: it takes the money, and names the payment.
func takeMoney() (reference string) { return "stub_" + rand.Text() }

// paid tells the shop of a payment, as often as it takes to know the outcome: money without an answer may have
// made an order.
func (b backend) paid(id, reference string) error {
	for {
		var r reservation
		status, err := b.tell("/reservations/"+id+"/confirmation", map[string]any{"reference": reference}, &r)
		switch {
		case err == nil:
			fmt.Printf("%s is %s by %s: order %s\n", r.ID, r.State, reference, r.OrderID)
			return nil
		case status == http.StatusConflict || status == http.StatusGone:
			fmt.Printf("the money of %s goes back: %v\n", reference, err) // ask the provider to return it, and then:
			_, returned := b.tell("/payments/"+reference+"/return", nil, nil)
			return returned
		case status >= 400 && status < 500:
			return err // a defect of this program
		}
		time.Sleep(time.Second)
	}
}

// ask posts as the customer, and tell as the merchant's backend.
func (b backend) ask(path string, body, into any) (int, error) {
	return b.post(b.shop, b.customerHeader, b.customer, path, body, into)
}

func (b backend) tell(path string, body, into any) (int, error) {
	return b.post(b.staff, b.staffHeader, "payments", path, body, into)
}

// post sends one request. Its error has the detail of a problem. The status is 0 without an answer.
func (b backend) post(listener, header, subject, path string, body, into any) (status int, err error) {
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return 0, err
		}
	}
	request, err := http.NewRequest(http.MethodPost, listener+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(header, subject)
	request.Header.Set("Idempotency-Key", rand.Text()) // a program that may end keeps it with the wish, to send both again
	answer, err := b.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	if answer.StatusCode >= 300 {
		var problem struct{ Type, Detail string }
		_ = json.Unmarshal(got, &problem) // an answer of something else has none
		return answer.StatusCode, fmt.Errorf("%s: %d %s: %s", path, answer.StatusCode, problem.Type, problem.Detail)
	}
	if into == nil {
		return answer.StatusCode, nil
	}
	return answer.StatusCode, json.Unmarshal(got, into)
}
