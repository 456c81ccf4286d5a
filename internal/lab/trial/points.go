package trial

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"sync"

	"stocklock/internal/shop/labmode"
)

// Points has the points that the sales of a cell have passed, as the traces of the shops say. It is safe for
// concurrent use.
type Points struct {
	following sync.WaitGroup
	mu        sync.Mutex
	events    []labmode.Event
}

// FollowPoints reads the traces of the shops, as they grow, until ctx ends. It keeps what the wanted runs have.
func FollowPoints(ctx context.Context, shops []Shop, wanted func(run string) bool) *Points {
	p := &Points{}
	for _, shop := range shops {
		file, err := os.Open(shop.Trace)
		if err != nil {
			continue // without a trace nothing is seen, and the cell is invalid
		}
		if _, err := file.Seek(0, io.SeekEnd); err != nil {
			file.Close()
			continue
		}
		p.following.Go(func() {
			defer file.Close()
			FollowTrace(ctx, file, func(line []byte) { p.add(line, wanted) })
		})
	}
	return p
}

func (p *Points) add(line []byte, wanted func(run string) bool) {
	var e labmode.Event
	if json.Unmarshal(line, &e) == nil && wanted(e.Run) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events = append(p.events, e)
	}
}

// Wait waits until no trace is read any more: the context has ended.
func (p *Points) Wait() { p.following.Wait() }

// Count returns how many of the points are so.
func (p *Points) Count(is func(labmode.Event) bool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if is(e) {
			n++
		}
	}
	return n
}
