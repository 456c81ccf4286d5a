package scenario

import (
	"context"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// failOver sells, keeps the copies behind, sells more, kills the primary, has another server take over, and
// sells what is left. Every strategy has a customer on the way when the primary dies, and one who comes when
// nobody answers.
func failOver(p *servers) {
	p.sold(2)
	takeOver := p.cutOff()
	waiting := p.oneEach(ownShop)
	p.awaitAll(waiting)
	p.answered(waiting, "the primary is lost with a sale", func(_ declared.Strategy, got load.Outcome) bool { return got == "" || got == load.Sold })
	if p.Database.Link != nil {
		p.do(p.remember)
	}
	p.kill(0)
	during := p.oneEach(nextShop)
	p.finish(waiting)
	p.finish(during)
	takeOver()
	p.do(p.ShopsReady)
}

// awaitAll waits until each of these customers has an answer, or has a transaction that waits for the replica.
func (p *servers) awaitAll(all []*trial.Customer) {
	so := func() (bool, error) {
		unanswered := 0
		for _, b := range all {
			if !b.Answered() {
				unanswered++
			}
		}
		if unanswered == 0 || p.Scenario.Topology.Waits != testserver.Forever {
			return unanswered == 0, nil
		}
		commits, err := p.Database.Nodes[0].WaitingCommits(p.ctx)
		if err != nil {
			return false, err
		}
		for i, b := range all {
			if b.Answered() && p.Shows[i].Of.AnswersFirst {
				commits-- // it may be the order of that one
			}
		}
		return commits >= unanswered, nil
	}
	p.do(func(ctx context.Context) error {
		return p.Await(ctx, "every customer is answered or waits for the replica", so)
	})
}

// cutOff keeps what is committed from now on from the server that is going to take over, as far as the topology
// lets it. It returns how that takes over from a dead primary.
func (p *servers) cutOff() (takeOver func()) {
	if len(p.Database.Nodes) == 1 {
		return func() {
			p.note(0, explain.IsRestarted, explain.Facts{})
			p.do(p.Database.Nodes[0].Restart)
		}
	}
	if p.Database.Galera {
		var release func() error
		p.do(func(ctx context.Context) (err error) {
			release, err = p.Database.Nodes[1].HoldApplying(ctx)
			return err
		})
		p.note(1, explain.IsBehind, explain.Facts{})
		return func() {
			p.do(func(context.Context) error { return release() })
			p.restGoesOn()
		}
	}
	p.do(func(context.Context) error { return p.Database.Link.Cut() })
	p.note(1, explain.IsCut, explain.Facts{})
	return func() {
		p.promote()
		p.leadAll(1)
	}
}

// restGoesOn waits until the nodes without the first are a cluster, and leads the shops there.
func (p *servers) restGoesOn() {
	rest := len(p.Database.Nodes) - 1
	p.do(func(ctx context.Context) error { return p.Database.Nodes[1].AwaitMembers(ctx, rest) })
	p.note(1, explain.HasMembers, explain.Facts{Count: rest})
	p.leadAll(1)
}

// promote makes the replica the primary, with what it has received.
func (p *servers) promote() {
	p.do(func(ctx context.Context) error {
		next := p.Database.Nodes[1]
		was, err := next.Replication(ctx)
		if err == nil {
			err = next.Promote(ctx)
		}
		if err == nil {
			p.Note(1, explain.IsPromoted, explain.Facts{GTIDs: was.Received})
		}
		return err
	})
}

// leadAll leads all shops to a server, whose orders count from now on.
func (p *servers) leadAll(node int) {
	p.do(func(context.Context) error {
		p.Database.Lead(node)
		return p.TookOver(node, explain.IsFound)
	})
}

// silent has the replica silent, and a customer of each strategy come. When all of them wait for it, the replica
// is heard again, and they are answered. Nothing fails over.
func silent(p *servers) {
	p.sold(2)
	p.cutOff()
	waiting := p.oneEach(ownShop)
	p.awaitAll(waiting)
	p.do(p.remember)
	p.answered(waiting, "a sale waits for the replica", func(of declared.Strategy, got load.Outcome) bool { return of.AnswersFirst || got == "" })
	p.do(func(context.Context) error {
		p.Database.Link.Heal()
		return nil
	})
	p.note(1, explain.ReceivesAgain, explain.Facts{})
	p.finish(waiting)
	p.do(p.Database.Copied)
}

// isolated cuts the node off that all shops write to. A customer of each strategy comes then, and one when the node
// knows that it is alone. It refuses both, and the other nodes go on.
func isolated(p *servers) {
	p.sold(2)
	node := p.Database.Nodes[0]
	p.do(node.Isolate)
	p.note(0, explain.IsIsolated, explain.Facts{})
	waiting := p.oneEach(ownShop)
	p.do(node.AwaitNotReady)
	p.note(0, explain.IsNotReady, explain.Facts{})
	refused := p.oneEach(nextShop)
	p.finish(waiting)
	p.finish(refused)
	p.answered(refused, "the node is alone and refuses sales", func(of declared.Strategy, got load.Outcome) bool { return of.AnswersFirst || got != load.Sold })
	p.restGoesOn()
	p.do(p.ShopsReady)
}

// lastShop is the one that is led to the primary which comes back.
const lastShop = topology.Shops - 1

// errant is [failOver]. Then the old primary comes back with its disk, and with transactions that nobody else has.
// It takes itself for the primary, and a shop is led to it. A customer of each strategy comes to that shop.
func errant(p *servers) {
	failOver(p)
	// What is to be written of the sales before is written on the new primary first. On the old one, a worker would find
	// the order of a sale whose answer it never got, and take it for written.
	p.each(settle)
	old, primary := p.Database.Nodes[0], p.Database.Nodes[1]
	lead := func(node int, addr string) {
		p.Database.Fronts[lastShop].Lead(addr)
		p.Note(node, explain.IsFound, explain.Facts{Shop: explain.ShopName(lastShop)})
	}
	p.do(old.Restart, func(ctx context.Context) error {
		p.CameBack(0)
		committed, err := old.Committed(ctx)
		if err != nil {
			return err
		}
		p.Note(0, explain.HasCommitted, explain.Facts{GTIDs: committed})
		lead(0, old.Addr)
		return nil
	})
	misled := p.oneEach(func(int) int { return lastShop })
	p.awaitAll(misled)
	p.do(func(context.Context) error {
		lead(1, primary.Addr)
		return nil
	})
	p.finish(misled)
	p.kill(0)
	p.do(p.ShopsReady)
}
