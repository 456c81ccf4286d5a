package main

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// answers are those of a shop, in this order. A 409 has the problem of conflict. A 200 is of money that was given back.
type answers []int

var conflict string

var returns int // how often one was noted

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/return") {
		returns++
	}
	status := (*a)[0]
	*a = (*a)[1:]
	body := `{"state": "returned"}`
	if status == http.StatusConflict {
		body = `{"type": "/problems/` + conflict + `"}`
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestPaidAsksUntilTheOutcomeIsKnown: after each of these answers nothing is known of the money.
func TestPaidAsksUntilTheOutcomeIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := answers{http.StatusServiceUnavailable, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusOK}
		client.Transport = &shop
		defer func() { client.Transport = nil }()
		if err := paid(listener{url: "http://shop"}, "r", "stub"); err != nil || len(shop) > 0 {
			t.Errorf("%v; not asked for: %v", err, shop)
		}
	})
}

// TestMoneyGoesBack: of money that the shop has not recorded, there is nothing to note. Of any other, a 404 is an error. A
// shop that cannot answer is asked again.
func TestMoneyGoesBack(t *testing.T) {
	defer func() { client.Transport = nil }()
	for problem, noted := range map[string]bool{"too-many-references": true, "payment-must-be-returned": false} {
		synctest.Test(t, func(t *testing.T) {
			shop := answers{http.StatusConflict, http.StatusServiceUnavailable, http.StatusNotFound, http.StatusServiceUnavailable, http.StatusNotFound}
			client.Transport, conflict = &shop, problem
			if err := paid(listener{url: "http://shop"}, "r", "stub"); (err == nil) != noted || len(shop) > 0 {
				t.Errorf("%s: %v; not asked for: %v", problem, err, shop)
			}
		})
	}
}

// TestMoneyGoesBackOnce: its notice comes again.
func TestMoneyGoesBackOnce(t *testing.T) {
	defer func() { client.Transport = nil }()
	shop := answers{http.StatusConflict, http.StatusOK}
	client.Transport, conflict, returns = &shop, "payment-must-be-returned", 0
	if err := paid(listener{url: "http://shop"}, "r", "stub"); err != nil || len(shop) > 0 || returns > 0 {
		t.Errorf("%v; not asked for: %v; noted %d times more", err, shop, returns)
	}
}

// elsewhere answers in place of the shop, such as a gateway.
type elsewhere int

func (e elsewhere) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(e), Body: io.NopCloser(strings.NewReader("<html>log in</html>"))}, nil
}

// TestAnAnswerOfSomethingElseEndsIt, and is named.
func TestAnAnswerOfSomethingElseEndsIt(t *testing.T) {
	defer func() { client.Transport = nil }()
	for _, status := range []int{http.StatusOK, http.StatusFound} {
		client.Transport = elsewhere(status)
		if err := paid(listener{url: "http://shop"}, "r", "stub"); err == nil || !strings.Contains(err.Error(), "/confirmation: "+strconv.Itoa(status)) {
			t.Errorf("%d: %v", status, err)
		}
	}
}
