package labmode

import (
	"errors"
	"testing"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
)

// losing returns a store of one connection whose COMMITs can lose their answers, with an item.
func losing(t *testing.T) (*lostCommits, *stock.Store, stock.Item) {
	t.Helper()
	commits := &lostCommits{}
	store := stocktest.Open(t, stock.WithConnector(commits.Connector), stock.WithPoolSize(1))
	return commits, store, stocktest.Item(t, store, 10)
}

// TestTheAnswerToACommitIsLost wants the COMMIT of the sale that is named to be carried out and not answered,
// once, and that of no other.
func TestTheAnswerToACommitIsLost(t *testing.T) {
	commits, store, item := losing(t)
	sell := func(request string) error {
		return store.Transact(t.Context(), func(tx stock.Tx) error {
			left, err := tx.Take(item.ID, 1)
			if err != nil {
				return err
			}
			_, err = tx.Record(stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: request, Shop: "test"}, left+1, left)
			return err
		})
	}
	lost := 0
	commits.lose("second", func() { lost++ })
	for _, tt := range []struct {
		request string
		unknown bool
		lost    int
	}{{"first", false, 0}, {"second", true, 1}, {"second", false, 1}, {"third", false, 1}} {
		if err := sell(tt.request); errors.Is(err, stock.ErrUnknown) != tt.unknown || !tt.unknown && err != nil || lost != tt.lost {
			t.Errorf("%s: %v, and %d answers were lost, want an unknown outcome: %t, %d lost", tt.request, err, lost, tt.unknown, tt.lost)
		}
	}
	orders, err := store.ItemOrders(t.Context(), item.ID)
	if err != nil || len(orders) != 4 {
		t.Errorf("%d orders, %v, want 4: what was not answered was carried out", len(orders), err)
	}
}

// TestATransactionThatIsRolledBackLosesNothing: its repeat loses the answer.
func TestATransactionThatIsRolledBackLosesNothing(t *testing.T) {
	commits, store, item := losing(t)
	commits.lose("r", func() {})
	refused := errors.New("refused")
	err := store.Transact(t.Context(), func(tx stock.Tx) error {
		if _, err := tx.Record(stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"}, 10, 9); err != nil {
			return err
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Fatal(err)
	}
	err = store.Transact(t.Context(), func(tx stock.Tx) error {
		_, err := tx.Take(item.ID, 1) // on the same connection, without the order
		return err
	})
	if err != nil {
		t.Errorf("another transaction on the connection: %v", err)
	}
	if _, err := store.Decrement(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
		t.Errorf("a store that looks for the order of a COMMIT without an answer: %v", err)
	}
	if _, armed := commits.lost.Load("r"); armed {
		t.Error("the repeat has lost no answer")
	}
}
