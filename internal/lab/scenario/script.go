package scenario

import (
	"context"
	"fmt"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// script is a play of a few customers of one strategy, line by line. After an error its methods do nothing.
type script struct {
	*trial.Show
	ctx context.Context
	err error
}

// few has the play of one strategy.
func few(play func(*script)) func(context.Context, *trial.Group) error {
	return func(ctx context.Context, g *trial.Group) error {
		s := &script{Show: g.Shows[0], ctx: ctx}
		play(s)
		return s.err
	}
}

// fail notes an error, if it is the first.
func (s *script) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *script) tell(line words.Text) {
	if s.err == nil {
		s.Tell(line)
	}
}

// ask sends what a new customer wants. It does not wait for the answer.
func (s *script) ask(w trial.Wish) *trial.Customer {
	if s.err != nil {
		return &trial.Customer{}
	}
	return s.Ask(s.ctx, w)
}

func (s *script) await(what string, is func() bool) {
	if s.err == nil {
		s.err = s.Await(s.ctx, what, func() (bool, error) { return is(), nil })
	}
}

// see is await, and a line of the story.
func (s *script) see(is func() bool, what words.Text) {
	s.await(what.String(), is)
	s.tell(what)
}

// release lets the sale of a customer go on that is held.
func (s *script) release(of *trial.Customer) {
	if s.err == nil {
		s.Release(s.ctx, of)
	}
}

// keptOut reports whether a customer is answered, or waits for others.
func (s *script) keptOut(of *trial.Customer) bool { return of.Answered() || s.KeptOut(s.ctx, of) }

// arrived reports whether a sale is held at its point, was answered before it, or is kept out.
func (s *script) arrived(of *trial.Customer) func() bool {
	return func() bool { return s.Reached(of) || s.keptOut(of) }
}

// concluded waits for the answers of customers and tells them.
func (s *script) concluded(all ...*trial.Customer) {
	for _, of := range all {
		s.await("the answer to "+of.Name(), of.Answered)
		s.tell(words.Of("story.answered", "who", of.Name(), "outcome", of.Got()))
	}
}

// met fails where a sale was to be held and was sold without coming to its point.
func (s *script) met(all ...*trial.Customer) {
	for _, of := range all {
		if of.Got() == load.Sold && !s.Reached(of) {
			s.fail(fmt.Errorf("%w: %s was answered with %s", trial.ErrPassedBy, of.Name(), of.Got()))
		}
	}
}
