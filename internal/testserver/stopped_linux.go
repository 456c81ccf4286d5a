package testserver

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// awaitStopped returns when a child is stopped, or has ended. It leaves what it learns to whoever waits for the end.
func awaitStopped(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil || errors.Is(err, unix.ECHILD):
			return nil
		default:
			return fmt.Errorf("testserver: wait until process %d is stopped: %w", pid, err)
		}
	}
}
