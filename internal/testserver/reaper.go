package testserver

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// reaper makes sure that everything ends with this process, however it ends.
//
// All processes of a group are in one process group, whose first member does
// nothing but wait. A shell, in a session of its own so that no Ctrl-C reaches
// it, reads from a pipe that only this process holds open. At its end, which the
// kernel brings about whatever happens to us, the shell kills the group,
// stopped members included, and removes the folder.
type reaper struct {
	anchor    *exec.Cmd
	shell     *exec.Cmd
	lifelines []io.Closer
}

const (
	waitForEnd = `while read -r _; do :; done`
	reap       = waitForEnd + `
kill -s KILL -- "-$2" 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" 2>/dev/null && break; sleep 0.2; done`
)

func startReaper(dir string) (*reaper, error) {
	r := &reaper{}
	r.anchor = exec.Command("/bin/sh", "-c", waitForEnd)
	r.anchor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.start(r.anchor); err != nil {
		return nil, err
	}
	r.shell = exec.Command("/bin/sh", "-c", reap, "stocklock-reaper", dir, strconv.Itoa(r.group()))
	r.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := r.start(r.shell); err != nil {
		r.finish()
		return nil, err
	}
	return r, nil
}

func (r *reaper) start(cmd *exec.Cmd) error {
	cmd.Env = []string{"PATH=/usr/bin:/bin"} // for rm, whatever our own says
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start the reaper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the reaper: %w", err)
	}
	r.lifelines = append(r.lifelines, lifeline)
	return nil
}

// group is the process group that every process of the group joins.
func (r *reaper) group() int { return r.anchor.Process.Pid }

// finish lets the reaper do its work now, and waits for it.
func (r *reaper) finish() error {
	// The shell first, while the anchor still keeps the group's number from being
	// given to anybody else.
	for i := len(r.lifelines) - 1; i >= 0; i-- {
		r.lifelines[i].Close()
		if i == 1 {
			if err := r.shell.Wait(); err != nil {
				return fmt.Errorf("testserver: remove what is left: %w", err)
			}
		}
	}
	r.anchor.Wait() // it was killed with its group: not an error
	return nil
}

// RandomHex returns n random bytes as hexadecimal digits.
func RandomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// ended says whether done closes within d.
func ended(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}
