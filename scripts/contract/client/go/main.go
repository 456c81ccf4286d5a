// Client orders a basket, lists the orders of its customer, cancels a line and the rest, and reserves and pays:
//
//	go generate && go run . http://127.0.0.1:8080 http://127.0.0.1:8081 1 2
//
// The first address is that of customers and the second one that of the staff. Item ids follow. All but
// this file is generated from the shop's contract.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

//go:generate go tool oapi-codegen -generate types,client -package main -o shop.gen.go ../../../../internal/shop/openapi.yaml

func main() {
	log.SetFlags(0)
	if len(os.Args) < 4 {
		log.Fatal("usage: client SHOP STAFF ITEM...")
	}
	ctx := context.Background()
	customer, staff := connect(os.Args[1], "ann"), connect(os.Args[2], "bob")
	var basket NewBasket
	for _, arg := range os.Args[3:] {
		item, err := strconv.ParseInt(arg, 10, 64)
		check(err)
		basket.Lines = append(basket.Lines, NewLine{ItemId: item, Quantity: 1})
	}
	sold, err := order(ctx, customer, basket)
	check(err)
	fmt.Println("ordered", len(sold.Lines), "lines")

	listed := 0
	for params := (&ListOrdersParams{}); ; {
		answer, err := customer.ListOrdersWithResponse(ctx, params)
		check(err)
		if answer.JSON200 == nil {
			log.Fatalf("list: %s", answer.Body)
		}
		page, err := answer.JSON200.AsOrderPage()
		check(err)
		listed += len(page.Orders)
		if page.Next == nil {
			break
		}
		params.Before = &page.Orders[len(page.Orders)-1].Id
	}
	fmt.Println("listed", listed, "orders")

	line, err := staff.CancelLineWithResponse(ctx, sold.Id, sold.Lines[0].ItemId, &CancelLineParams{IdempotencyKey: rand.Text()})
	check(err)
	if line.JSON200 == nil {
		log.Fatalf("cancel a line: %s", line.Body)
	}
	rest, err := staff.CancelOrderWithResponse(ctx, sold.Id, &CancelOrderParams{IdempotencyKey: rand.Text()})
	check(err)
	if rest.JSON200 == nil || rest.JSON200.CancelledAt == nil {
		log.Fatalf("cancel the rest: %s", rest.Body)
	}
	fmt.Println("cancelled a line, and the rest")

	held, err := customer.ReserveWithResponse(ctx, &ReserveParams{IdempotencyKey: rand.Text()}, NewReservation{Lines: basket.Lines, Seconds: 600})
	check(err)
	if held.JSON201 == nil {
		log.Fatalf("reserve: %s", held.Body)
	}
	id := held.JSON201.Id
	paying, err := staff.BeginPaymentWithResponse(ctx, id)
	check(err)
	if paying.JSON200 == nil {
		log.Fatalf("begin the payment: %s", paying.Body)
	}
	paid, err := staff.ConfirmReservationWithResponse(ctx, id, Confirmation{Reference: rand.Text()})
	check(err)
	if paid.JSON200 == nil || paid.JSON200.OrderId == nil {
		log.Fatalf("confirm: %s", paid.Body)
	}
	fmt.Println("reserved", len(paid.JSON200.Lines), "lines, and paid")
}

// order orders a basket once, however often it has to ask. Without an answer, and after 503, it asks
// again under the same key. Any other answer is final.
func order(ctx context.Context, shop *ClientWithResponses, basket NewBasket) (*Order, error) {
	key := rand.Text()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		asking, cancel := context.WithTimeout(ctx, 30*time.Second)
		answer, err := shop.OrderSeveralWithResponse(asking, &OrderSeveralParams{IdempotencyKey: &key}, basket)
		cancel()
		switch {
		case err == nil && answer.JSON201 != nil:
			return answer.JSON201, nil
		case err == nil && answer.StatusCode() != http.StatusServiceUnavailable:
			return nil, fmt.Errorf("%s: %s", answer.Status(), answer.Body)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// connect names the customer, as a gateway does for its clients.
func connect(shop, subject string) *ClientWithResponses {
	client, err := NewClientWithResponses(shop, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-Subject", subject)
		return nil
	}))
	check(err)
	return client
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
