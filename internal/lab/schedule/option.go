package schedule

// Option is one way in which a run can go on.
type Option struct {
	Choice  Choice
	Request Request // of a step
	// Retry says that the step repeats a try of a polled lock although nothing has happened since
	// that could let it succeed.
	Retry bool
	// RowHeld says that the step would wait for a row that another customer has written.
	RowHeld bool
}

// free says whether the step can go on and is worth it.
func (o Option) free() bool { return !o.Retry && !o.RowHeld }

// Next is the state of a run in which something has to be chosen.
type Next struct {
	Options []Option // the customers' steps from A on, then the events
	// Past has everything that was chosen until now.
	Past Schedule
	// Requests counts what each customer has sent. Tries of a lock that somebody holds do not count
	// while time passes.
	Requests map[Customer]int
	// Why says of a choice that is not among the options why it cannot be.
	Why func(Choice) string

	entries int // of the record until now
}

// byDefault returns the index of the step that runs where a schedule says nothing: customer by
// customer to the end. It is -1 where time has to pass first.
func (n Next) byDefault() int {
	for i, o := range n.Options {
		if o.Choice.IsStep() && o.free() {
			return i
		}
	}
	return -1
}

// arriving says whether a customer has just come: an exploration has that only before a lease
// passes.
func (n Next) arriving() bool { return len(n.Past) > 0 && n.Past[len(n.Past)-1].Event == Arrive }

func (n Next) index(c Choice) int {
	for i, o := range n.Options {
		if o.Choice == c {
			return i
		}
	}
	return -1
}

// Chooser returns the index of the option with which a run goes on, or -1 to let time pass.
type Chooser func(Next) (int, error)
