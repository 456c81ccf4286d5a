package explore_test

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
)

// counter is counted up by two customers: each gets it, and sets one more.
type counter struct {
	value int
	got   map[schedule.Customer]int
	made  map[schedule.Customer]int // steps
}

func (c *counter) Next(context.Context) (next explore.Next, ended bool, err error) {
	for _, who := range schedule.Customers(2) {
		touch := schedule.Touch{Thing: "counter", Does: schedule.Reads}
		step := "get"
		switch c.made[who] {
		case 1:
			touch.Does, step = schedule.Writes, "set"
		case 2:
			continue
		}
		next.Options = append(next.Options, explore.Option{Choice: schedule.Choice{Customer: who, Step: step}, Touches: []schedule.Touch{touch}})
	}
	return next, len(next.Options) == 0, nil
}

func (c *counter) Take(_ context.Context, next explore.Next, option int) error {
	choice := next.Options[option].Choice
	if choice.Step == "get" {
		c.got[choice.Customer] = c.value
	} else {
		c.value = c.got[choice.Customer] + 1
	}
	c.made[choice.Customer]++
	return nil
}

// Pass is never called: nobody waits for anybody.
func (c *counter) Pass(context.Context, explore.Next) error { return nil }

func (c *counter) Record(context.Context) (schedule.Record, error) {
	r := schedule.Record{Customers: 2, Outcome: schedule.Outcome{Verdict: verdict.Held}}
	if c.value != 2 {
		r.Outcome.Verdict, r.Outcome.Cause = verdict.Unbalanced, "lost-update"
	}
	return r, nil
}

func count(ctx context.Context, choose func() explore.Chooser) (schedule.Record, error) {
	return explore.Play(ctx, &counter{got: map[schedule.Customer]int{}, made: map[schedule.Customer]int{}}, choose())
}

// The search plays each order of four steps but for those that differ only in independent ones, finds those in which
// an update is lost, and says what it takes at least.
func Example() {
	ctx := context.Background()
	found, err := explore.Explore(ctx, count, explore.Search{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = explore.Confirm(ctx, func(ctx context.Context, _ string, _ int, order schedule.Schedule) (schedule.Record, error) {
		return count(ctx, func() explore.Chooser { return explore.Follow(order) })
	}, &found)
	fmt.Println(found.Runs, "orders,", found.Bad, "bad:", found.Causes(), found.Shortest[0].Schedule, err)
	// Output: 4 orders, 2 bad: [lost-update] A.get B.get <nil>
}
