package service

import (
	"testing"

	"stocklock/internal/lab/wire"
)

// TestTheEndOfATransactionOfNoSale: a service clears what is old now and then, also while it sells. With that in the story of a
// sale, each run would wait for it.
func TestTheEndOfATransactionOfNoSale(t *testing.T) {
	s, p := &Service{File: &File{}}, &Probe{Background: []string{Shape("DELETE FROM old LIMIT 9")}}
	sells, clears := &wire.Conn{}, &wire.Conn{}
	sent := func(on *wire.Conn, name, text string) *wire.Exchange {
		return &wire.Exchange{Conn: on, Server: wire.MySQL, Name: name, Text: text, Open: name != "commit"}
	}
	var got []string
	for _, step := range s.foreground(p, []*wire.Exchange{
		sent(clears, "delete", "DELETE FROM old LIMIT 9"), sent(sells, "update", "UPDATE items SET stock = 0"), sent(clears, "commit", "COMMIT"),
		sent(sells, "commit", "COMMIT"), sent(clears, "delete", "DELETE FROM old LIMIT 9"), sent(clears, "commit", "COMMIT"),
	}, Sale{}) {
		got = append(got, step.Sent)
	}
	if len(got) != 2 || got[0] != "UPDATE items SET stock = 0" || got[1] != "COMMIT" {
		t.Errorf("a sale has sent %q", got)
	}
}

// TestWhatIsToldBeforeItsAnswerIsKeptOnce is of a worker that waits for a sale longer than the lab watches.
func TestWhatIsToldBeforeItsAnswerIsKeptOnce(t *testing.T) {
	kept := &recorder{customers: 2}
	waits, counts := &wire.Exchange{Text: "BLPOP done:c1 20"}, &wire.Exchange{Process: 2, Text: "GET stock"}
	for range 2 {
		for _, x := range kept.among([]*wire.Exchange{waits, counts}) {
			kept.note(x)
		}
	}
	waits.Answer = "1"
	kept.note(waits)
	if all := kept.take(); len(all) != 1 || all[0].Text != waits.Text || all[0].Answer != "" {
		t.Errorf("%d requests, want the one that waits, without its answer: %+v", len(all), all)
	}
}
