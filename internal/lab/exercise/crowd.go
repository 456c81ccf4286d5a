package exercise

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"stocklock/internal/lab/bench"
	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/stock"
)

// A crowd buys so much of each item at once. The customers want 1, 2 or 3 units each, and so more than
// there are.
const (
	crowdUnits     = 24
	crowdCustomers = 24
)

// How long a lock of a crowd lasts, how long its customers wait for it, and how long for an answer. All
// are so long that none ends before everybody has been served, on any machine.
const (
	crowdLease   = 10 * time.Second
	crowdWait    = 15 * time.Second
	crowdTimeout = 30 * time.Second
)

// A gathering ends when all its customers are at the shop. MySQL ends a wait for a row after five
// seconds: one that took longer than longestGathering decides nothing, and is made again.
const (
	longestGathering = 3 * time.Second
	gatherings       = 5
)

// market is where crowds buy: a MySQL and three shops for all answers of a checker.
type market struct {
	*bench.Bench
	shops []*rig.TestbedShop
}

func openMarket(ctx context.Context, program, redisServer string) (_ *market, err error) {
	m := &market{}
	if m.Bench, err = bench.Open(ctx, bench.Options{Shop: program, Redis: redisServer}); err != nil {
		return nil, err
	}
	testbed, err := m.Testbed(ctx, rig.TestbedOptions{Name: "crowd", Shops: 3, Env: map[string]string{
		"SHOP_LAB": "true", "SHOP_LOG_LEVEL": "error", "SHOP_RETRY": "2ms", "SHOP_LEASE": crowdLease.String(), "SHOP_WAIT": crowdWait.String(),
	}})
	if err == nil {
		m.shops, err = testbed.Shops, m.countCommits(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// crowd has many customers buy at once while nothing goes wrong, and compares their answers with the
// orders. A crowd that gathers buys two items at one shop, and none of it is served before all are
// there: what a sale shares with those that wait does not depend on the machine.
func (c *Checker) crowd(ctx context.Context, a Answer, done func(words.Text)) (Verdict, error) {
	if c.market == nil {
		var err error
		if c.market, err = openMarket(c.background, c.shop.Program, c.RedisServer); err != nil {
			return Verdict{}, err
		}
	}
	if a.Exercise.MaxCommits == 0 {
		b, err := c.market.send(ctx, a.Name, 1, c.market.shops)
		if err != nil {
			return Verdict{}, err
		}
		v, err := b.verdict(ctx)
		if err == nil && v.Cause == "" {
			done(b.text())
		}
		return v, err
	}
	return c.market.gather(ctx, a, done)
}

// gather serves a crowd that has gathered, and holds the number of commits to its bound.
func (m *market) gather(ctx context.Context, a Answer, done func(words.Text)) (Verdict, error) {
	for range gatherings {
		var commits [2]int64
		b, err := m.send(ctx, a.Name, 2, m.shops[:1], func(b *buying) (err error) {
			commits[0], err = m.commits(ctx)
			return err
		})
		if err == errTooLong {
			continue
		}
		if err != nil {
			return Verdict{}, err
		}
		if v, err := b.verdict(ctx); err != nil || v.Cause != "" {
			return v, err
		}
		if commits[1], err = m.commits(ctx); err != nil {
			return Verdict{}, err
		}
		each, most := float64(commits[1]-commits[0])/float64(b.orders), a.Exercise.MaxCommits
		if each > most {
			return Verdict{Cause: verdict.TooManyCommits, Said: words.Of("exercise.many-commits", "crowd", b.text(), "each", fmt.Sprintf("%.2f", each), "sales", b.orders, "most", fmt.Sprintf("%.1f", most))}, nil
		}
		done(words.Of("exercise.few-commits", "crowd", b.text(), "each", fmt.Sprintf("%.2f", each), "most", fmt.Sprintf("%.1f", most)))
		return Verdict{}, nil
	}
	return Verdict{}, fmt.Errorf("a crowd did not gather within %s, %d times: nothing is known: check again on a quieter machine", longestGathering, gatherings)
}

var errTooLong = errors.New("the crowd gathered for too long")

// buying is a crowd that has bought.
type buying struct {
	market *market
	items  []stock.Item
	held   bool // the crowd had gathered
	orders int  // that stand

	mu      sync.Mutex // guards answers
	answers []load.Answer
}

func (b *buying) text() words.Text {
	if !b.held {
		return words.Of("exercise.crowd", "n", crowdCustomers)
	}
	return words.Of("exercise.gathered", "n", crowdCustomers)
}

// send has a crowd buy each of so many items at some shops, and returns when all have their answers. With
// gathered it keeps the items' rows locked until all customers are there, and then calls that first.
func (m *market) send(ctx context.Context, by string, items int, shops []*rig.TestbedShop, gathered ...func(*buying) error) (*buying, error) {
	b := &buying{market: m, held: len(gathered) > 0}
	for i := range items {
		item, err := m.Store.CreateItem(ctx, fmt.Sprintf("item %d", i+1), crowdUnits)
		if err != nil {
			return nil, err
		}
		b.items = append(b.items, item)
	}
	rows, err := m.Store.Pool().BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Rollback()
	if b.held {
		if err := lockRows(ctx, rows, b.items); err != nil {
			return nil, err
		}
	}
	sending, cancel := context.WithTimeout(ctx, crowdTimeout)
	defer cancel()
	begun := time.Now()
	var buyers sync.WaitGroup
	for i := range crowdCustomers {
		for _, item := range b.items {
			buyers.Go(func() {
				answer := load.Send(sending, load.Order{
					Shop: shops[i%len(shops)].URL, ItemID: item.ID, Quantity: 1 + i%3, Strategy: by, RequestID: fmt.Sprintf("crowd-%d-%d", item.ID, i+1),
				})
				b.mu.Lock()
				defer b.mu.Unlock()
				b.answers = append(b.answers, answer)
			})
		}
	}
	for _, then := range gathered {
		if err = b.gathered(sending, shops[0]); err == nil {
			err = then(b)
		}
	}
	took := time.Since(begun)
	if ended := rows.Rollback(); err == nil && !errors.Is(ended, sql.ErrTxDone) {
		err = ended
	}
	buyers.Wait()
	if err == nil && b.held && took > longestGathering {
		err = errTooLong
	}
	return b, err
}

func lockRows(ctx context.Context, rows *sql.Tx, items []stock.Item) error {
	for _, item := range items {
		if _, err := rows.ExecContext(ctx, "UPDATE items SET version = version WHERE id = ?", item.ID); err != nil {
			return fmt.Errorf("lock the row of item %d: %w", item.ID, err)
		}
	}
	return nil
}

// gathered waits until each customer is at the shop, or has its answer already. Nobody is at a shop that has ended.
func (b *buying) gathered(ctx context.Context, shop *rig.TestbedShop) error {
	_, err := seen.Until(ctx, 5*time.Millisecond, func() (bool, error) {
		b.mu.Lock()
		there := len(b.answers)
		b.mu.Unlock()
		metric, err := rig.Metrics(ctx, shop.Internal)
		if err != nil {
			select {
			case <-shop.Exited():
				return true, nil
			case <-ctx.Done():
				return false, fmt.Errorf("ask the shop how many customers are there: %w", err)
			}
		}
		return there+int(metric("shop_requests_in_flight")) >= crowdCustomers*len(b.items), nil
	})
	return cmp.Or(err, context.Cause(ctx))
}

// verdict compares the answers with the orders, each item by itself.
func (b *buying) verdict(ctx context.Context) (Verdict, error) {
	for _, item := range b.items {
		now, err := b.market.Store.Read(ctx, item.ID)
		if err != nil {
			return Verdict{}, err
		}
		orders, err := b.market.Store.ItemOrders(ctx, item.ID)
		if err != nil {
			return Verdict{}, err
		}
		b.orders += len(orders)
		var answers []load.Answer
		for _, a := range b.answers {
			if a.Order.ItemID == item.ID {
				answers = append(answers, a)
			}
		}
		if cause, said := compare(now.Stock, orders, answers); cause != "" {
			for _, shop := range b.market.shops {
				if why := shop.Panic(); cause == verdict.Crash && why != "" {
					said = words.Of("exercise.panic", "said", said, "panic", why)
					break
				}
			}
			return Verdict{Cause: cause, Said: words.Of("exercise.of-crowd", "crowd", b.text(), "said", said)}, nil
		}
	}
	return Verdict{}, ctx.Err()
}

func (m *market) countCommits(ctx context.Context) error {
	if _, err := m.Store.Pool().ExecContext(ctx, "SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'"); err != nil {
		return fmt.Errorf("have MySQL count commits: %w", err)
	}
	return nil
}

// commits is how many writing transactions MySQL has committed.
func (m *market) commits(ctx context.Context) (n int64, err error) {
	err = m.Store.Pool().QueryRowContext(ctx, "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rw_commits'").Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("ask MySQL for its count of commits: %w", err)
	}
	return n, nil
}

// compare is what is wrong with the answers of the customers of one item, of which so many units are
// left: what the orders and the stock show, and then the worst of the answers.
func compare(left int64, orders []stock.Order, answers []load.Answer) (cause verdict.Cause, said words.Text) {
	has := map[string][]count.Order{}
	var sold int64
	for _, o := range orders {
		has[o.RequestID] = append(has[o.RequestID], count.Order{ID: o.PublicID, Units: count.Units{o.ItemID: o.Quantity}})
		sold += o.Quantity
	}
	if sold > crowdUnits {
		return verdict.Cause(verdict.Oversold), words.Of("exercise.oversold", "sold", sold, "stock", crowdUnits)
	}
	rank := len(worst)
	for _, a := range answers {
		answered, _ := a.Sale() // of no order, where it was none
		p := count.Purchase{
			Wants: count.Units{a.Order.ItemID: int64(a.Order.Quantity)}, Orders: has[a.Order.RequestID],
			Answers: []count.Answer{{Outcome: a.Outcome, Order: answered.PublicID}},
		}
		if of, why := wrong(a, p.Facts(), left); of != "" && slices.Index(worst, of) < rank {
			rank, cause, said = slices.Index(worst, of), of, words.Of("exercise.customer", "who", a.Order.RequestID, "why", why)
		}
	}
	if sold+left != crowdUnits && rank > slices.Index(worst, verdict.Cause(verdict.Unbalanced)) {
		return verdict.Cause(verdict.Unbalanced), words.Of("exercise.unbalanced", "sold", sold, "left", left, "stock", crowdUnits)
	}
	return cause, said
}

// worst are the causes that a crowd can show, the worst first.
var worst = []verdict.Cause{verdict.SoldAgain, verdict.NoOrder, verdict.Denial, verdict.Cause(verdict.Unbalanced), verdict.Crash, verdict.TooSilent, verdict.TurnedAway, verdict.Unreturned}

// wrong is what is wrong with an answer, empty for nothing.
func wrong(a load.Answer, f verdict.Facts, left int64) (cause verdict.Cause, why words.Text) {
	wanted := a.Order.Quantity
	switch {
	case f.Twice > 0:
		return verdict.SoldAgain, words.Of("exercise.twice", "n", f.Twice+1)
	case f.Unordered > 0:
		return verdict.NoOrder, words.Of("exercise.no-order", "wanted", wanted, "sold", f.Sold)
	case errors.Is(a.Err, context.DeadlineExceeded):
		return verdict.TooSilent, words.Of("exercise.no-answer", "time", crowdTimeout.String())
	case a.Err != nil:
		return verdict.Crash, words.Of("exercise.gone", "error", a.Err.Error())
	case f.Unanswered > 0:
		return verdict.Denial, words.Of("exercise.denied", "outcome", a.Outcome)
	case a.Outcome == load.Failed || a.Outcome == load.Refused:
		return verdict.Crash, words.Of("exercise.failed", "status", a.Status, "detail", a.Detail())
	case a.Outcome != load.Sold && a.Outcome != load.SoldOut:
		return verdict.TurnedAway, words.Of("exercise.turned-away", "outcome", a.Outcome, "detail", a.Detail())
	case a.Outcome == load.SoldOut && left >= int64(wanted):
		return verdict.Unreturned, words.Of("exercise.left", "wanted", wanted, "left", left)
	}
	return "", words.Text{}
}
