package live

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// Entry is one thing that was seen of a cell: one line of its record.
type Entry struct {
	AtMS    float64 `json:"at_ms"` // since the attack began
	Kind    Kind    `json:"kind"`
	Shop    string  `json:"shop,omitempty"`
	Request string  `json:"request,omitempty"`

	Point     sale.Point   `json:"point,omitempty"`
	Fault     string       `json:"fault,omitempty"`      // injected at the point, as labmode.ParseFault reads it
	Outcome   load.Outcome `json:"outcome,omitempty"`    // of an answer
	LatencyMS float64      `json:"latency_ms,omitempty"` // of an answer

	Server string `json:"server,omitempty"` // which Redis announced
	Key    string `json:"key,omitempty"`    // of the lock
	What   string `json:"what,omitempty"`   // Redis's name of its event, or what the lab did
	Over   bool   `json:"over,omitempty"`   // what the lab did is over

	Stock *int64 `json:"stock,omitempty"` // that was read or written, or that the row has
	Sold  *int64 `json:"sold,omitempty"`  // units in orders, as SQL counts them
	Order uint64 `json:"order,omitempty"` // its id
	Read  *int64 `json:"read,omitempty"`  // the stock that the order was computed from
	Token int64  `json:"token,omitempty"` // fencing token
}

// Kind is what an entry is about.
type Kind string

// The kinds of entries.
const (
	Sent     Kind = "sent"     // a request was made
	Answered Kind = "answered" // its client had the answer
	Point    Kind = "point"    // a sale came to a point
	Lock     Kind = "lock"     // Redis announced a change of the lock
	Done     Kind = "done"     // the lab did something to a shop or a server
	Ordered  Kind = "order"    // MySQL has an order
	Looked   Kind = "look"     // MySQL was asked
)

// reader makes entries of what is seen of one cell.
type reader struct {
	began   time.Time
	singles bool // keep single requests
}

func (r reader) ms(at time.Time) float64 {
	return math.Round(at.Sub(r.began).Seconds()*1e5) / 100
}

// entries are those of one thing that was seen. They are none for what is not kept.
func (r reader) entries(seen any) []Entry {
	switch v := seen.(type) {
	case explain.Request:
		return r.request(v)
	case labmode.Event:
		return []Entry{r.point(v)}
	case explain.Change:
		return []Entry{{AtMS: r.ms(v.Time), Kind: Lock, Server: v.Server, Key: v.Key, What: string(v.What)}}
	case explain.Intervention:
		e := Entry{AtMS: r.ms(v.From), Kind: Done, Shop: v.Shop, What: v.What}
		if !v.Until.IsZero() {
			e.AtMS, e.Over = r.ms(v.Until), true
		}
		return []Entry{e}
	case trial.Look:
		return []Entry{{AtMS: r.ms(v.At), Kind: Looked, Stock: &v.Remaining, Sold: &v.Sold}}
	}
	return nil
}

// request is a request when it is made, or when it is answered.
func (r reader) request(v explain.Request) []Entry {
	if !r.singles {
		return nil
	}
	if v.Outcome == "" {
		return []Entry{{AtMS: r.ms(v.Sent), Kind: Sent, Shop: v.Shop, Request: v.ID}}
	}
	at := v.Answered
	if at.IsZero() {
		at = time.Now() // no answer came
	}
	return []Entry{{AtMS: r.ms(at), Kind: Answered, Shop: v.Shop, Request: v.ID, Outcome: load.Outcome(v.Outcome),
		LatencyMS: math.Round(at.Sub(v.Sent).Seconds()*1e5) / 100}}
}

func (r reader) point(v labmode.Event) Entry {
	e := Entry{AtMS: r.ms(v.Time), Kind: Point, Shop: v.Shop, Request: v.Request, Point: v.Point}
	e.Fault, _ = v.Facts["fault"].(string)
	number := func(name string) (n int64, ok bool) {
		text, ok := v.Facts[name].(json.Number)
		if !ok {
			return 0, false
		}
		n, err := text.Int64()
		return n, err == nil
	}
	if stock, ok := number("stock"); ok {
		e.Stock = &stock
	}
	e.Token, _ = number("token")
	return e
}

// all are the entries of a cell that has ended, from its evidence, with the looks that were had
// meanwhile.
func (r reader) all(v explain.Evidence, looks []Entry) []Entry {
	all := slices.Clone(looks)
	written := map[string]time.Time{}
	for _, e := range v.Events {
		all = append(all, r.point(e))
		if e.Point == sale.Written {
			written[e.Request] = e.Time
		}
	}
	for _, q := range v.Requests {
		if q.Answered.IsZero() && q.Outcome != "" {
			q.Answered = v.Ended
		}
		answered := q
		q.Outcome = ""
		all = append(append(all, r.request(q)...), r.request(answered)...)
	}
	for _, c := range v.Changes {
		all = append(all, r.entries(c)...)
	}
	for _, i := range v.Interventions {
		begun := i
		begun.Until = time.Time{}
		all = append(all, r.entries(begun)...)
		if !i.Until.IsZero() {
			all = append(all, r.entries(i)...)
		}
	}
	for _, o := range v.Orders {
		at := cmp.Or(written[o.RequestID], o.CreatedAt)
		all = append(all, Entry{AtMS: r.ms(at), Kind: Ordered, Shop: o.Shop, Request: o.RequestID, Order: o.ID,
			Read: &o.StockRead, Stock: &o.StockWritten, Token: o.Token})
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(a.AtMS, b.AtMS) })
	return all
}
