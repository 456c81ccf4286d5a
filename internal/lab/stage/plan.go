package stage

import (
	"context"
	"errors"
	"slices"
	"strings"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/strategy/declared"
)

// Plan is what is played, and what may be chosen in it.
type Plan struct {
	Strategy  string
	Customers int
	// Baskets has each customer buy two items in one sale, the second customer in the opposite order. There
	// are enough units for all. A way that only sells baskets always does.
	Baskets bool
	// OneShop has all customers buy at one shop. Otherwise each has a shop of its own.
	OneShop bool
	// Events may happen, MaxEvents of them in one run. With InARow they follow each other, with no
	// step in between.
	Events    []schedule.Event
	MaxEvents int
	InARow    bool
	// LocalClock says that the strategy compares times of its process's clock: then it matters
	// whether a customer came before a lease passed, or after.
	LocalClock bool
	// Everything offers also what is pointless: it is for schedules that were written by hand, and
	// for showing that what is left out loses nothing.
	Everything bool
	// Observe looks at both servers after each step, and keeps what it saw.
	Observe bool
}

// LocalClock says whether a strategy goes by other times than those of keys in Redis, as far as it
// declares: by the clock of its process, or by times in rows of its own.
func LocalClock(of declared.Strategy) bool {
	return of.Standing(declared.ClockFree) == declared.Lacks || of.Standing(declared.LossAware) == declared.Has || of.State.Scattered() || of.Lease.Kept == declared.LeaseInMySQL
}

// Inapplicable says why an event says nothing about a strategy, and nothing where it does.
func Inapplicable(of declared.Strategy, e schedule.Event) string {
	breaksRedis := e == schedule.FlushAll || e == schedule.Failover
	switch {
	case e.AtTheWire():
		return "it is an event of a described service"
	case of.NeedsEtcd && (breaksRedis || e == schedule.Forget):
		return "its lock is in etcd, which keeps on disk what it has acknowledged"
	case of.NeedsQuorum && breaksRedis:
		return "its lock is not on the server that this breaks"
	case of.State.Scattered() && e == schedule.Cut:
		return "its holds are in MySQL, which this does nothing to"
	case of.Lease.Kept == declared.LeaseInMySQL && e == schedule.Cut:
		return "its lease is in MySQL, which this does nothing to"
	}
	return ""
}

// Unplayable says why schedules of a strategy cannot be played, and nothing where they can.
func Unplayable(of declared.Strategy) string {
	switch {
	case of.ByChance:
		return "it draws lots, and a schedule has to end alike each time"
	case len(of.State.Locks) > 0 && !strings.Contains(of.State.Locks[0], "%s"):
		return "its lock is one for all items, and runs side by side would wait for each other"
	case of.Background:
		return "goroutines beside the sales write its orders, and a schedule has the requests of the sales"
	}
	return ""
}

// Option is one way in which a run can go on.
type Option struct {
	Choice  schedule.Choice
	Touches []schedule.Touch // what it touches if it is chosen now
	// Retry says that the step repeats a try of a polled lock although nothing has happened since
	// that could let it succeed.
	Retry bool
	// RowHeld says that the step would wait for what another customer's connection holds in MySQL, and
	// do nothing before that is free.
	RowHeld bool
}

// free says whether the step can go on and is worth it.
func (o Option) free() bool { return o.Choice.IsStep() && !o.Retry && !o.RowHeld }

// Next is the state of a run in which something has to be chosen.
type Next struct {
	Options []Option // the customers' steps from A on, then the events
	// Past has everything that was chosen until now.
	Past schedule.Schedule
	// Requests counts what each customer has sent. Tries of a lock that somebody holds do not count
	// while time passes.
	Requests map[schedule.Customer]int
	// Why says of a choice that is not among the options why it cannot be.
	Why func(schedule.Choice) string

	entries int // of the record until now
	oneShop bool
}

// Chooser returns the index of the option with which a run goes on, or [LetTimePass].
type Chooser func(Next) (int, error)

// LetTimePass in place of an option waits until somebody can go on.
const LetTimePass = -1

// ByDefault returns the index of the step that runs where a schedule says nothing: customer by
// customer to the end. Where time has to pass first, it returns LetTimePass.
func (n Next) ByDefault() int { return slices.IndexFunc(n.Options, Option.free) }

// Arriving says whether a customer has just come: an exploration has that only before a lease
// passes.
func (n Next) Arriving() bool { return !n.oneShop && arriving(n.Past) }

func arriving(past schedule.Schedule) bool {
	return len(past) > 0 && past[len(past)-1].Event == schedule.Arrive
}

// Index returns the index of the option with a choice, -1 for none.
func (n Next) Index(c schedule.Choice) int {
	return slices.IndexFunc(n.Options, func(o Option) bool { return o.Choice == c })
}

// Switches says whether an option is a step of another customer although the last one could go on.
func (n Next) Switches(o Option) bool {
	if !o.Choice.IsStep() {
		return false
	}
	for _, before := range slices.Backward(n.Past) {
		if before.IsStep() {
			return before.Customer != o.Choice.Customer && slices.ContainsFunc(n.Options, func(other Option) bool {
				return other.free() && other.Choice.Customer == before.Customer
			})
		}
	}
	return false
}

// cannotError is an order of steps that cannot be.
type cannotError string

func (e cannotError) Error() string { return string(e) }

func (cannotError) Is(target error) bool { return target == ErrCannot }

// ErrCannot is in the chain of an error about a schedule whose order of steps cannot be.
var ErrCannot = errors.New("the schedule cannot be played")

// Follow plays a schedule, and after it customer by customer to the end.
func Follow(s schedule.Schedule) Chooser {
	left := s
	return func(next Next) (int, error) {
		i := next.ByDefault()
		if len(left) == 0 {
			return i, nil
		}
		if listed := next.Index(left[0]); listed >= 0 {
			left = left[1:]
			return listed, nil
		}
		if i == LetTimePass {
			return i, nil // before the listed step is there
		}
		return 0, cannotError(next.Why(left[0]))
	}
}

// PlaySchedule plays a schedule with its own events, and looks at both servers after each step.
func (s *Stage) PlaySchedule(ctx context.Context, strategy string, customers int, order schedule.Schedule) (schedule.Record, error) {
	return s.playSchedule(ctx, Plan{Strategy: strategy, Customers: customers}, order)
}

// OneShop is a stage on which all customers buy at one shop.
type OneShop struct{ *Stage }

// PlaySchedule plays a schedule as [Stage.PlaySchedule] does.
func (s OneShop) PlaySchedule(ctx context.Context, strategy string, customers int, order schedule.Schedule) (schedule.Record, error) {
	return s.playSchedule(ctx, Plan{Strategy: strategy, Customers: customers, OneShop: true}, order)
}

// Baskets is a stage on which each customer buys two items.
type Baskets struct{ *Stage }

// PlaySchedule plays a schedule as [Stage.PlaySchedule] does.
func (s Baskets) PlaySchedule(ctx context.Context, strategy string, customers int, order schedule.Schedule) (schedule.Record, error) {
	return s.playSchedule(ctx, Plan{Strategy: strategy, Customers: customers, Baskets: true}, order)
}

// Position is as [Stage.Position].
func (s Baskets) Position(ctx context.Context, strategy string, customers int, order schedule.Schedule) (Position, error) {
	return s.position(ctx, Plan{Strategy: strategy, Customers: customers, Baskets: true}, order)
}

func (s *Stage) playSchedule(ctx context.Context, p Plan, order schedule.Schedule) (schedule.Record, error) {
	return s.Play(ctx, p.Following(order), func() Chooser { return Follow(order) })
}

// Following returns the plan of a run that follows a schedule, and looks at everything.
func (p Plan) Following(order schedule.Schedule) Plan {
	p.Events, p.MaxEvents, p.Everything, p.Observe = order.Events(), len(order), true, true
	return p
}

// Position is how things stand after the last entry of a schedule, and what can be done next.
type Position struct {
	schedule.Record
	Options []schedule.Choice
	Ended   bool // nothing can be chosen any more: the record has the outcome
}

// Position plays a schedule and what follows it, and returns how things stood in between. So no
// sale waits for whoever chooses the next step.
func (s *Stage) Position(ctx context.Context, strategy string, customers int, order schedule.Schedule) (Position, error) {
	return s.position(ctx, Plan{Strategy: strategy, Customers: customers}, order)
}

// Position is as [Stage.Position].
func (s OneShop) Position(ctx context.Context, strategy string, customers int, order schedule.Schedule) (Position, error) {
	return s.position(ctx, Plan{Strategy: strategy, Customers: customers, OneShop: true}, order)
}

func (s *Stage) position(ctx context.Context, p Plan, order schedule.Schedule) (Position, error) {
	var at Position
	events, following := order.Events(), append(schedule.Events(), schedule.DBFailover)
	if !kindFor(events).Alone {
		following = []schedule.Event{schedule.Wait, schedule.Lose, schedule.Forget} // those without shops of one's own
	}
	for _, e := range following {
		if !slices.Contains(events, e) {
			events = append(events, e)
		}
	}
	p.Events, p.MaxEvents, p.Everything, p.Observe = events, len(order)+1, true, true
	entries := 0
	record, err := s.Play(ctx, p, func() Chooser {
		play := Follow(order)
		at.Ended = true
		return func(next Next) (int, error) {
			if len(next.Past) == len(order) && at.Ended && next.ByDefault() != LetTimePass {
				at.Ended = false
				entries = next.entries
				at.Options = nil
				for _, o := range next.Options {
					at.Options = append(at.Options, o.Choice)
				}
			}
			return play(next)
		}
	})
	at.Record = record
	if !at.Ended {
		at.Entries = at.Entries[:entries]
	}
	return at, err
}
