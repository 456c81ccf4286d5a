package shop

import (
	"errors"
	"sync"

	"stocklock/internal/strategy"
)

// sellers has one seller a strategy, built when it is first asked for. Sales by
// one strategy must share a seller, because some guards queue inside the process.
type sellers struct {
	deps strategy.Deps

	mu     sync.Mutex
	byName map[string]*strategy.Seller // guarded by mu
}

func newSellers(first strategy.Strategy, deps strategy.Deps) *sellers {
	s := &sellers{deps: deps, byName: map[string]*strategy.Seller{}}
	s.get(first)
	return s
}

func (s *sellers) get(by strategy.Strategy) *strategy.Seller {
	s.mu.Lock()
	defer s.mu.Unlock()
	seller := s.byName[by.Name]
	if seller == nil {
		seller = strategy.New(by, s.deps)
		s.byName[by.Name] = seller
	}
	return seller
}

// close frees all locks that are still held. No sale may begin any more.
func (s *sellers) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, seller := range s.byName {
		errs = append(errs, seller.Close())
	}
	return errors.Join(errs...)
}
