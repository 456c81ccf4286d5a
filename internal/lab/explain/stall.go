package explain

import (
	"fmt"
)

// Stall names an ordinary sale that was longer inside than a lease lasts while no fault was at work on its shop:
// the machine was too slow for the lease, and how the cell ended says nothing about its strategy. It is empty where
// there is none.
func (e Evidence) Stall() string {
	faults := e.Faults()
	for _, s := range e.sections() {
		if s.Fault || !s.guarded() || s.leave().IsZero() || s.leave().Sub(s.enter()) <= e.Lease {
			continue
		}
		if !overlaps(faults, s) {
			return fmt.Sprintf("%s was inside for %s, longer than a lease, and nothing was done to it", s.name(), ms(s.leave().Sub(s.enter())))
		}
	}
	return ""
}

// overlaps says whether anything was done to the shop of a section while it lasted.
func overlaps(faults []Intervention, s *section) bool {
	for _, d := range faults {
		if (d.Shop == "" || d.Shop == s.Shop) && d.From.Before(s.leave()) && d.Until.After(s.enter()) {
			return true
		}
	}
	return false
}
