package load

import (
	"errors"
	"net"
	"testing"
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
