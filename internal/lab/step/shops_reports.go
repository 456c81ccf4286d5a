package step

import (
	"database/sql"
	"encoding/json"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
)

// reports is where the shops connect: they report what they hold, and it lets that go on.
type reports struct {
	*rig.Connections        // closing them lets everything go that is held
	isolation        string // of transactions that ask for none

	mu       sync.Mutex // guards the rest
	followed map[subject]func(heldReport)
	scripts  map[string]string // sources by SHA-1
}

// subject is the request id of a sale, or the number of an item for what the shops send on their own. Both are unique
// within a testbed: the servers of two can number their items alike.
type subject struct{ testbed, name string }

// heldReport is a report with the way to answer it.
type heldReport struct {
	labmode.StepReport
	shop string
	from *orders
	at   time.Time // when it came; a run may take it in later
	item uint64    // of a rehearsal's first step
}

// orders is the way to one shop. A run and the rehearsal's timers write to it at once.
type orders struct {
	mu sync.Mutex
	to *json.Encoder
}

func openReports() (*reports, error) {
	s := &reports{followed: map[subject]func(heldReport){}, scripts: map[string]string{}}
	var err error
	if s.Connections, err = rig.Accept(s.read); err != nil {
		return nil, err
	}
	return s, nil
}

// read passes on what one shop reports until the shop ends.
func (s *reports) read(conn net.Conn) {
	in, out := json.NewDecoder(conn), &orders{to: json.NewEncoder(conn)}
	var shop string
	for {
		var r labmode.StepReport
		if in.Decode(&r) != nil {
			return
		}
		switch {
		case r.Shop != "":
			shop = r.Shop
		case r.SHA != "":
			s.mu.Lock()
			s.scripts[r.SHA] = r.Script
			s.mu.Unlock()
		default:
			if r.Isolation == sql.LevelDefault.String() {
				r.Isolation = s.isolation
			}
			s.pass(heldReport{StepReport: r, shop: shop, from: out, at: time.Now()})
		}
	}
}

// pass gives a report to the run that it belongs to. A sale that nobody plays goes on at once.
func (s *reports) pass(r heldReport) {
	testbed := testbedOf(r.shop)
	s.mu.Lock()
	to := s.followed[subject{testbed, r.Sale}]
	if to == nil && r.Hold == 0 {
		to = s.followed[subject{testbed, itemIn(r.Text)}]
	}
	if to != nil { // with mu: a run that follows no more lets go what it has
		to(r)
	}
	s.mu.Unlock()
	if to == nil && r.Hold != 0 {
		r.release(false)
	}
}

func (r heldReport) request() schedule.Request {
	return schedule.Request{Server: r.Server, Text: r.Text, Tx: r.Tx, Isolation: r.Isolation}
}

// held is the request as one that a customer is held at.
func (r heldReport) held() *held {
	return &held{Request: r.request(), id: r.Hold, name: r.Name, conn: r.Conn, replica: r.Replica, release: func(h *held) { r.release(h.lost) }, drop: func() {}}
}

// about is the text of a rehearsal's first step for another item.
func (r heldReport) about(item uint64) string {
	return regexp.MustCompile(`\b`+strconv.FormatUint(r.item, 10)+`\b`).ReplaceAllString(r.Text, strconv.FormatUint(item, 10))
}

// release lets the request go. A shop that has ended needs no answer.
func (r heldReport) release(lose bool) {
	r.from.mu.Lock()
	defer r.from.mu.Unlock()
	_ = r.from.to.Encode(labmode.StepOrder{Go: r.Hold, Lose: lose})
}

// follow has a testbed's reports on these sales, and on the items, passed to the function.
func (s *reports) follow(testbed string, items []uint64, sales []string, to func(heldReport)) (unfollow func()) {
	names := slices.Clone(sales)
	for _, item := range items {
		names = append(names, strconv.FormatUint(item, 10))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.followed[subject{testbed, name}] = to
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, name := range names {
			delete(s.followed, subject{testbed, name})
		}
	}
}

// script is the source of a script that the shops have sent, empty for one that is not known.
func (s *reports) script(sha string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scripts[sha]
}

// itemIn finds the item whose lock a command is about, empty for none.
func itemIn(text string) string {
	_, rest, _ := strings.Cut(text, "stock:")
	return rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
}
