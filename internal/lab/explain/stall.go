package explain

import (
	"fmt"
	"slices"

	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
)

// Stall names a sale for which the machine was too slow, so that how the cell ended says nothing about
// its strategy: one that was inside for longer than its lease, which was not to end, while no fault was active on its
// shop. That another sale is held there does nothing to it. It is empty where there is no such sale.
func (e Evidence) Stall() string {
	sections := e.sections()
	faults := e.periodsOf(slices.DeleteFunc(slices.Clone(sections), func(s *section) bool { return s.fault.Action == labmode.Hold }))
	for _, s := range sections {
		since := s.enter()
		if e.heldInMySQL() { // it reads when it has reserved
			since = s.Sent
		}
		if s.enter().IsZero() || s.leave().IsZero() {
			continue
		}
		inside := s.leave().Sub(since)
		if s.Fault || !s.guarded() && !e.heldInMySQL() || inside <= s.Lease || overlaps(faults, s) {
			continue
		}
		return fmt.Sprintf("%s on %s was inside for %s, longer than its lease, which was not to end", Label(s.ID), s.Shop, words.Milliseconds(inside))
	}
	return ""
}

// overlaps says whether anything was done to the shop of a section while it lasted.
func overlaps(faults []Period, s *section) bool {
	return slices.ContainsFunc(faults, func(d Period) bool {
		return (d.Shop == "" || d.Shop == s.Shop) && d.From.Before(s.leave()) && d.Until.After(s.enter())
	})
}
