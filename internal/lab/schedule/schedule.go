// Package schedule has the words of schedules: the text that says in which order customers send their
// requests, the events between them, the record of a run, and the causes of failures.
//
// A [Schedule] is a text of steps and events, such as "A.set wait B.set". Package step plays one on
// real servers and returns a [Record]: the requests, the answers, and the state of the servers after
// each step. Package explore plays all of them. docs/schedules.md describes the three together.
//
// # Decisions
//
// The cause of a failure is concluded from the lock's key and the orders. After each request to
// Redis, the scheduler reads the lock's key. It concludes whose lock it was and what ended it, and
// finds the two orders that were made of the same stock. The strategy contributes nothing, so a new
// strategy needs no new rule.
//
// Held is said of what was seen to hold. schedule/decided.go has the rule for runs at the wire:
// whose answer counts, whose orders alone, and which places a part needs. Who comes after a broken
// server comes while the first customer is still held: one who comes when all have ended finds the
// item sold out, and shows nothing. The same customer never comes twice on the lab's account.
package schedule

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/verdict"
)

// Customer is one who buys in a schedule: A, B or C.
type Customer byte

// MaxCustomers is how many a schedule can have.
const MaxCustomers = 3

func (c Customer) String() string { return string(rune(c)) }

// Customers are the first n.
func Customers(n int) []Customer {
	all := make([]Customer, n)
	for i := range all {
		all[i] = Customer('A' + i)
	}
	return all
}

// Sales says what the customers of a schedule buy, and where. The zero value has each buy one unit at a shop of its own.
type Sales struct {
	// OneShop has all of them buy at one shop.
	OneShop bool `json:"one_shop,omitempty"`
	// Baskets has each buy two items in one sale, the second customer in the opposite order. There are enough units
	// for all.
	Baskets bool `json:"baskets,omitempty"`
	// Reservations has each but the last reserve and pay, and the last one sweep.
	Reservations bool `json:"reservations,omitempty"`
}

// Choice is one entry of a schedule: a step of a customer, or an event.
type Choice struct {
	Customer Customer // whose step it is or whom the event hits; 0 for an event that hits all
	Step     string   // such as set, or get2 for the second GET; empty for an event
	Event    Event    // empty for a step
}

// String gives the form that [Parse] reads: A.set2, wait, or pause:A. It is empty for the zero Choice.
func (c Choice) String() string {
	switch {
	case c == Choice{}:
		return ""
	case c.Event == "":
		return c.Customer.String() + "." + c.Step
	case c.Customer == 0:
		return string(c.Event)
	default:
		return string(c.Event) + ":" + c.Customer.String()
	}
}

// MarshalText gives the form of [Choice.String].
func (c Choice) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the form of [Choice.String].
func (c *Choice) UnmarshalText(text []byte) (err error) {
	if *c = (Choice{}); len(text) > 0 {
		*c, err = parseChoice(string(text))
	}
	return err
}

// IsStep says whether the choice is a step of a customer.
func (c Choice) IsStep() bool { return c.Event == "" }

// Schedule is an order of steps and events. Steps that it does not list run after it, one customer
// after the other.
type Schedule []Choice

// String gives the form that [Parse] reads.
func (s Schedule) String() string {
	words := make([]string, len(s))
	for i, c := range s {
		words[i] = c.String()
	}
	return strings.Join(words, " ")
}

// MarshalText gives the form of [Schedule.String].
func (s Schedule) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what [Parse] reads.
func (s *Schedule) UnmarshalText(text []byte) (err error) {
	*s, err = Parse(string(text))
	return err
}

// Customers is how many a schedule needs: as many as it names, and two at least.
func (s Schedule) Customers() int {
	n := 2
	for _, c := range s {
		if c.Customer != 0 {
			n = max(n, int(c.Customer-'A')+1)
		}
	}
	return n
}

// InOrder says whether A comes first, and C after B: customers are alike, and one of the schedules
// that differ only in their names is enough.
func (s Schedule) InOrder() bool {
	next := Customer('A')
	for _, c := range s {
		if c.Customer > next {
			return false
		}
		if c.Customer == next {
			next++
		}
	}
	return true
}

// Events are the different events of a schedule.
func (s Schedule) Events() []Event {
	var events []Event
	for _, c := range s {
		if c.Event != "" && !slices.Contains(events, c.Event) {
			events = append(events, c.Event)
		}
	}
	return events
}

// Behind is what comes before the first event, or the first step of another customer than A.
func (s Schedule) Behind() string {
	last := "the start"
	for _, c := range s {
		if !c.IsStep() || c.Customer != 'A' {
			break
		}
		last = c.String()
	}
	return last
}

// Has says whether a schedule has one of these events.
func (s Schedule) Has(events ...Event) bool {
	return slices.ContainsFunc(s, func(c Choice) bool { return !c.IsStep() && slices.Contains(events, c.Event) })
}

// Compare orders schedules by their events, then by how often their steps go from one customer to
// another, then by their length. It is negative if s is the shorter one.
func (s Schedule) Compare(other Schedule) int {
	events, changes := s.length()
	otherEvents, otherChanges := other.length()
	return cmp.Or(events-otherEvents, changes-otherChanges, len(s)-len(other))
}

// length counts events, and how often the steps go from one customer to another.
func (s Schedule) length() (events, changes int) {
	var last Customer
	for _, c := range s {
		switch {
		case !c.IsStep():
			events++
			continue
		case last != 0 && last != c.Customer:
			changes++
		}
		last = c.Customer
	}
	return events, changes
}

// Parse reads choices separated by white space. It does not check that the steps exist: playing the
// schedule does.
func Parse(text string) (Schedule, error) {
	var s Schedule
	for word := range strings.FieldsSeq(text) {
		c, err := parseChoice(word)
		if err != nil {
			return nil, err
		}
		s = append(s, c)
	}
	return s, nil
}

func parseChoice(word string) (Choice, error) {
	if name, step, isStep := strings.Cut(word, "."); isStep {
		customer, err := parseCustomer(word, name)
		if err != nil {
			return Choice{}, err
		}
		if !IsStepName(step) {
			return Choice{}, fmt.Errorf("%q is no step: want a customer and a command, such as A.set or A.get2", word)
		}
		return Choice{Customer: customer, Step: step}, nil
	}
	name, whom, hasWhom := strings.Cut(word, ":")
	event, ok := eventNamed(name)
	switch {
	case !ok:
		return Choice{}, fmt.Errorf("%q is neither a step, such as A.set, nor an event: want one of %s", word, strings.Join(EventForms(), ", "))
	case event.hitsOne && !hasWhom:
		return Choice{}, fmt.Errorf("%s hits one customer: want %s:A", name, name)
	case !event.hitsOne && hasWhom:
		return Choice{}, fmt.Errorf("%q: %s hits no single customer: want %s", word, name, name)
	case !hasWhom:
		return Choice{Event: event.Event}, nil
	}
	customer, err := parseCustomer(word, whom)
	return Choice{Event: event.Event, Customer: customer}, err
}

func parseCustomer(word, name string) (Customer, error) {
	all := Customers(MaxCustomers)
	for _, c := range all {
		if name == c.String() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("%q: there is no customer %q: want %s to %s", word, name, all[0], all[len(all)-1])
}

// IsStepName says whether a step can be called so.
func IsStepName(s string) bool {
	return s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// StepName is the name of a customer's nth step with this command, counted from 1.
func StepName(command string, n int) string {
	if n == 1 {
		return command
	}
	return command + strconv.Itoa(n)
}

//go:embed kept.txt
var keptText string

// Kept is a bad schedule that an exploration has found, the shortest for its cause.
type Kept struct {
	Strategy string
	Verdict  verdict.Kind
	Cause    verdict.Cause
	Schedule Schedule
}

// KeptSchedules returns the schedules that this repository keeps.
func KeptSchedules() (all []Kept) {
	for line := range strings.Lines(keptText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 4 {
			panic(fmt.Sprintf("a kept schedule is %q: want a verdict, a cause, a strategy and a schedule", line))
		}
		s, err := Parse(strings.Join(words[3:], " "))
		if err != nil {
			panic(err) // it is part of the program
		}
		all = append(all, Kept{Strategy: words[2], Verdict: verdict.Kind(words[0]), Cause: verdict.Cause(words[1]), Schedule: s})
	}
	return all
}
