package service

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"stocklock/internal/lab/load"
)

// TestASaleIsNeverSentTwice: net/http sends a request again that has an Idempotency-Key and no body.
func TestASaleIsNeverSentTwice(t *testing.T) {
	var came atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if came.Add(1); r.TransferEncoding != nil || r.ContentLength != 0 || r.Header.Get("Idempotency-Key") == "" {
				t.Errorf("it was sent with %v, %d, %v", r.TransferEncoding, r.ContentLength, r.Header)
			}
			panic(http.ErrAbortHandler)
		}
	}))
	defer shop.Close()
	s := &Service{File: &File{Buy: Request{Method: http.MethodPost, Path: "/buy", Headers: map[string]string{"Idempotency-Key": "{key}"}}}}
	p := &Process{URL: shop.URL, client: newClient()}
	if _, _, err := p.call(t.Context(), Request{Method: http.MethodGet, Path: "/"}, nil); err != nil { // its connection is used again
		t.Fatal(err)
	}
	if r := s.Buy(t.Context(), p, Sale{Key: "once"}); r.Outcome != load.Unknown || came.Load() != 1 {
		t.Errorf("the service was asked %d times, and the outcome is %s", came.Load(), r.Outcome)
	}
}

// TestAnOutcomeWithoutItsNumber is a mistake of the description, which is told at once.
func TestAnOutcomeWithoutItsNumber(t *testing.T) {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"job": 7}`))
	}))
	defer shop.Close()
	f, err := parse("service.yaml", t.TempDir(), []byte(small+"answers:\n  accepted: {status: [202]}\noutcome: {path: \"/jobs/{id}\", value: jbo}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, p := &Service{File: f}, &Process{URL: shop.URL, client: newClient()}
	s.counter = p
	if r := s.Buy(t.Context(), p, Sale{}); !errors.As(r.Err, new(*Mistake)) {
		t.Errorf("%s: %v", r.Outcome, r.Err)
	}
}

func TestAnAnswerIsCutBetweenCharacters(t *testing.T) {
	if got := brief([]byte("a" + strings.Repeat("库存", briefly))); !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
}
