package strategy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
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
	WithOneProcess Property `json:"with_one_process,omitempty"`
	Mixable        bool     `json:"mixable,omitempty"`
	NeedsQuorum    bool     `json:"needs_quorum,omitempty"`
	NeedsEtcd      bool     `json:"needs_etcd,omitempty"`
	OwnClient      bool     `json:"own_client,omitempty"`
	// ShortestLease is in nanoseconds.
	ShortestLease time.Duration `json:"shortest_lease,omitempty"`
	AnswersFirst  bool          `json:"answers_first,omitempty"`
	ByChance      bool          `json:"by_chance,omitempty"`
	Background    bool          `json:"background,omitempty"`
	State         State         `json:"state,omitzero"`

	Inapplicable map[string]string `json:"inapplicable,omitempty"`
}

// Describe returns the description of a strategy.
func (s Strategy) Describe() Description {
	return Description{
		Name: s.Name, Doc: s.Doc, Source: s.Source, Guard: s.Guard, Decrement: s.Decrement, Telling: s.Telling,
		Properties: s.Properties, WithOneProcess: s.WithOneProcess, Mixable: s.Mixable, NeedsQuorum: s.NeedsQuorum,
		NeedsEtcd: s.NeedsEtcd, OwnClient: s.OwnClient, ShortestLease: s.ShortestLease, AnswersFirst: s.AnswersFirst, ByChance: s.ByChance, Background: s.Background, State: s.State,
		Inapplicable: s.Inapplicable,
	}
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

// PropertiesUnder returns the properties of the strategy under these options.
func (d Description) PropertiesUnder(o Options) Properties {
	p := d.Properties
	if o.OneProcess {
		p.Has |= d.WithOneProcess
	}
	return p
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
	for _, q := range properties {
		if p.Includes(q.Property) {
			names = append(names, q.name)
		}
	}
	return names
}

func propertyNamed(name string) (Property, error) {
	var all []string
	for _, q := range properties {
		if q.name == name {
			return q.Property, nil
		}
		all = append(all, q.name)
	}
	return 0, fmt.Errorf("no property %q: want one of %s", name, strings.Join(all, ", "))
}
