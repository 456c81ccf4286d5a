package strategy

import "strings"

// Property is something that a strategy can have, by effect: what survives, not
// how. A Property value can also be a set of them.
type Property uint16

const (
	// Exclusive: one holder at a time across processes, when nothing goes wrong.
	Exclusive Property = 1 << iota
	// Recovers: a dead holder's lock frees itself.
	Recovers
	// AtomicLease: no moment between taking the lock and giving it an expiry.
	AtomicLease
	// Renews: work that outlasts the lease keeps the lock.
	Renews
	// OwnerChecked: a release frees only one's own lock.
	OwnerChecked
	// AtomicRelease: the owner check and the delete cannot be split.
	AtomicRelease
	// Reentrant: a holder can take its own lock again.
	Reentrant
	// ClockFree: no comparison of two machines' clocks.
	ClockFree
	// LossAware: a holder that cannot renew stops before its lease can end elsewhere.
	LossAware
	// SurvivesFailover: losing one Redis with unreplicated writes admits no second holder.
	SurvivesFailover
	// PauseProof: a holder stopped past its lease cannot overwrite what came after.
	PauseProof
	// StorageChecked: the database itself refuses whoever was overtaken.
	StorageChecked
)

// properties lists all in the order of the tables.
var properties = []struct {
	Property
	name, doc string
}{
	{Exclusive, "exclusive", "one holder at a time across processes, when nothing goes wrong"},
	{Recovers, "recovers", "a dead holder's lock frees itself"},
	{AtomicLease, "atomic-lease", "no moment between taking the lock and giving it an expiry"},
	{Renews, "renews", "work that outlasts the lease keeps the lock"},
	{OwnerChecked, "owner-checked", "a release frees only one's own lock"},
	{AtomicRelease, "atomic-release", "the owner check and the delete cannot be split"},
	{Reentrant, "reentrant", "a holder can take its own lock again"},
	{ClockFree, "clock-free", "no comparison of two machines' clocks"},
	{LossAware, "loss-aware", "a holder that cannot renew stops before its lease can end elsewhere"},
	{SurvivesFailover, "survives-failover", "losing one Redis with unreplicated writes admits no second holder"},
	{PauseProof, "pause-proof", "a holder stopped past its lease cannot overwrite what came after"},
	{StorageChecked, "storage-checked", "the database itself refuses whoever was overtaken"},
}

// Properties lists the single properties in the order of the tables.
func Properties() []Property {
	all := make([]Property, len(properties))
	for i, p := range properties {
		all[i] = p.Property
	}
	return all
}

// Has says whether the set p includes all of q.
func (p Property) Has(q Property) bool { return p&q == q }

// String names the properties in the set.
func (p Property) String() string {
	var names []string
	for _, q := range properties {
		if p.Has(q.Property) {
			names = append(names, q.name)
		}
	}
	return strings.Join(names, ", ")
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
