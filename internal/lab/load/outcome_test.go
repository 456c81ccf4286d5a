package load

import (
	"errors"
	"net"
	"slices"
	"testing"

	"stocklock/internal/shop"
)

func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		what   string
		status int
		body   string
		err    error
		want   Outcome
	}{
		{"an order", 201, `{"id":1}`, nil, Sold},
		{"a sold-out item is no failure", 409, `{"type":"/problems/sold-out"}`, nil, SoldOut},
		{"another 409", 409, `{"type":"/problems/fenced-off"}`, nil, Fenced},
		{"a lock that was not free", 503, `{"type":"/problems/busy"}`, nil, Busy},
		{"a lock that was lost", 503, `{"type":"/problems/lock-lost"}`, nil, Lost},
		{"a server behind the shop is gone", 503, `{"type":"/problems/unavailable"}`, nil, Unknown},
		{"an answer that never came", 0, "", errors.New("EOF"), Unknown},
		{"nobody listens", 0, "", &net.OpError{Op: "dial", Err: errors.New("refused")}, Refused},
		{"a problem that should not be", 400, `{"type":"/problems/malformed"}`, nil, Failed},
		{"no problem at all", 502, `<html>`, nil, Failed},
	} {
		if got := classify(tt.status, []byte(tt.body), tt.err); got != tt.want {
			t.Errorf("%s: classify(%d, %q, %v) = %s, want %s", tt.what, tt.status, tt.body, tt.err, got, tt.want)
		}
	}
}

// TestEveryProblemHasAnOutcome holds byProblem to the shop's table of problems.
func TestEveryProblemHasAnOutcome(t *testing.T) {
	// These answer requests that a load test does not send. One of them is an error of the test.
	wrong := []string{
		"malformed", "invalid", "idempotency-key-reused", "too-large", "too-slow", "unsupported-media-type", "not-found", "method-not-allowed",
		"already-cancelled", "too-late", "too-many-units", "too-many-reservations", "already-extended",
		"payment-under-way", "too-many-references", "payment-taken", "version-changed", "version-required", "internal",
	}
	for _, p := range shop.Problems() {
		if _, ok := byProblem[p.Slug]; ok == slices.Contains(wrong, p.Slug) {
			t.Errorf("the problem %s: want either an outcome of an order in byProblem, or its place in this list of wrong requests", p.Slug)
		}
	}
}

// FuzzClassify: only a 201 counts as sold, whatever the body, and every answer has an outcome.
func FuzzClassify(f *testing.F) {
	for status, body := range map[int]string{201: `{"id":1}`, 409: `{"type":"/problems/sold-out"}`, 503: `{"type":"busy"}`, 502: `<html>`, 0: ``, 500: `{"type":7}`} {
		f.Add(status, []byte(body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		switch got := classify(status, body, nil); {
		case got == "":
			t.Errorf("%d %q is nothing", status, body)
		case (got == Sold) != (status == 201):
			t.Errorf("%d %q counts as %s", status, body, got)
		case status == 0 && got != Unknown:
			t.Errorf("no answer counts as %s", got)
		}
	})
}

func TestPercentile(t *testing.T) {
	var hundred []int
	for i := range 100 {
		hundred = append(hundred, i+1)
	}
	for _, of := range [][3]int{{100, 99, 99}, {100, 95, 95}, {99, 99, 99}, {3, 50, 2}, {2, 50, 1}, {1, 99, 1}} {
		if got := Percentile(hundred[:of[0]], of[1]); got != of[2] {
			t.Errorf("the percentile %d of 1 to %d is %d, want %d", of[1], of[0], got, of[2])
		}
	}
}
