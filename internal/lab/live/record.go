package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/lab/words"
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

	Server string `json:"server,omitempty"` // which Redis announced, or what something was done to; empty for MySQL
	Key    string `json:"key,omitempty"`    // of the lock
	What   string `json:"what,omitempty"`   // Redis's name of its event, or what the lab did
	Over   bool   `json:"over,omitempty"`   // what the lab did is over

	Stock *int64         `json:"stock,omitempty"` // that was read or written, or that the row has
	Sold  *int64         `json:"sold,omitempty"`  // units in orders, as SQL counts them
	Order explain.Number `json:"order,omitempty"` // its id
	Read  *int64         `json:"read,omitempty"`  // the stock that the order was computed from
	Left  *int64         `json:"left,omitempty"`  // units behind the order, where that is not what it wrote
	// Token is the fencing token.
	Token explain.Number `json:"token,omitempty"`
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

func (r reader) ms(at time.Time) float64 { return words.Rounded(at.Sub(r.began)) }

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
		if v.Shop == "" {
			e.Server = "Redis"
		}
		if !v.Until.IsZero() {
			e.AtMS, e.Over = r.ms(v.Until), true
		}
		return []Entry{e}
	case trial.Look:
		sold := v.Sold - v.Restocked // units that came after the attack are sold after it
		return []Entry{{AtMS: r.ms(v.At), Kind: Looked, Stock: &v.Remaining, Sold: &sold}}
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
	return []Entry{{AtMS: r.ms(at), Kind: Answered, Shop: v.Shop, Request: v.ID, Outcome: load.Outcome(v.Outcome), LatencyMS: words.Rounded(at.Sub(v.Sent))}}
}

func (r reader) point(v labmode.Event) Entry {
	e := Entry{AtMS: r.ms(v.Time), Kind: Point, Shop: v.Shop, Request: v.Request, Point: v.Point}
	e.Fault, _ = v.Facts["fault"].(string)
	if stock, ok := explain.NumberOf(v.Facts, "stock"); ok {
		e.Stock = &stock
	}
	token, _ := explain.NumberOf(v.Facts, "token")
	e.Token = explain.Number(token)
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
		all = append(all, Entry{AtMS: r.ms(at), Kind: Ordered, Shop: o.Shop, Request: o.RequestID, Order: explain.Number(o.ID),
			Read: &o.StockRead, Stock: &o.StockWritten, Token: explain.Number(o.Token)})
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(a.AtMS, b.AtMS) })
	if state := v.Declared.State; state.Elsewhere() || state.Sum {
		left := v.InitialStock
		for i, e := range all {
			if e.Kind != Ordered {
				continue
			}
			left -= *e.Read - *e.Stock
			if all[i].Left = new(left); state.Scattered() { // a row has no units below zero
				all[i].Left = new(max(left, 0))
			}
		}
	}
	// A replay stops at each entry: no two have the same time.
	for i := 1; i < len(all); i++ {
		if before := all[i-1].AtMS; all[i].AtMS <= before {
			all[i].AtMS = math.Round(before*1000+1) / 1000
		}
	}
	return all
}

// record is what was seen of one run of a cell, ordered by time.
type record struct {
	scene   scene
	entries []Entry
}

// replay draws the record with everything that is known at the end.
func (r *record) replay(ended verdict.Kind) *picture {
	s := r.scene
	s.Replay = true
	if ended == verdict.Oversold {
		s.Clashed = r.clashed()
	}
	s.Exclusive = s.Exclusive && ended == verdict.Oversold
	s.Rows = min(max(r.drawn(s).most, 1), mostRows) // as many as there were at once
	return r.drawn(s)
}

func (r *record) drawn(s scene) *picture {
	p := newPicture(s)
	for _, e := range r.entries {
		p.saw(e)
	}
	p.Finished.WriteString(p.Lasting(r.ends()))
	return p
}

// clashed are the requests whose orders were computed from a stock that another order had changed. Where units are kept
// elsewhere, that is not seen.
func (r *record) clashed() map[string]bool {
	clashed := map[string]bool{}
	current := r.scene.Initial
	for _, e := range r.entries {
		if e.Kind != Ordered || e.Left != nil {
			continue
		}
		if *e.Read != current {
			clashed[e.Request] = true
		}
		current = *e.Stock
	}
	return clashed
}

// decided is the time of the entry that was at a moment. Of several it is the last of a sale, which
// decides, where one is among them: the sum of two rounded times may lie on either side of its entry.
func (r *record) decided(moment float64) float64 {
	found, ofSale := moment, false
	for _, e := range r.entries {
		if sale := e.Kind == Point || e.Kind == Ordered; math.Abs(e.AtMS-moment) < 0.02 && (sale || !ofSale) {
			found, ofSale = e.AtMS, sale
		}
	}
	return found
}

// ends is when the last entry was, in milliseconds.
func (r *record) ends() float64 {
	if len(r.entries) == 0 {
		return 0
	}
	return r.entries[len(r.entries)-1].AtMS
}

// write writes a JSON line for each entry.
func (r *record) write(w io.Writer) error {
	out := json.NewEncoder(w)
	for _, e := range r.entries {
		if err := out.Encode(e); err != nil {
			return err
		}
	}
	return nil
}

// keep writes the record of a run into a folder, with the number of the file: first a line with the run itself, then the
// entries.
func (r *record) keep(folder string, number int, of run) error {
	name := fmt.Sprintf("%03d-%s-%s-%d.jsonl", number, of.Strategy, of.Scenario, of.Seed)
	return wholefile.Write(filepath.Join(folder, strings.ReplaceAll(name, "/", "-")), func(w io.Writer) error {
		if err := json.NewEncoder(w).Encode(of); err != nil {
			return err
		}
		return r.write(w)
	})
}

// recorded is the number of the newest record of a folder, 0 without one.
func recorded(folder string) (last int) {
	files, _ := os.ReadDir(folder)
	for _, file := range files {
		number := 0
		if _, err := fmt.Sscanf(file.Name(), "%d-", &number); err == nil {
			last = max(last, number)
		}
	}
	return last
}
