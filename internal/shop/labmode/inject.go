package labmode

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// ResumeCommand is the hidden subcommand of the shop that ends a stop, "resume PID DURATION": it
// calls [Resume].
const ResumeCommand = "resume"

// Inject does what the fault says, in the calling goroutine. Kill does not return. Stop returns an
// error, without stopping, when the process that would end the stop could not be started.
func (f Fault) Inject() error {
	switch f.Action {
	case Sleep:
		// It ignores cancellation on purpose: it stands for work that does not look at its context.
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
	// In a process group of its own it survives a signal to ours.
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

// Resume sends SIGCONT to pid after d. It does so only while pid is its parent: by then the number
// may belong to another process.
func Resume(pid int, d time.Duration) error {
	time.Sleep(d)
	if os.Getppid() != pid {
		return fmt.Errorf("resume: process %d is gone", pid)
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
