package labmode

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// ResumeCommand is the hidden subcommand with which a process's own executable
// is started to end a stop: "resume PID DURATION". Its main must call [Resume].
const ResumeCommand = "resume"

// Strike does what the fault says, in the calling goroutine. Kill does not
// return. Stop returns an error, without stopping, when nobody could be started
// who would end it.
func (f Fault) Strike() error {
	switch f.Action {
	case Sleep:
		// Deliberately deaf to cancellation: the fault stands for work that
		// does not look at its context.
		time.Sleep(f.For)
	case Kill:
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case Stop:
		return f.stop()
	}
	return nil
}

func (f Fault) stop() error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	resumer := exec.Command(exe, ResumeCommand, strconv.Itoa(os.Getpid()), f.For.String())
	// A group of its own: who stops or ends our group must still leave someone to resume us.
	resumer.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := resumer.Start(); err != nil {
		return fmt.Errorf("stop: start the process that resumes: %w", err)
	}
	err = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	if waitErr := resumer.Wait(); err == nil {
		err = waitErr
	}
	return err
}

// Resume sends SIGCONT to its parent, which must be pid, after d: so that a
// number that meanwhile belongs to another process is never signalled.
func Resume(pid int, d time.Duration) error {
	time.Sleep(d)
	if os.Getppid() != pid {
		return fmt.Errorf("resume: process %d is gone", pid)
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
