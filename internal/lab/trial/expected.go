package trial

import (
	"cmp"
	"math/bits"
	"slices"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// Demand is what a strategy must have to hold, and the verdict on one without it.
type Demand struct {
	Property  declared.Property
	Otherwise verdict.Kind
	// Counted is the verdict on a strategy that counts the units in Redis, if that is another: a dead or lost
	// sale has a part of the count then, and not a lock.
	Counted verdict.Kind
	// Durable demands of the topology, in place of a property, that a commit which was answered survives its primary.
	Durable bool
}

// durable is the fact of a topology that decides like a property.
const durable = "durable-commits"

// standing says whether a strategy meets the demand, and what decides that.
func (s Scenario) standing(d Demand, p declared.Properties) (met bool, because Decisive) {
	if d.Durable {
		if s.Topology.Durable {
			return true, Decisive{durable, declared.Has}
		}
		return false, Decisive{durable, declared.Lacks}
	}
	return p.Meets(d.Property), Decisive{d.Property.String(), p.Standing(d.Property)}
}

// Expectation is the verdict that follows from a strategy's properties, and from which of them.
type Expectation struct {
	Verdict verdict.Kind
	Because Decisive
}

// properties are those of a strategy that count: of its baskets, of its reservations, of its sales, or of those on several servers.
func (s Scenario) properties(of declared.Strategy) declared.Properties {
	switch {
	case s.OfBaskets() && of.Baskets != nil:
		return *of.Baskets
	case s.OfReservations() && of.Reservations != nil:
		return *of.Reservations
	case s.Topology != nil:
		return of.Everywhere()
	}
	return of.Properties
}

// Expected returns what to expect of a strategy: the first demand that its properties do not meet
// decides. A database that refuses an overtaken holder prevents every oversell of one item on one server, except where
// nobody was overtaken: see [declared.Unchecked].
func (s Scenario) Expected(of declared.Strategy) Expectation {
	p, demands := s.properties(of), s.Demands
	if of.Inapplicable[s.Name] != "" || s.Misses(of) != "" || s.OfBaskets() && p.Standing(s.Attacks) == declared.NotApplicable {
		return Expectation{verdict.Inapplicable, Decisive{s.Attacks.String(), declared.NotApplicable}}
	}
	if demands == nil {
		demands = []Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: s.Attacks, Otherwise: verdict.Oversold}}
	}
	for _, d := range demands {
		if d.Counted != "" && of.Counts() {
			d.Otherwise = d.Counted
		}
		met, because := s.standing(d, p)
		prevented := s.Group == OneServer && d.Otherwise == verdict.Oversold && !declared.Unchecked.Includes(d.Property) && p.Meets(declared.StorageChecked)
		switch {
		case met || d.Otherwise == verdict.Held:
		case prevented:
			return Expectation{verdict.Held, Decisive{declared.StorageChecked.String(), declared.Has}}
		default:
			return Expectation{d.Otherwise, because}
		}
	}
	_, because := s.standing(Demand{Property: s.Attacks, Durable: s.Attacks == 0}, p)
	return Expectation{verdict.Held, because}
}

// Decisive is the property that decides what is expected of a cell, and what the strategy declares
// of it.
type Decisive struct {
	Property string            `json:"property"`
	Standing declared.Standing `json:"standing"`
}

// Short is "has NAME", "lacks NAME" or "NAME does not apply", and the name alone where nothing is declared of it.
func (d Decisive) Short() words.Text {
	if d.Standing == "" {
		return words.AsItStands(d.Property)
	}
	return words.Of("standing."+string(d.Standing), "property", d.Property)
}

// String is Short in English.
func (d Decisive) String() string { return d.Short().String() }

// Text is the same with what the property is.
func (d Decisive) Text() words.Text {
	switch d.Standing {
	case declared.Has:
		return words.Of("has", "property", d.Property)
	case declared.Lacks:
		return words.Of("lacks", "property", d.Property)
	case declared.NotApplicable:
		return words.Of("does.not.apply", "property", d.Property)
	}
	return words.AsItStands(d.Property)
}

// WouldHold names those of a shop's strategies that are fit for production and expected to hold under the
// scenario. The nearest to another one comes first: it differs from that in the fewest properties.
func (s Scenario) WouldHold(other declared.Strategy, offered []declared.Strategy) []string {
	var holding []declared.Strategy
	for _, of := range offered {
		if of.Production && of.Name != other.Name && s.Expected(of).Verdict == verdict.Held {
			holding = append(holding, of)
		}
	}
	differs := func(of declared.Strategy) int {
		return bits.OnesCount32(uint32(of.Has ^ other.Has))
	}
	slices.SortStableFunc(holding, func(a, b declared.Strategy) int { return cmp.Compare(differs(a), differs(b)) })
	var names []string
	for _, of := range holding {
		names = append(names, of.Name)
	}
	return names
}
