package step

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
)

// slot is a place in which one run after the other is played: the shops of the customers, and the servers behind them.
// Runs that stop nothing share one. A pool has it so many times.
type slot struct {
	*rig.Testbed
	name     string
	lease    time.Duration // of every lock
	wait     time.Duration // of a sale for its lock
	database *database

	starting   sync.WaitGroup // shops that were killed
	failedOver bool           // the primary has died: it becomes the replica before the next run

	mu        sync.Mutex // guards rehearsed; held for as long as a rehearsal or a restart takes
	rehearsed map[rehearsal]bool
}

func testbedOf(shop string) string { return shop[:max(strings.LastIndexByte(shop, '-'), 0)] }

// revive starts each shop again that does not run: one that has ended by itself, or that did not come
// back after it was killed.
func (l *slot) revive(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, shop := range l.Shops {
		if shop.Alive() {
			continue
		}
		if err := shop.Restart(ctx); err != nil {
			return err
		}
	}
	return nil
}

// dead names the shops that have ended, with their last words. Without any it is empty.
func (l *slot) dead() string {
	var said []string
	for _, shop := range l.Shops {
		if !shop.Alive() {
			log := shop.LogTail()
			said = append(said, fmt.Sprintf("%s has ended: %s", shop.Name, cmp.Or(shop.Panic(), log[strings.LastIndexByte(log, '\n')+1:])))
		}
	}
	return strings.Join(said, "; ")
}

// leasesToWait is how many leases a sale waits for its lock, unless customers cross.
const leasesToWait = 3

// wait is how long a sale waits for its lock.
func (k slotKind) wait() time.Duration {
	if k.crossing {
		return k.lease / 3
	}
	return leasesToWait * k.lease
}

// oneLease is long enough for a lease to end.
func (l *slot) oneLease() time.Duration { return l.lease + l.lease/5 + 10*time.Millisecond }

// patience is how long time is let pass where nobody can go on.
func (l *slot) patience() time.Duration { return (leasesToWait + 4) * l.lease }

// buy is one customer: it sends an order of one unit of each item, and returns the outcome as the customer
// sees it.
func (l *slot) buy(ctx context.Context, shop string, items []uint64, by, id string) string {
	ctx, cancel := context.WithTimeout(ctx, leasesToWait*l.lease+labmode.StepTime+20*time.Second)
	defer cancel()
	return answerOf(load.Send(ctx, load.Order{
		Shop: shop, ItemID: items[0], More: items[1:], AsPosted: len(items) > 1, Quantity: 1, RequestID: id, Strategy: by,
	}))
}
