package soak

import (
	"testing"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/strategy/declared"
)

// TestAnswersAreKeptForRecoveriesAlone: a measurement has thousands a second, and nobody reads them.
func TestAnswersAreKeptForRecoveriesAlone(t *testing.T) {
	for _, endless := range []bool{true, false} {
		sold := &items{strategies: []declared.Strategy{{}}, all: []audit.Run{{ItemID: 7}}, inTurn: true}
		c := newCustomers(1, []*rig.TestbedShop{{Shop: &rig.Shop{}}}, []*items{sold})
		c.endless = endless
		order, _ := c.next()
		if c.answered(load.Answer{Order: order, Outcome: load.Busy}); len(c.answers) > 0 != endless {
			t.Errorf("customers of a soak of faults: %t, %d answers are kept", endless, len(c.answers))
		}
	}
}
