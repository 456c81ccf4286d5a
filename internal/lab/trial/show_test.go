package trial

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/shop/labmode"
)

// TestACustomerPostsItsLines in their order, each of the item that it names.
func TestACustomerPostsItsLines(t *testing.T) {
	g := &Group{Bench: &Bench{Shops: []Shop{{URL: "first"}, {URL: "second"}}}, feed: newFeed()}
	s := &Show{Group: g, Items: []audit.Run{{ItemID: 7}, {ItemID: 8}, {ItemID: 9}}, run: "run", customers: newCustomers(2, "7", wishes{})}
	o := s.order(s.customers.ask(Wish{Shop: 1, Lines: []int{2, 0, 2}, Action: labmode.Hold}))
	if o.Shop != "second" || o.ItemID != 9 || !slices.Equal(o.More, []uint64{7, 9}) || o.Quantity != 1 || o.Run != "run" {
		t.Errorf("it posts %+v", o)
	}
	if o := s.order(s.customers.ask(Wish{Quantity: 2})); o.ItemID != 7 || o.More != nil || o.Quantity != 2 {
		t.Errorf("without lines it posts %+v, want two units of the first item", o)
	}
}

// TestAnAnswerThatComesIsNotRead: a play that ran out of time says why before its customers are answered.
func TestAnAnswerThatComesIsNotRead(t *testing.T) {
	s := attackOf(Options{}).Show
	s.customers = newCustomers(1, "7", wishes{})
	c := s.customers.ask(Wish{})
	c.take(load.Answer{Outcome: load.Failed, Status: 500})
	if got := s.firstFailure(); got != "" {
		t.Errorf("an answer that is being noted was read: %s", got)
	}
	close(c.done)
	if got := s.firstFailure(); !strings.Contains(got, "500") {
		t.Errorf("the answer is %q", got)
	}
}

// TestWhenAHoldHasEnded is known of who is let go, and of nobody else.
func TestWhenAHoldHasEnded(t *testing.T) {
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer shop.Close()
	s := attackOf(Options{}).Show
	s.Shops, s.customers = []Shop{{URL: shop.URL}}, newCustomers(1, "7", wishes{})
	held, other := s.customers.ask(Wish{Action: labmode.Hold}), s.customers.ask(Wish{})
	s.Release(t.Context(), held)
	s.Release(t.Context(), other)
	if held.letGo.IsZero() || !other.letGo.IsZero() {
		t.Errorf("let go at %v, and at %v", held.letGo, other.letGo)
	}
}

// TestAwaitWaits until it was seen, and says what was not.
func TestAwaitWaits(t *testing.T) {
	g := &Group{Bench: &Bench{}, feed: newFeed()}
	asked := 0
	if err := g.Await(t.Context(), "the third", func() (bool, error) { asked++; return asked == 3, nil }); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	why := errors.New("nobody answers")
	if err := g.Await(ended, "a sale", func() (bool, error) { return false, why }); !errors.Is(err, ErrNotSeen) || !errors.Is(err, why) || !strings.Contains(err.Error(), "a sale") {
		t.Errorf("what was never seen: %v", err)
	}
}
