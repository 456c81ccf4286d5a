package trial

import (
	"math"
	"strings"
	"testing"

	"stocklock/internal/lab/audit"
)

// TestARestockFitsItsColumns: also that of a run whose id is as long as one can be.
func TestARestockFitsItsColumns(t *testing.T) {
	by := restocker(audit.Run{ID: strings.Repeat("x", audit.MaxID), ItemID: math.MaxUint64})
	if len(by.IdempotencyKey) > audit.MaxID || len(by.RequestID) > audit.MaxID {
		t.Errorf("%+v is longer than %d", by, audit.MaxID)
	}
}
