package testserver

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// reaper makes sure that everything ends with this process, however it ends.
//
// All processes of a group are in one process group, or in one of their own. Its first member, the anchor, does
// nothing but wait. A shell reads from a pipe that only this process holds open, and is told there of each process
// group before anything is in it. It is in a session of its own, so that no Ctrl-C reaches it. The kernel ends the
// pipe whatever happens to us. Then the shell kills the groups, stopped members included, and removes the folder.
type reaper struct {
	all   *anchor // of all processes that have no group of their own
	shell *anchor
}

// anchor is a process that waits until this one lets it go, or ends.
type anchor struct {
	*exec.Cmd
	lifeline io.WriteCloser
}

const (
	waitForEnd = `while read -r _; do :; done`
	reap       = `groups=
while read -r what group; do
	others=
	for each in $groups; do [ "$each" = "$group" ] || others="$others $each"; done
	groups=$others
	[ "$what" = forget ] || groups="$groups $group"
done
for each in $groups; do kill -s KILL -- "-$each" 2>/dev/null; done
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" 2>/dev/null && break; sleep 0.2; done
[ ! -e "$1" ]`
)

func startReaper(dir string) (*reaper, error) {
	r := &reaper{}
	var err error
	if r.shell, err = startAnchor(&syscall.SysProcAttr{Setsid: true}, reap, dir); err != nil {
		return nil, err
	}
	if r.all, err = r.apart(); err != nil {
		return nil, errors.Join(err, r.finish())
	}
	return r, nil
}

func startAnchor(attr *syscall.SysProcAttr, script, dir string) (*anchor, error) {
	a := &anchor{Cmd: exec.Command("/bin/sh", "-c", script, "stocklock-reaper", dir)}
	a.SysProcAttr = attr
	a.Env = []string{"PATH=/usr/bin:/bin:" + os.Getenv("PATH")} // for rm, whatever our own says
	var err error
	if a.lifeline, err = a.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	if err := a.Start(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	return a, nil
}

// apart makes a process group. Its number is nobody else's until the anchor is let go.
func (r *reaper) apart() (*anchor, error) {
	a, err := startAnchor(&syscall.SysProcAttr{Setpgid: true}, waitForEnd, "")
	if err == nil {
		_, err = fmt.Fprintf(r.shell.lifeline, "add %d\n", a.Process.Pid)
	}
	return a, err
}

// letGo gives up a process group whose members have ended.
func (r *reaper) letGo(a *anchor) error {
	_, err := fmt.Fprintf(r.shell.lifeline, "forget %d\n", a.Process.Pid)
	a.end()
	return err
}

func (a *anchor) end() {
	a.lifeline.Close()
	a.Wait() // it may have been killed with its group: not an error
}

// group is the process group that every process of the group joins, unless it is apart.
func (r *reaper) group() int { return r.all.Process.Pid }

// finish lets the reaper do its work now, and waits for it.
func (r *reaper) finish() error {
	r.shell.lifeline.Close() // while the anchors still keep their groups' numbers from being given to anybody else
	err := r.shell.Wait()
	if r.all != nil {
		r.all.end()
	}
	if err != nil {
		return fmt.Errorf("testserver: remove what is left: %w", err)
	}
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
