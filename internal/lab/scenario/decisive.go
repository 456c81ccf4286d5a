package scenario

import (
	"encoding/json"
	"strings"

	"stocklock/internal/strategy"
)

// Decisive is the property that decides what is expected of a cell, and what the strategy declares
// of it.
type Decisive struct {
	Property string            `json:"property"`
	Standing strategy.Standing `json:"standing"`
}

// String returns "has NAME", "lacks NAME" or "NAME does not apply".
func (d Decisive) String() string {
	switch d.Standing {
	case "":
		return d.Property
	case strategy.NotApplicable:
		return d.Property + " " + string(d.Standing)
	default:
		return string(d.Standing) + " " + d.Property
	}
}

// UnmarshalJSON also reads the words that results of version 1 have.
func (d *Decisive) UnmarshalJSON(data []byte) error {
	*d = Decisive{}
	if len(data) == 0 || data[0] != '"' {
		type plain Decisive
		return json.Unmarshal(data, (*plain)(d))
	}
	if err := json.Unmarshal(data, &d.Property); err != nil {
		return err
	}
	for _, standing := range []strategy.Standing{strategy.Has, strategy.Lacks} {
		if name, ok := strings.CutPrefix(d.Property, string(standing)+" "); ok {
			*d = Decisive{name, standing}
		}
	}
	if name, ok := strings.CutSuffix(d.Property, " "+string(strategy.NotApplicable)); ok {
		*d = Decisive{name, strategy.NotApplicable}
	}
	return nil
}
