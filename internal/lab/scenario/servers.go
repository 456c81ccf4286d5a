package scenario

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// servers is a play at the servers of a database, line by line. After an error its methods do nothing.
type servers struct {
	*trial.Group
	ctx context.Context
	err error
}

func (p *servers) do(all ...func(context.Context) error) {
	for _, what := range all {
		if p.err == nil {
			p.err = what(p.ctx)
		}
	}
}

// each does something for every strategy, several at a time.
func (p *servers) each(do func(context.Context, *trial.Show) error) {
	p.do(func(ctx context.Context) error { return p.Each(ctx, do) })
}

// note adds to the records of all cells what a server did or met.
func (p *servers) note(server int, what string, f explain.Facts) {
	if p.err == nil {
		p.Note(server, what, f)
	}
}

func (p *servers) kill(node int) {
	p.do(func(context.Context) error { return p.Database.Nodes[node].Kill() })
	p.note(node, explain.IsKilled, explain.Facts{})
}

// sold sells so many units of each strategy, which every server has then.
func (p *servers) sold(units int) {
	p.each(func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, units) })
	p.do(p.Database.Copied)
}

// The shops to which the customers of the cells are sent.
func ownShop(cell int) (shop int)  { return cell }
func nextShop(cell int) (shop int) { return cell + 1 }

// oneEach sends a customer of each strategy to a shop, who wants one unit.
func (p *servers) oneEach(shop func(cell int) int) (all []*trial.Customer) {
	for i, s := range p.Shows {
		if p.err == nil {
			all = append(all, s.Ask(p.ctx, trial.Wish{Shop: shop(i) % len(p.Shops)}))
		}
	}
	return all
}

// answered fails the cells whose customer has another answer, or none, than it must have.
func (p *servers) answered(all []*trial.Customer, what string, is func(of declared.Strategy, got load.Outcome) bool) {
	for i, c := range all {
		if s := p.Shows[i]; p.err == nil && !is(s.Of, c.Got()) {
			s.Fail(fmt.Errorf("%w: %s, and the customer was answered with %s", trial.ErrNotSeen, what, c.Got()))
		}
	}
}

// reads has a customer of a strategy come to a shop, whose sale is held when it has read, and records where it has.
func (p *servers) reads(s *trial.Show, shop int) (b *trial.Customer) {
	p.do(func(ctx context.Context) error {
		b = s.Ask(ctx, heldAtRead(shop))
		err := p.Await(ctx, s.Of.Name+": the sale has read or is answered", func() (bool, error) { return s.Reached(b) || b.Answered(), nil })
		if err == nil && s.Reached(b) {
			err = s.HasRead(ctx, b)
		}
		return err
	})
	return b
}

// heldAtRead is what a customer of one unit posts whose sale is held when it has read, with the longest lease there is.
func heldAtRead(shop int) trial.Wish {
	return trial.Wish{Shop: shop, At: sale.Read, Action: labmode.Hold, Lease: labmode.MaxDuration}
}

// finish lets the sales of customers go on, one of each strategy, and waits for their answers.
func (p *servers) finish(all []*trial.Customer) {
	for i, c := range all {
		if p.err == nil {
			p.Shows[i].Release(p.ctx, c)
			<-c.Done()
		}
	}
}
