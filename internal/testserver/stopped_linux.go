package testserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// awaitGroup returns when each thread of a process group is in one of some states, or gone: a process whose first thread has
// stopped may still send something.
func awaitGroup(group int, states string) error {
	for limit := time.Now().Add(stopPatience); ; time.Sleep(time.Millisecond) {
		all, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(path string) bool {
			if _, of := stateOf(path); of != strconv.Itoa(group) {
				return false
			}
			threads, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "task/*/stat"))
			return slices.ContainsFunc(threads, func(path string) bool {
				state, _ := stateOf(path)
				return !strings.Contains(states, state)
			})
		}) {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("testserver: process group %d goes on", group)
		}
	}
}

// stateOf returns the state of a process or thread, and its process group. Both are empty where it is gone.
func stateOf(path string) (state, group string) {
	stat, _ := os.ReadFile(path)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, process group
	if len(fields) < 3 {
		return "", ""
	}
	return fields[0], fields[2]
}

// Stopped says whether the process is stopped now, by whomever.
func (p *Process) Stopped() bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}

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
