package measure

import (
	"syscall"
	"time"
)

// sleepUntil is more accurate than time.Sleep, which wakes an idle process up to a millisecond
// late.
func sleepUntil(due time.Time) {
	for left := time.Until(due); left > 0; left = time.Until(due) {
		t := syscall.NsecToTimespec(left.Nanoseconds())
		syscall.Nanosleep(&t, nil)
	}
}
