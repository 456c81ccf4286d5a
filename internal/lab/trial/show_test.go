package trial

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/audit"
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
