package rig

import (
	"context"

	"stocklock/internal/testserver"
)

// Pair is a primary and a replica of MySQL. The link is between the two.
type Pair struct {
	*testserver.MySQLPair
	Link *Proxy
}

// MySQLPair starts a pair with a link. It overrides what the options say of the way between the servers.
func (r *Rig) MySQLPair(ctx context.Context, o testserver.PairOptions) (_ *Pair, err error) {
	p := &Pair{}
	o.Through = func(addr string) (string, error) {
		link, err := r.Proxy(addr)
		if err != nil {
			return "", err
		}
		p.Link = link
		return link.Addr, nil
	}
	p.MySQLPair, err = r.Group.MySQLPair(ctx, o)
	return p, err
}

// FailOver kills the primary, and has the replica take over with what it has received.
func (p *Pair) FailOver(ctx context.Context) error {
	if err := p.Primary.Kill(); err != nil {
		return err
	}
	return p.Replica.Promote(ctx)
}

// Renew makes the replica that has taken over the primary, and gives it a replica.
func (p *Pair) Renew(ctx context.Context) error {
	p.Link.Heal()
	if err := p.Link.Lead(p.Replica.Addr); err != nil {
		return err
	}
	return p.MySQLPair.Renew(ctx, p.Link.Addr)
}
