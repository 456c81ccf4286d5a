package trial

import (
	"math"
	"strings"
	"testing"

	"stocklock/internal/lab/audit"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

// TestNoLeaseEndsAfterwards: customers who come one after another have the lease of the crowd, which no stall outlasts.
func TestNoLeaseEndsAfterwards(t *testing.T) {
	s := attackOf(Options{}).Show
	s.Shops, s.customers, s.Scenario.Crowd = []Shop{{}}, newCustomers(1, "", wishes{}), Play{At: sale.Read}
	s.Of.Lease.Kept = declared.LeaseInExpiry
	a := newAttack(s)
	a.alone(t.Context(), 0, wish{quantity: 1})
	if lease := s.customers.first().lease; lease != LongLease {
		t.Errorf("its lease is %s, want %s", lease, LongLease)
	}
}

// TestARestockFitsItsColumns: also that of a run whose id is as long as one can be.
func TestARestockFitsItsColumns(t *testing.T) {
	by := restocker(audit.Run{ID: strings.Repeat("x", audit.MaxID), ItemID: math.MaxUint64})
	if len(by.IdempotencyKey) > audit.MaxID || len(by.RequestID) > audit.MaxID {
		t.Errorf("%+v is longer than %d", by, audit.MaxID)
	}
}
