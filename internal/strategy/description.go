package strategy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/sale"
)

// Description is what a strategy declares, in the form that shop strategies --json prints. The lab
// knows nothing else of the strategies of a shop.
type Description struct {
	Name      string `json:"name"`
	Doc       string `json:"doc"`
	Source    string `json:"source"`
	Guard     string `json:"guard"`
	Decrement string `json:"decrement"`
	Telling   string `json:"telling"`
	Properties
	WithOneProcess        Property `json:"with_one_process,omitempty"`
	WithSnapshotIsolation Property `json:"with_snapshot_isolation,omitempty"`
	Mixable               bool     `json:"mixable,omitempty"`
	// Baskets has what is declared of sales of several items, nil for a strategy that makes none.
	Baskets      *Properties `json:"baskets,omitempty"`
	OnlyBaskets  bool        `json:"only_baskets,omitempty"`
	Servers      Property    `json:"servers,omitempty"`
	NeedsQuorum  bool        `json:"needs_quorum,omitempty"`
	NeedsEtcd    bool        `json:"needs_etcd,omitempty"`
	NeedsCommand []string    `json:"needs_command,omitempty"`
	OwnClient    bool        `json:"own_client,omitempty"`
	// ShortestLease is in nanoseconds.
	ShortestLease time.Duration `json:"shortest_lease,omitempty"`
	AnswersFirst  bool          `json:"answers_first,omitempty"`
	ByChance      bool          `json:"by_chance,omitempty"`
	Background    bool          `json:"background,omitempty"`
	State         State         `json:"state,omitzero"`
	Lease         Lease         `json:"lease,omitzero"`
	WaitsInMySQL  bool          `json:"waits_in_mysql,omitempty"`
	// Points are those that a sale can pass, in the order in which it passes them first. None stands
	// for all. A sale that is not refused does not pass waiting. Points after answered are passed in
	// the background.
	Points []sale.Point `json:"points,omitempty"`

	Inapplicable map[string]string `json:"inapplicable,omitempty"`
}

// Describe returns the description of a strategy.
func (s Strategy) Describe() Description {
	return Description{
		Name: s.Name, Doc: s.Doc, Source: s.Source, Guard: s.Guard, Decrement: s.Decrement, Telling: s.Telling,
		Properties: s.declared(), WithOneProcess: s.WithOneProcess, WithSnapshotIsolation: s.WithSnapshotIsolation, Mixable: s.Mixable, Baskets: s.Baskets, OnlyBaskets: s.OnlyBaskets, Servers: s.Servers, NeedsQuorum: s.NeedsQuorum,
		NeedsEtcd: s.NeedsEtcd, NeedsCommand: s.NeedsCommand, OwnClient: s.OwnClient, ShortestLease: s.ShortestLease, AnswersFirst: s.AnswersFirst, ByChance: s.ByChance, Background: s.Background, State: s.State,
		Inapplicable: s.Inapplicable, Lease: s.lease(), WaitsInMySQL: s.WaitsInMySQL, Points: s.points(),
	}
}

// declared returns the properties with what follows from the strategy having no copy of the row.
func (s Strategy) declared() Properties {
	p := s.Properties
	if s.View == nil {
		p.NotApplicable |= FreshRead
	}
	return p
}

// Lease says where a server keeps the end of a lock. The zero value is a lock without a lease: only
// its release ends it, or the end of its holder's process or connection.
type Lease struct {
	Kept LeaseHome `json:"kept"`
	// Unit is the unit of a [LeaseInValue], in nanoseconds.
	Unit time.Duration `json:"unit,omitempty"`
	// Query is the SELECT of a [LeaseInMySQL]. Its one parameter is the item's id. It returns how many
	// milliseconds are left of the lease that ends first, by the clock of MySQL: less than 0 if it is
	// over, NULL if there is none.
	Query string `json:"query,omitempty"`
}

// LeaseHome is where the end of a lock is kept.
type LeaseHome string

const (
	NoLease       LeaseHome = ""
	LeaseInExpiry LeaseHome = "redis-expiry" // the expiry of the lock's keys: see State.Locks
	LeaseInValue  LeaseHome = "redis-value"  // the value of the lock's key: a time since 1970
	LeaseInEtcd   LeaseHome = "etcd"         // the lease of the first key below the lock's key
	LeaseInMySQL  LeaseHome = "mysql"        // a row
)

// lease derives the lease of a lock in etcd and of one without a lease. Any other lock has an expiry
// in Redis, if the strategy declares nothing else.
func (s Strategy) lease() Lease {
	switch {
	case s.Lease.Kept != NoLease:
		return s.Lease
	case s.Properties.NotApplicable.Includes(AtomicLease):
		return Lease{}
	case s.NeedsEtcd:
		return Lease{Kept: LeaseInEtcd}
	}
	return Lease{Kept: LeaseInExpiry}
}

// points derives the points of a sale from its guard, and from the times of its answer and its commit.
// Those of a page view come last.
func (s Strategy) points() []sale.Point {
	points := slices.Clone(sale.Points)
	move := func(moved, before sale.Point) {
		points = slices.DeleteFunc(points, func(p sale.Point) bool { return p == moved })
		points = slices.Insert(points, slices.Index(points, before), moved)
	}
	if s.AnswersFirst {
		move(sale.Answered, sale.Written)
	}
	if s.ReleasesFirst {
		move(sale.Written, sale.Answered)
	}
	if s.View != nil {
		points = append(points, sale.ViewPoints...)
	}
	unguarded := s.Guard == "nothing"
	return slices.DeleteFunc(points, func(p sale.Point) bool {
		switch p {
		case sale.Waiting: // nothing keeps out the sales of a strategy without any lock
			return s.WaitsInMySQL && s.WithoutRedis || unguarded && !s.Properties.Has.Includes(Exclusive)
		case sale.Acquiring, sale.Acquired, sale.Releasing, sale.Released:
			return unguarded
		}
		return false
	})
}

// Passes reports whether a sale of the strategy can pass a point.
func (d Description) Passes(p sale.Point) bool {
	return len(d.Points) == 0 || slices.Contains(d.Points, p)
}

// Counts reports whether the strategy counts the units of an item in Redis.
func (d Description) Counts() bool { return len(d.State.Keys) > 0 }

// ReleasesFirst reports whether a sale releases its lock before its order is committed.
func (d Description) ReleasesFirst() bool {
	written := slices.Index(d.Points, sale.Written)
	return slices.Contains(d.Points[:max(written, 0)], sale.Released)
}

// Describe returns the descriptions of strategies.
func Describe(all []Strategy) []Description {
	descriptions := make([]Description, len(all))
	for i, s := range all {
		descriptions[i] = s.Describe()
	}
	return descriptions
}

// AtPoints reports whether a sale is stepped through where it acquires and releases, and not at
// each request of its lock. Such a lock has a client of its own, or asks several servers at once.
func (d Description) AtPoints() bool { return d.OwnClient || d.NeedsQuorum }

// Everywhere returns the properties of sales of one item, with those that databases of several servers attack.
func (d Description) Everywhere() Properties {
	return Properties{Has: d.Has | d.Servers, NotApplicable: d.NotApplicable}
}

// Under returns the description with the properties that the strategy has under these options.
func (d Description) Under(o Options) Description {
	if o.OneProcess {
		d.Properties.Has |= d.WithOneProcess
	}
	if o.SnapshotIsolation {
		d.Properties.Has |= d.WithSnapshotIsolation
	}
	return d
}

// MarshalJSON writes the names of the properties in the set, as a list.
func (p Property) MarshalJSON() ([]byte, error) { return json.Marshal(p.names()) }

// UnmarshalJSON reads a list of names. The error lists all names.
func (p *Property) UnmarshalJSON(text []byte) error {
	var names []string
	if json.Unmarshal(text, &names) != nil {
		return errors.New("properties are to be a list of names")
	}
	*p = 0
	for _, name := range names {
		one, err := propertyNamed(name)
		if err != nil {
			return err
		}
		*p |= one
	}
	return nil
}

func (p Property) names() []string {
	names := []string{}
	for _, q := range everyProperty {
		if p.Includes(q.Property) {
			names = append(names, q.name)
		}
	}
	return names
}

func propertyNamed(name string) (Property, error) {
	var all []string
	for _, q := range everyProperty {
		if q.name == name {
			return q.Property, nil
		}
		all = append(all, q.name)
	}
	return 0, fmt.Errorf("no property %q: want one of %s", name, strings.Join(all, ", "))
}
