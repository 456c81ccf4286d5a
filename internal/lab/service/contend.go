package service

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/verdict"
)

// Contention is how many customers buy at once.
type Contention struct {
	Stock     int64
	Customers int // who buy one unit each
	AtOnce    int // so many of them
	Seed      uint64
	// Late says that sales go on when they have answered: what is counted must have come to rest.
	Late bool
}

// DefaultContention is enough for most read-then-writes to show.
var DefaultContention = Contention{Stock: 20, Customers: 80, AtOnce: 16}

// Result is what a run came to.
type Result struct {
	Facts     verdict.Facts
	Judgement verdict.Judgement
	Answers   map[string]int // how many of each
	Error     string         // one of those that the description does not know
}

const (
	retryBusy     = 20 * time.Millisecond // after which a customer who was told busy asks again
	patience      = 15 * time.Second      // for which a customer does
	ordinaryTries = 3                     // customers who come afterwards, one by one
)

// Contend has many customers buy one item at once, at all processes, and counts.
func (s *Service) Contend(ctx context.Context, c Contention) (Result, error) {
	item := s.NewItem()
	if err := s.SetStock(ctx, item, c.Stock); err != nil {
		return Result{}, err
	}
	random := rand.New(rand.NewPCG(c.Seed, 1))
	at := make([]*Process, c.Customers)
	for i := range at {
		at[i] = s.Processes[random.IntN(len(s.Processes))]
	}
	var (
		mu      sync.Mutex // guards replies
		replies = map[string]Reply{}
		buying  sync.WaitGroup
		next    = make(chan int)
		began   = time.Now()
	)
	for range c.AtOnce {
		buying.Go(func() {
			for i := range next {
				customer := fmt.Sprintf("item%d-c%d", item, i+1)
				reply := s.buyUntilAnswered(ctx, at[i], s.NewSale(item, customer))
				mu.Lock()
				replies[customer] = reply
				mu.Unlock()
			}
		})
	}
	for i := range at {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	buying.Wait()
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	took := time.Since(began)
	if c.Late {
		switch still, err := s.Still(ctx, item); {
		case err != nil:
			return Result{}, err
		case !still:
			return Result{Judgement: verdict.Failed("the count still changed %s after the last answer", stillLimit)}, nil
		}
	}
	return s.judge(ctx, item, c, replies, took)
}

// buyUntilAnswered is one customer, who asks again when the service is busy.
func (s *Service) buyUntilAnswered(ctx context.Context, p *Process, o Sale) Reply {
	for until := time.Now().Add(patience); ; {
		reply := s.Buy(ctx, p, o)
		if reply.Outcome != load.Busy || time.Now().After(until) || seen.Pause(ctx, retryBusy) != nil {
			return reply
		}
	}
}

// judge counts, has ordinary customers come where units are left, and rules.
func (s *Service) judge(ctx context.Context, item int64, c Contention, replies map[string]Reply, took time.Duration) (Result, error) {
	r := Result{Answers: map[string]int{}}
	f := verdict.Facts{Stock: c.Stock, Seconds: took.Seconds()}
	for _, reply := range replies {
		word := string(reply.Outcome)
		r.Answers[word]++
		if reply.Outcome == load.Failed {
			f.Errors++
			r.Error, f.FirstError = reply.String(), reply.String()
		}
	}
	left, err := s.Left(ctx, item)
	if err != nil {
		return r, err
	}
	wanted := false // somebody was sent away, or got no answer
	for _, reply := range replies {
		wanted = wanted || reply.Outcome != load.Sold
	}
	if left > 0 && wanted {
		refused := 0
		for i := range ordinaryTries {
			customer := fmt.Sprintf("item%d-ordinary%d", item, i+1)
			reply := s.buyUntilAnswered(ctx, s.Processes[i%len(s.Processes)], s.NewSale(item, customer))
			replies[customer] = reply
			if reply.Outcome == load.SoldOut {
				refused++
			} else if reply.Outcome != load.Sold {
				f.Stuck = true
			}
		}
		before := left
		if c.Late {
			if _, err := s.Still(ctx, item); err != nil {
				return r, err
			}
		}
		if left, err = s.Left(ctx, item); err != nil {
			return r, err
		}
		if refused > 0 {
			f.Left = min(before, left)
		}
		f.DemandLeft = true
	}
	orders, err := s.Orders(ctx, item)
	if err != nil {
		return r, err
	}
	purchases := map[string]count.Purchase{}
	for customer, reply := range replies {
		purchases[customer] = count.Purchase{Answers: []count.Answer{{Outcome: reply.Outcome}}}
	}
	for _, o := range orders {
		p := purchases[o.Customer]
		p.Orders = append(p.Orders, count.Order{Units: count.Units{0: o.Units}})
		purchases[o.Customer] = p
	}
	counted := count.Facts(maps.Values(purchases))
	f.Sold, f.Twice, f.Unordered, f.Denied = counted.Sold, counted.Twice, counted.Unordered, counted.Denied
	f.Remaining, f.Oversold, f.LostUpdates = left, max(0, f.Sold-c.Stock), f.Sold+left-c.Stock
	if f.Remaining == 0 { // each unit is in an order: what else was answered kept nobody from one
		f.Errors = 0
	}
	r.Facts, r.Judgement = f, f.Verdict()
	return r, nil
}
