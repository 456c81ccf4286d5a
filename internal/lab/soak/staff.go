package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/seen"
	"stocklock/internal/shop"
	"stocklock/internal/stock"
)

// How many change the items that are sold, and how long each of them pauses between two changes.
const (
	staffSize  = 3
	staffPause = 500 * time.Millisecond
)

const subjectName = "soak"

// fewChanges of a kind can all be refused where nothing is wrong. A short soak may even ask for none.
const fewChanges = 10

// Changes is what became of one kind of change.
type Changes struct {
	Action   stock.Action
	Asked    int
	Made     int
	Replayed int // of them, those whose answer came to a repeated request
	Doubtful int // without a clear answer at first
	Refused  int
}

// wish is a change that a member of the staff wants, under one idempotency key.
type wish struct {
	action             stock.Action
	key                string
	method, path, body string
	seen               string // the ETag that the change is for, empty for any

	made, replayed, doubtful bool
	refused                  string // the answer, where it was refused
	unexpected               bool   // the answer is none that a right wish gets
}

// expected are the problems with which a right wish may be refused.
var expected = []string{"version-changed", "already-cancelled"}

// staff changes items while they are sold. It is safe for concurrent use.
type staff struct {
	*soak
	items *items

	mu     sync.Mutex
	wishes []*wish // guarded by mu
}

// work makes changes until ctx ends. Then it waits for the answers to those that are open, until running ends.
func (s *staff) work(ctx, running context.Context) error {
	if s == nil {
		return nil
	}
	var working errgroup.Group
	for n := range staffSize {
		working.Go(func() error {
			rng := rand.New(rand.NewPCG(s.Seed, uint64(n)))
			for ; ctx.Err() == nil; _ = seen.Pause(ctx, time.Duration(rng.Int64N(2*int64(staffPause)))) {
				if err := s.change(ctx, running, rng); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return working.Wait()
}

// staffHeader is where the shops find who of the staff asks.
const staffHeader = "X-Staff"

// change has a wish and repeats it, at one shop after the other, until the answer is clear, or running ends.
func (s *staff) change(ctx, running context.Context, rng *rand.Rand) error {
	w := s.wish(ctx, rng)
	if w == nil {
		return nil
	}
	giveUp := time.Now().Add(s.Duration + settling)
	for n := rng.IntN(len(s.testbed.Shops)); ; n++ {
		at := s.testbed.Shops[n%len(s.testbed.Shops)].Staff
		asked := http.Header{"Content-Type": {"application/json"}, staffHeader: {subjectName}, shop.IdempotencyKeyHeader: {w.key}}
		if w.seen != "" {
			asked.Set("If-Match", w.seen)
		}
		status, header, body, err := ask(running, patience, w.method, at+w.path, w.body, asked)
		switch {
		case err == nil && status < 300:
			w.made, w.replayed = true, header.Get(shop.ReplayedHeader) == "true"
			return nil
		case err == nil && status != http.StatusServiceUnavailable:
			w.refused = string(body)
			w.unexpected = status >= 500 || !slices.Contains(expected, load.ProblemOf(body))
			return nil
		case running.Err() != nil:
			return nil
		case time.Now().After(giveUp):
			return errors.Join(fmt.Errorf("the change %s has no clear answer: %d %s", w.key, status, body), err)
		}
		w.doubtful = true
		_ = seen.Pause(running, firstPause)
	}
}

// wish decides what to change. It returns nil where nothing can be changed now.
func (s *staff) wish(ctx context.Context, rng *rand.Rand) *wish {
	s.customers.mu.Lock()
	item := s.items.basket(0, 1)[0].ItemID
	if rng.IntN(2) == 0 {
		// A correction of what sells fast may be refused every time. One of an item that is not on sale is made.
		item = s.items.all[len(s.items.all)-1].ItemID
	}
	var order stock.Order
	if n := len(s.customers.recent); n > 0 {
		order = s.customers.recent[rng.IntN(n)]
	}
	s.customers.mu.Unlock()

	path := fmt.Sprintf("/api/v1/items/%d", item)
	var w *wish
	switch action := rng.IntN(10); {
	case action < 3:
		w = &wish{action: stock.Restocked, method: http.MethodPost, path: path + "/restocks", body: fmt.Sprintf(`{"quantity":%d}`, 1+rng.IntN(10))}
	case action < 6:
		at := s.testbed.Shops[rng.IntN(len(s.testbed.Shops))].URL
		status, header, body, err := ask(ctx, patience, http.MethodGet, at+path, "", nil)
		var current stock.Item
		if err != nil || status != http.StatusOK || json.Unmarshal(body, &current) != nil {
			return nil
		}
		w = &wish{action: stock.Corrected, method: http.MethodPut, path: path + "/stock", seen: header.Get("ETag"), body: fmt.Sprintf(`{"stock":%d}`, max(0, current.Stock-3+rng.Int64N(7)))}
	case action < 8:
		if order.PublicID == "" {
			return nil
		}
		w = &wish{action: stock.Cancelled, method: http.MethodPost, path: shop.OrdersOfItems + "/" + order.PublicID + "/cancellation"}
		if rows := order.Rows(); action == 7 {
			line := rows[rng.IntN(len(rows))]
			w.action, w.path = stock.CancelledLine, fmt.Sprintf("%s/%s/lines/%d/cancellation", shop.OrdersOfItems, order.PublicID, line.ItemID)
		}
	case action < 9:
		w = &wish{action: stock.Renamed, method: http.MethodPatch, path: path, body: fmt.Sprintf(`{"name":"soak %d"}`, rng.IntN(1000))}
	default:
		w = &wish{action: stock.Created, method: http.MethodPost, path: "/api/v1/items", body: `{"name":"soak","stock":1}`}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.key = fmt.Sprint("change-", len(s.wishes))
	s.wishes = append(s.wishes, w)
	return w
}

// ask sends a request on a connection of its own, which is not counted at rest.
func ask(ctx context.Context, within time.Duration, method, url, body string, header http.Header) (int, http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header, request.Close = header, true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer answer.Body.Close()
	answered, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header, answered, err
}

// audit compares the answers to the staff with the entries of the audit.
func (s *staff) audit(ctx context.Context, r *Report) error {
	if s == nil {
		return nil
	}
	made := 0
	for _, action := range []stock.Action{stock.Restocked, stock.Corrected, stock.Cancelled, stock.CancelledLine, stock.Renamed, stock.Created} {
		sum := Changes{Action: action}
		for _, w := range s.wishes {
			if w.action != action {
				continue
			}
			sum.Asked++
			sum.Made += one(w.made)
			sum.Replayed += one(w.replayed)
			sum.Doubtful += one(w.doubtful)
			sum.Refused += one(w.refused != "")
			if w.unexpected {
				r.find("%s %s: an unexpected answer: %s", action, w.key, w.refused)
			}
			entry, err := s.store.ChangeByKey(ctx, subjectName, w.key)
			if err != nil && !errors.Is(err, stock.ErrNotFound) {
				return err
			}
			if there := err == nil && entry.Action == action; there != w.made {
				r.find("%s %s: answered as made %t, in the audit %t, refused with %q", action, w.key, w.made, there, w.refused)
			}
		}
		if sum.Made == 0 && sum.Asked > fewChanges {
			r.find("no change was made: %s", action)
		}
		made += sum.Made
		r.Changes = append(r.Changes, sum)
	}
	var entries int
	if err := s.store.Pool().QueryRowContext(ctx, "SELECT COUNT(idempotency_key) FROM changes").Scan(&entries); err != nil {
		return err
	}
	if entries != made {
		r.find("%d changes were answered as made, the audit has %d", made, entries)
	}
	return nil
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
