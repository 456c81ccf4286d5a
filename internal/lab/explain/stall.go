package explain

import (
	"fmt"

	"stocklock/internal/lab/words"
)

// Stall names a sale for which the machine was too slow, so that how the cell ended says nothing about
// its strategy: an ordinary one that was inside for longer than a lease while no fault was active on its
// shop. It is empty where there is no such sale.
func (e Evidence) Stall() string {
	sections := e.sections()
	faults := e.periodsOf(sections)
	for _, s := range sections {
		if s.enter().IsZero() || s.leave().IsZero() {
			continue
		}
		inside := s.leave().Sub(s.enter())
		if s.Fault || !s.guarded() || inside <= s.Lease || overlaps(faults, s) {
			continue
		}
		return fmt.Sprintf("%s on %s was inside for %s, longer than a lease, and nothing was done to it", label(s.ID), s.Shop, words.Milliseconds(inside))
	}
	return ""
}

// overlaps says whether anything was done to the shop of a section while it lasted.
func overlaps(faults []Period, s *section) bool {
	for _, d := range faults {
		if (d.Shop == "" || d.Shop == s.Shop) && d.From.Before(s.leave()) && d.Until.After(s.enter()) {
			return true
		}
	}
	return false
}
