package strategy

import (
	"fmt"
	"strings"
)

// Description is what a strategy says of itself, in the form in which a shop prints it: see shop
// strategies --json. The lab knows the strategies of a shop from it.
type Description struct {
	Name          string   `json:"name"`
	Doc           string   `json:"doc"`
	Source        string   `json:"source"`
	Guard         string   `json:"guard"`
	Decrement     string   `json:"decrement"`
	Telling       string   `json:"telling"`
	Has           []string `json:"has"`
	NotApplicable []string `json:"not_applicable"`
	NeedsQuorum   bool     `json:"needs_quorum"`
	KeepsState    bool     `json:"keeps_state,omitempty"`   // besides the item's row
	AnswersFirst  bool     `json:"answers_first,omitempty"` // before the order is written
	Background    bool     `json:"background,omitempty"`    // goroutines beside the sales write its orders
}

// Describe returns the description of a strategy.
func (s Strategy) Describe() Description {
	return Description{
		Name: s.Name, Doc: s.Doc, Source: s.Source, Guard: s.Guard, Decrement: s.Decrement, Telling: s.Telling,
		Has: s.Properties.Has.names(), NotApplicable: s.Properties.NotApplicable.names(), NeedsQuorum: s.NeedsQuorum,
		KeepsState: s.State.Prepare != nil || s.State.Remaining != "", AnswersFirst: s.AnswersFirst, Background: s.Background,
	}
}

// Properties returns what the strategy declares. The error names a property that there is not.
func (d Description) Properties() (Properties, error) {
	has, err := propertiesNamed(d.Has)
	if err != nil {
		return Properties{}, fmt.Errorf("strategy %s: %w", d.Name, err)
	}
	not, err := propertiesNamed(d.NotApplicable)
	if err != nil {
		return Properties{}, fmt.Errorf("strategy %s: %w", d.Name, err)
	}
	return Properties{Has: has, NotApplicable: not}, nil
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

func propertiesNamed(names []string) (set Property, err error) {
	for _, name := range names {
		one := Property(0)
		for _, q := range properties {
			if q.name == name {
				one = q.Property
			}
		}
		if one == 0 {
			var all []string
			for _, q := range properties {
				all = append(all, q.name)
			}
			return 0, fmt.Errorf("no property %q: want one of %s", name, strings.Join(all, ", "))
		}
		set |= one
	}
	return set, nil
}
