package declared

import "strings"

// Property is an effect that a strategy can have: what it survives, not how. A Property value can
// also be a set of them.
//
// A new one is its constant and its line in properties. Each strategy of package ladder declares
// that it has it, or that it does not apply; it lacks what it does not declare. A scenario attacks
// it (see package scenario for its places), an entry of schedule's attacks where schedules of sales
// can decide it, and words/zh.json says in Chinese what it means.
type Property uint32

// The properties of sales of one item. What each means is in properties.
const (
	Exclusive Property = 1 << iota
	Recovers
	AtomicLease
	Renews
	OwnerChecked
	AtomicRelease
	Reentrant
	ClockFree
	LossAware
	SurvivesDataLoss
	PauseProof
	StorageChecked
	DurableAnswers
	FreshRead
	Once
)

// The properties of sales of several items, which [Strategy].Baskets declares. A scenario of baskets
// attacks each.
const (
	Crossable Property = 1 << (16 + iota)
	AddsUp
	Isolated
	Whole
	FreesLocks
	OvertakeProof
	Unstarved
	Complete
)

// The properties that a database of several servers attacks: see [Strategy].Servers. A scenario of a topology attacks each.
const (
	ReadsSource Property = 1 << (24 + iota)
	WritesAnywhere
	RewindProof
	SwitchoverProof

	// EveryServer is all of them.
	EveryServer = ReadsSource | WritesAnywhere | RewindProof | SwitchoverProof
)

// The properties of reservations, which [Strategy].Reservations declares. A scenario of reservations attacks each.
const (
	CountsUnits Property = 1 << (28 + iota)
	StaysEnded
	StaysConfirmed
	PaysOnce

	// EveryReservation is all of them.
	EveryReservation = CountsUnits | StaysEnded | StaysConfirmed | PaysOnce
)

// Unchecked are the properties that StorageChecked cannot stand in for: without them, a sale goes wrong
// that nobody has overtaken.
const Unchecked = Exclusive | FreshRead | Once | ReadsSource

// property is a single property with its words.
type property struct {
	Property
	name, doc string
}

// properties has all, in the order of the tables.
var properties = []property{
	{Exclusive, "exclusive", "one holder at a time across processes, when nothing goes wrong"},
	{Recovers, "recovers", "a dead holder's lock frees itself"},
	{AtomicLease, "atomic-lease", "no moment between taking the lock and giving it an expiry"},
	{Renews, "renews", "work that outlasts the lease keeps the lock"},
	{OwnerChecked, "owner-checked", "a release frees only one's own lock"},
	{AtomicRelease, "atomic-release", "the owner check and the delete cannot be split"},
	{Reentrant, "reentrant", "a holder can take its own lock again"},
	{ClockFree, "clock-free", "no comparison of two machines' clocks"},
	{LossAware, "loss-aware", "a holder that cannot renew stops before its lease can end elsewhere"},
	{SurvivesDataLoss, "survives-data-loss", "what one Redis server forgets, or never told its replica, oversells nothing"},
	{PauseProof, "pause-proof", "a holder paused past its lease cannot overwrite what came after"},
	{StorageChecked, "storage-checked", "the database itself refuses an overtaken holder"},
	{DurableAnswers, "durable-answers", "an order is durable in the database before it is answered as sold"},
	{FreshRead, "fresh-read", "what decides a sale is what the database has, not an older copy"}, // applies where sales or page views go by a copy
	{Once, "once", "a purchase makes one order, also when the answer to its COMMIT is lost"},

	{Crossable, "crossable", "of two baskets with the same items in opposite orders, both are sold"},
	{AddsUp, "adds-up", "lines of the same item are checked together"},
	{Isolated, "isolated", "nobody is refused for units that another basket has for a moment"},
	{Whole, "whole", "an order has all its lines or takes nothing, also if its process dies between two lines"},
	{FreesLocks, "frees-locks", "the locks of a process that dies between two of them free themselves"},
	{OvertakeProof, "overtake-proof", "a basket whose first lock ends before its last is acquired overwrites nothing"},
	{Unstarved, "unstarved", "a basket of many items is sold while others buy one of them each"},
	{Complete, "complete", "no order stands with a part of its lines"},

	{ReadsSource, "reads-source", "no sale is decided by a read that a late replica may answer"},
	{WritesAnywhere, "writes-anywhere", "shops may sell through several servers that certify each other's writes"},
	{RewindProof, "rewind-proof", "a sale that has read before a failover writes nothing after it that rests on that"},
	{SwitchoverProof, "switchover-proof", "a sale that has read on a replaced primary writes nothing on the new one that rests on that"},

	{CountsUnits, "counts-units", "no unit that is held for one customer is held or sold for another"},
	{StaysEnded, "stays-ended", "what was released or has expired is never confirmed, however late its payment comes"},
	{StaysConfirmed, "stays-confirmed", "no release, notice or sweep changes what is confirmed"},
	{PaysOnce, "pays-once", "a reservation takes one payment, and a payment pays for one reservation"},
}

// AllProperties lists the single properties of all strategies in the order of the tables.
func AllProperties() []Property { return single(Crossable - 1) }

// BasketProperties lists the single properties of sales of several items.
func BasketProperties() []Property { return single(ReadsSource - Crossable) }

// TopologyProperties lists the single properties that a database of several servers attacks.
func TopologyProperties() []Property { return single(EveryServer) }

// ReservationProperties lists the single properties of reservations.
func ReservationProperties() []Property { return single(EveryReservation) }

// single lists the properties in a set. The difference of two groups' first ones is the set of all bits between them.
func single(of Property) (all []Property) {
	for _, p := range properties {
		if of.Includes(p.Property) {
			all = append(all, p.Property)
		}
	}
	return all
}

// Includes reports whether the set p includes all of q.
func (p Property) Includes(q Property) bool { return p&q == q }

// String names the properties in the set.
func (p Property) String() string {
	return strings.Join(p.names(), ", ")
}

// Doc says in one line what a single property means.
func (p Property) Doc() string {
	for _, q := range properties {
		if q.Property == p {
			return q.doc
		}
	}
	return ""
}

// Properties are what a strategy declares: the properties that it has, and those that do not apply
// to it, for example because it has no lease. It lacks all others. Exclusive applies to every
// strategy.
type Properties struct {
	Has           Property `json:"has"`
	NotApplicable Property `json:"not_applicable"`
}

// Standing is what a strategy declares of one property.
type Standing string

const (
	Has           Standing = "has"
	Lacks         Standing = "lacks"
	NotApplicable Standing = "does not apply"
)

// Standing returns what is declared of a single property.
func (p Properties) Standing(of Property) Standing {
	switch {
	case p.Has.Includes(of):
		return Has
	case p.NotApplicable.Includes(of):
		return NotApplicable
	}
	return Lacks
}

// Meets reports whether the strategy lacks none of these properties. An attack on a property that
// does not apply finds nothing to attack.
func (p Properties) Meets(all Property) bool { return (p.Has | p.NotApplicable).Includes(all) }
