package labmode

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"sync"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/strategy/ladder"
)

// HoldLimit is how long a request is held at most. A scheduler that is slower than that has lost
// control of the sale, and learns it from the report that the request was done.
const HoldLimit = time.Minute

// StepTime is what the requests of a sale may be held for together: one that is held for too long is seen before any deadline.
const StepTime = 20 * HoldLimit

// extraTime is what a shop in the lab adds to its deadlines: none may end what a scenario makes slow, or a stepper holds.
func extraTime(holds *Stepper) time.Duration {
	if holds != nil {
		return StepTime
	}
	return MaxDuration
}

// StepReport is what a shop reports to the scheduler, one JSON line each, over a TCP connection that the
// shop opens when it starts. The first one has the shop's name alone.
type StepReport struct {
	Shop string `json:"shop,omitempty"`
	// Hold is the number of a request that is held. Done is the number of one that was answered, or
	// 0 for a request of the shop's own, which is never held.
	Hold uint64 `json:"hold,omitempty"`
	Done uint64 `json:"done,omitempty"`
	// Own says that the request belongs to no sale.
	Own bool `json:"own,omitempty"`

	Sale   string     `json:"sale,omitempty"`   // the request id of the sale
	Phase  sale.Point `json:"phase,omitempty"`  // the last point that the sale has passed, except waiting; "" before the first
	Server string     `json:"server,omitempty"` // RedisServer, MySQLServer, or quorum-N
	Name   string     `json:"name,omitempty"`   // the command in one word, such as get or select
	Text   string     `json:"text,omitempty"`   // the command as it is sent
	Tx     bool       `json:"tx,omitempty"`     // the statement is part of a transaction
	// Isolation is the level of that transaction, as database/sql calls it. Conn is MySQL's id of the
	// statement's connection, 0 where it is not known.
	Isolation string `json:"isolation,omitempty"`
	Conn      uint64 `json:"conn,omitempty"`
	// Replica says that a statement is for the replica of MySQL.
	Replica bool   `json:"replica,omitempty"`
	Answer  string `json:"answer,omitempty"` // with Done: what the server answered
	// Lost says, with Done, that the answer was kept from the sale.
	Lost bool `json:"lost,omitempty"`
	// Refused says that the sale passes the point waiting. Such a report has no request.
	Refused bool `json:"refused,omitempty"`

	// Script is the source of a script that was sent, under its SHA-1 in SHA.
	SHA    string `json:"sha,omitempty"`
	Script string `json:"script,omitempty"`
}

// The servers of a [StepReport].
const (
	RedisServer = "redis"
	MySQLServer = "mysql"
	EtcdServer  = "etcd"
	// QuorumServer is the name for all servers of a quorum. Each is called quorum-N.
	QuorumServer = "quorum"
)

// StepOrder is what the scheduler tells a shop: the request of that number may be sent.
type StepOrder struct {
	Go uint64 `json:"go"`
	// Lose keeps the answer from the sale, as a network does that fails after the request.
	Lose bool `json:"lose,omitempty"`
}

// Stepper holds each request of a sale to Redis or MySQL until a scheduler lets it go. It is safe
// for concurrent use.
type Stepper struct {
	conn net.Conn

	mu      sync.Mutex // guards the rest
	out     *json.Encoder
	last    uint64
	held    map[uint64]chan StepOrder
	ended   bool // the scheduler has gone: nothing is held any more
	scripts map[string]bool
	names   map[string]string // of scripts by their SHA-1, where a strategy gives one
}

// dialTimeout bounds the connection to the scheduler, which is there before its shops.
const dialTimeout = 2 * time.Second

// OpenStepper connects to the scheduler at addr, host:port, in the name of a shop.
func OpenStepper(addr, shop string) (*Stepper, error) {
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, fmt.Errorf("the scheduler cannot be reached: %w", err)
	}
	s := &Stepper{conn: conn, out: json.NewEncoder(conn), held: map[uint64]chan StepOrder{}, scripts: map[string]bool{}}
	s.report(StepReport{Shop: shop})
	go s.obey()
	return s, nil
}

// Close lets all that is held go.
func (s *Stepper) Close() error { return s.conn.Close() }

// obey reads the scheduler's orders until it goes away.
func (s *Stepper) obey() {
	orders := json.NewDecoder(s.conn)
	for {
		var order StepOrder
		if err := orders.Decode(&order); err != nil {
			break
		}
		s.mu.Lock()
		held := s.held[order.Go]
		delete(s.held, order.Go)
		s.mu.Unlock()
		if held != nil {
			held <- order
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for number, held := range s.held {
		held <- StepOrder{Go: number}
	}
	clear(s.held)
}

// report tells the scheduler something. A scheduler that has gone is noticed by obey.
func (s *Stepper) report(r StepReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(r)
}

type stepKey struct{}

// stepped is the sale that a request belongs to.
type stepped struct {
	id       string
	atPoints bool // the requests of its lock are not held

	mu          sync.Mutex // guards the rest
	phase       sale.Point
	transaction bool
	isolation   string // of the transaction
	unloaded    unloaded
	keys        []string // the first ones of its scripts
}

// unloaded is the request for a script that the server did not know: it comes again with the
// source.
type unloaded struct {
	request
	number uint64
	order  StepOrder
}

func setUnloaded(ctx context.Context, u unloaded) {
	if of, _ := ctx.Value(stepKey{}).(*stepped); of != nil && u.number != 0 {
		of.mu.Lock()
		defer of.mu.Unlock()
		of.unloaded = u
	}
}

func takeUnloaded(ctx context.Context) unloaded {
	of, _ := ctx.Value(stepKey{}).(*stepped)
	if of == nil {
		return unloaded{}
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	u := of.unloaded
	of.unloaded = unloaded{}
	return u
}

func (s *stepped) now() sale.Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}

// setTransaction notes whether the sale of a context has a transaction open, and its isolation.
func setTransaction(ctx context.Context, open bool, isolation string) {
	if of, _ := ctx.Value(stepKey{}).(*stepped); of != nil {
		of.mu.Lock()
		defer of.mu.Unlock()
		of.transaction, of.isolation = open, isolation
	}
}

func (s *stepped) inTransaction() (open bool, isolation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transaction, s.isolation
}

// Sale returns the context of a sale whose requests are held, and the sale's hook, which also notes
// how far the sale has come.
func (s *Stepper) Sale(ctx context.Context, requestID string, usual sale.Hook) (context.Context, sale.Hook) {
	of := &stepped{id: requestID}
	hook := func(ctx context.Context, p sale.Point, facts []slog.Attr) {
		if p == sale.Waiting { // a refused sale is where it was
			s.report(StepReport{Sale: of.id, Refused: true})
		} else {
			of.mu.Lock()
			of.phase = p
			of.mu.Unlock()
		}
		usual(ctx, p, facts)
	}
	return context.WithValue(ctx, stepKey{}, of), hook
}

// request is one request on its way to a server.
type request struct {
	server, name, text string
	conn               uint64 // MySQL's id of the connection, 0 for another server
	replica            bool   // it is for the replica of MySQL
	// background says that a sale's context leads to it, but that the sale does not wait for it.
	background bool
	// whole says that it stands for all requests of an acquisition or a release.
	whole bool
}

// wait holds a request that belongs to a sale, and returns what to do with it. The number is 0 for
// a request that belongs to none, which is not held.
func (s *Stepper) wait(ctx context.Context, r request) (number uint64, order StepOrder) {
	of, _ := ctx.Value(stepKey{}).(*stepped)
	if of == nil || r.background || of.atPoints && !r.whole && r.server != MySQLServer {
		return 0, StepOrder{}
	}
	go_ := make(chan StepOrder, 1)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return 0, StepOrder{}
	}
	s.last++
	number = s.last
	s.held[number] = go_
	report := StepReport{Hold: number, Sale: of.id, Phase: of.now(), Server: r.server, Name: r.name, Text: r.text, Conn: r.conn, Replica: r.replica}
	report.Tx, report.Isolation = of.inTransaction()
	_ = s.out.Encode(report)
	s.mu.Unlock()
	limit := time.NewTimer(HoldLimit)
	defer limit.Stop()
	select {
	case order = <-go_:
	case <-limit.C:
		s.mu.Lock()
		delete(s.held, number)
		s.mu.Unlock()
	}
	return number, order
}

// done reports the answer to a request. The sale gets the result.
func (s *Stepper) done(ctx context.Context, r request, number uint64, order StepOrder, answer string, err error) error {
	report := StepReport{Done: number, Server: r.server, Name: r.name, Text: r.text, Answer: answer, Lost: order.Lose}
	if of, _ := ctx.Value(stepKey{}).(*stepped); of != nil {
		report.Sale = of.id
	}
	report.Own = number == 0
	if err != nil {
		report.Answer = "error: " + err.Error()
	}
	s.report(report)
	if order.Lose {
		return lostAnswer{}
	}
	return err
}

// lostAnswer is what a client finds out about an answer that never came.
type lostAnswer struct{}

func (lostAnswer) Error() string   { return "i/o timeout: the lab lost the answer" }
func (lostAnswer) Timeout() bool   { return true }
func (lostAnswer) Temporary() bool { return true }
func (lostAnswer) Unwrap() error   { return os.ErrDeadlineExceeded }

// nameScripts takes in what strategies call their scripts. It is called before the first sale.
func (s *Stepper) nameScripts(of []ladder.Rung) {
	s.names = map[string]string{}
	for _, each := range of {
		maps.Copy(s.names, each.Declared.Scripts)
	}
}

// learn tells the scheduler the source of a script, once.
func (s *Stepper) learn(sha, source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.scripts[sha] {
		s.scripts[sha] = true
		_ = s.out.Encode(StepReport{SHA: sha, Script: source})
	}
}
