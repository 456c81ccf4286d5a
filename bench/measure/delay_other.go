//go:build !linux

package measure

import "time"

func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }
