package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// answers are those of a shop, in this order.
type answers []int

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	status := (*a)[0]
	*a = (*a)[1:]
	body := "{}"
	if status == http.StatusConflict {
		body = `{"type": "/problems/too-many-references"}`
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

// TestMoneyThatIsNotRecordedGoesBack, of which the shop knows nothing to note.
func TestMoneyThatIsNotRecordedGoesBack(t *testing.T) {
	shop := answers{http.StatusConflict, http.StatusNotFound}
	client.Transport = &shop
	defer func() { client.Transport = nil }()
	if err := paid(listener{url: "http://shop"}, "r", "stub"); err != nil || len(shop) > 0 {
		t.Errorf("%v; not asked for: %v", err, shop)
	}
}
