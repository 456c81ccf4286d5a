//go:build !linux

package testserver

import (
	"bytes"
	"os/exec"
	"strconv"
)

// Stopped says whether the process is stopped now, by whomever.
func (p *Process) Stopped() bool {
	state, _ := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(p.PID())).Output()
	return bytes.HasPrefix(state, []byte("T"))
}

// awaitStopped and awaitGroup do nothing: a signal takes effect soon, and no portable call says when.
func awaitStopped(int) error { return nil }

func awaitGroup(int, string) error { return nil }
