package schedule

import (
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/words"
)

// Event is something that happens between two steps.
type Event string

// The events. [Event.Doc] says what each does. All but wait, forget, lose and arrive need shops of
// one's own, because they stop or cut off a whole process or server. Lag and DBFailover need a primary and a
// replica of MySQL besides. Restart, Evict and Withhold are for a
// described service alone: see package step.
const (
	Wait     Event = "wait"
	Arrive   Event = "arrive"
	Pause    Event = "pause"
	Kill     Event = "kill"
	Cut      Event = "cut"
	Lose     Event = "lose"
	Forget   Event = "forget"
	Failover Event = "failover"
	FlushAll Event = "flushall"
	Lag      Event = "lag"
	// DBFailover is a failover of MySQL, and Failover one of Redis.
	DBFailover Event = "db-failover"
	Restart    Event = "restart"
	Evict      Event = "evict"
	Withhold   Event = "withhold"
)

type eventInfo struct {
	Event
	hitsOne bool // it is written with a customer
	alone   bool // it needs servers and shops that no other run uses
	proxied bool // and proxies before Redis, with a replica behind it
	paired  bool // and a primary and a replica of MySQL
	passes  bool // a lease passes
	forgets bool // Redis loses the lock
	wire    bool // it is for a described service, at the wire
	single  bool // it is in schedules that are written down, and no search tries it: each run would take seconds
	doc     string
}

// events lists all, in the order in which they are offered.
var events = []eventInfo{
	{Event: Wait, passes: true, doc: "one lease passes; renewals go on"},
	{Event: Arrive, hitsOne: true, doc: "a customer comes to its first step, and is held there; without it a customer comes when its first step is due"},
	{Event: Pause, hitsOne: true, alone: true, passes: true, doc: "the customer's shop is stopped with SIGSTOP while one lease passes"},
	{Event: Kill, hitsOne: true, alone: true, doc: "the customer's shop is killed with kill -9, and started again"},
	{Event: Cut, hitsOne: true, alone: true, proxied: true, passes: true, doc: "the customer's shop loses Redis silently, and one lease passes"},
	{Event: Lose, hitsOne: true, doc: "the customer's next request is carried out, and its answer is lost"},
	{Event: Forget, forgets: true, doc: "the keys of the item's lock vanish, as after a failover, a flush or an eviction"},
	{Event: Failover, forgets: true, alone: true, proxied: true, doc: "the primary of Redis dies, and a replica takes over that has nothing of this run"},
	{Event: FlushAll, forgets: true, alone: true, doc: "FLUSHALL on the Redis of this run"},
	{Event: Lag, alone: true, paired: true, doc: "the replica of MySQL applies nothing any more; sales read from it, outside of transactions"},
	{Event: DBFailover, alone: true, paired: true, single: true, doc: "the primary of MySQL dies, and a replica takes over that has nothing of this run"},
	{Event: Restart, forgets: true, alone: true, wire: true, doc: "Redis is killed and starts again without its data"},
	{Event: Evict, forgets: true, alone: true, wire: true, doc: "Redis runs out of memory and evicts what the sale keeps there"},
	{Event: Withhold, hitsOne: true, alone: true, passes: true, wire: true, doc: "the renewals of the customer's process are withheld while its lease passes"},
}

func eventNamed(name string) (eventInfo, bool) {
	i := slices.IndexFunc(events, func(e eventInfo) bool { return string(e.Event) == name })
	if i < 0 {
		return eventInfo{}, false
	}
	return events[i], true
}

func (e Event) info() eventInfo {
	info, _ := eventNamed(string(e))
	return info
}

// Doc says in one line what the event does.
func (e Event) Doc(in *words.Language) string { return in.Or("happens."+string(e), e.info().doc) }

// HitsOne says whether the event is written with a customer.
func (e Event) HitsOne() bool { return e.info().hitsOne }

// Passes says whether a lease passes during the event.
func (e Event) Passes() bool { return e.info().passes }

// Events returns all events that can be explored with the shops of this repository.
func Events() []Event {
	var all []Event
	for _, e := range events {
		if e.Event != Arrive && !e.wire && !e.single {
			all = append(all, e.Event)
		}
	}
	return all
}

// EventForms are the events as they are written in a schedule for the shops of this repository.
func EventForms() []string {
	var forms []string
	for _, e := range events {
		switch {
		case e.wire:
		case e.hitsOne:
			forms = append(forms, string(e.Event)+":A")
		default:
			forms = append(forms, string(e.Event))
		}
	}
	return forms
}

// AtTheWire says whether the event is for a described service alone.
func (e Event) AtTheWire() bool { return e.info().wire }

// Forgets says whether Redis loses the lock.
func (e Event) Forgets() bool { return e.info().forgets }

// Needs are what events have to have for themselves.
type Needs struct {
	Alone   bool // servers and shops that no other run uses
	Proxied bool // proxies before Redis, with a replica behind it
	Paired  bool // a primary and a replica of MySQL
}

// NeedsOf are those of some events.
func NeedsOf(events []Event) (n Needs) {
	for _, e := range events {
		info := e.info()
		n.Alone, n.Proxied, n.Paired = n.Alone || info.alone, n.Proxied || info.proxied, n.Paired || info.paired
	}
	return n
}

// usualEvents are the events that the word all stands for.
var usualEvents = []Event{Wait, Forget, Lose, Pause, Kill, Cut, Lag}

// ParseEvents reads names of events. The word all, which other names may stand beside, is most of them.
func ParseEvents(names []string) ([]Event, error) {
	var asked []Event
	for _, name := range names {
		named := []Event{Event(strings.TrimSpace(name))}
		if named[0] == "all" {
			named = usualEvents
		} else if !slices.Contains(Events(), named[0]) {
			var known []string
			for _, e := range Events() {
				known = append(known, string(e))
			}
			return nil, fmt.Errorf("no event %q: want some of %s, or all", named[0], strings.Join(known, ", "))
		}
		for _, e := range named {
			if !slices.Contains(asked, e) {
				asked = append(asked, e)
			}
		}
	}
	return asked, nil
}
