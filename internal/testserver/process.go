package testserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Program says how a process is started.
type Program struct {
	Name string   // what the process is called in errors
	Args []string // the program's path first
	Env  []string // NAME=value, added to this process's environment
	Dir  string   // what the process prints is appended to the file log there
	Cwd  string   // the working directory, empty for Dir
	// Apart gives the process a process group of its own: what it starts is paused, and ends, with it.
	Apart bool
	// Ready returns nil once the process does its work. It is called every 20 ms while the process
	// starts.
	Ready func(context.Context) error
}

// Process is one server. It can be paused, killed and started again, at the same address and with
// the same data. Its methods are safe for concurrent use; Program must not change while one of them
// runs.
type Process struct {
	Program
	reaper *reaper

	mu     sync.Mutex // guards the rest
	cmd    *exec.Cmd
	apart  *anchor       // of its own process group, nil where it has none
	exited chan struct{} // closed when cmd has ended
}

const (
	startPatience = 60 * time.Second
	stopPatience  = 15 * time.Second
	readyInterval = 20 * time.Millisecond
)

// Launch starts p, waits until it is ready and hands it to the group.
func (g *Group) Launch(ctx context.Context, p *Process) error {
	p.reaper = g.reaper
	if err := p.start(ctx); err != nil {
		return err
	}
	if err := g.OnClose(p.end); err != nil {
		return errors.Join(err, p.end())
	}
	return nil
}

// Run runs a program that does something and ends. Its own children end with the group, if not
// before.
func (g *Group) Run(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.reaper.group()}
	cmd.WaitDelay = cmp.Or(cmd.WaitDelay, time.Second) // for children that outlive it and keep its output open
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	return nil
}

func (p *Process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("testserver: start %s: %w", p.Name, err)
	}
	defer log.Close() // the process has its own by then
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Dir = cmp.Or(p.Cwd, p.Dir)
	cmd.Stdout, cmd.Stderr = log, log
	group, apart := p.reaper.group(), (*anchor)(nil)
	if p.Apart {
		if apart, err = p.reaper.apart(); err != nil {
			return fmt.Errorf("testserver: start %s: %w", p.Name, err)
		}
		group = apart.Process.Pid
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	if err := cmd.Start(); err != nil {
		if apart != nil {
			err = errors.Join(err, p.reaper.letGo(apart))
		}
		return fmt.Errorf("testserver: start %s: %w", p.Name, err)
	}
	exited := make(chan struct{})
	go func() {
		cmd.Wait()
		close(exited)
	}()
	p.mu.Lock()
	p.cmd, p.exited, p.apart = cmd, exited, apart
	p.mu.Unlock()
	if err := p.awaitReady(ctx, exited); err != nil {
		return errors.Join(err, p.end())
	}
	return nil
}

func (p *Process) awaitReady(ctx context.Context, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	over := false
	err := until(ctx, func() (bool, error) {
		err := p.Ready(ctx)
		over = ended(exited, 0)
		return err == nil || over, err
	})
	switch {
	case over:
		return &startError{p.Name, "ended while it started", p.LogTail(), err}
	case err != nil:
		return &startError{p.Name, "not ready: " + strings.ReplaceAll(err.Error(), "\n", "; "), p.LogTail(), err}
	}
	return nil
}

// until asks until the answer is true. If ctx ends first, its error is the last answer's and the context's cause.
func until(ctx context.Context, is func() (bool, error)) error {
	for {
		so, err := is()
		if so {
			return nil
		}
		select {
		case <-ctx.Done():
			if why := context.Cause(ctx); !errors.Is(err, why) {
				err = errors.Join(err, why)
			}
			return err
		case <-time.After(readyInterval):
		}
	}
}

// startError says why a process did not come up, in its own last words.
type startError struct {
	name, what, log string
	err             error
}

func (e *startError) Unwrap() error { return e.err }

func (e *startError) Error() string {
	if e.log == "" {
		return fmt.Sprintf("testserver: %s %s; it has printed nothing", e.name, e.what)
	}
	return fmt.Sprintf("testserver: %s %s; its log ends with:\n%s", e.name, e.what, e.log)
}

// Pause stops the process with SIGSTOP, and returns when it is stopped. It keeps its connections and does nothing.
func (p *Process) Pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if group := p.ownGroup(); group != 0 {
		return awaitGroup(group, "TtXZ")
	}
	return awaitStopped(p.PID())
}

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// Kill ends the process as kill -9 does, and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.Exited()
	p.mu.Lock()
	apart := p.apart
	p.apart = nil
	p.mu.Unlock()
	if apart == nil {
		return nil
	}
	return errors.Join(awaitGroup(apart.Process.Pid, "XZ"), p.reaper.letGo(apart))
}

// Stop asks the process to end, waits, and kills it when it takes too long.
func (p *Process) Stop() error {
	if !p.Alive() {
		return p.end()
	}
	err := errors.Join(p.signal(syscall.SIGCONT), p.signal(syscall.SIGTERM))
	if err == nil && ended(p.Exited(), stopPatience) {
		return p.end()
	}
	return p.Kill()
}

// end is how a group ends its processes: nobody needs their last words or data.
func (p *Process) end() error {
	if !p.Alive() && p.ownGroup() == 0 {
		return nil
	}
	return p.Kill()
}

// ownGroup is the number of the process group of a process that is apart, 0 for another one.
func (p *Process) ownGroup() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.apart == nil {
		return 0
	}
	return p.apart.Process.Pid
}

// Restart starts a process that has ended, or ends it first, and waits until it
// is ready.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.end(); err != nil {
		return err
	}
	return p.start(ctx)
}

func (p *Process) logPath() string { return filepath.Join(p.Dir, "log") }

// PID is the number of the process as it runs now.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Exited is closed when the process, as it runs now, has ended.
func (p *Process) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exited
}

// Alive says whether the process runs, be it paused.
func (p *Process) Alive() bool {
	select {
	case <-p.Exited():
		return false
	default:
		return true
	}
}

func (p *Process) signal(s syscall.Signal) error {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	err := error(nil)
	if group := p.ownGroup(); group != 0 {
		err = syscall.Kill(-group, s)
	} else {
		err = cmd.Process.Signal(s)
	}
	if err != nil {
		return fmt.Errorf("testserver: signal %s: %w", p.Name, err)
	}
	return nil
}

// LogTail is the last kilobyte or so of what the process printed.
func (p *Process) LogTail() string {
	const size = 1200
	f, err := os.Open(p.logPath())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > size {
		f.Seek(-size, io.SeekEnd)
	}
	tail, _ := io.ReadAll(f)
	return string(bytes.TrimSpace(tail))
}

// LogLine is the last line that the process printed with this text in it, empty without one.
func (p *Process) LogLine(text string) string {
	printed, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	at := bytes.LastIndex(printed, []byte(text))
	if at < 0 {
		return ""
	}
	line, _, _ := bytes.Cut(printed[bytes.LastIndexByte(printed[:at], '\n')+1:], []byte("\n"))
	return string(line)
}

// Revive makes a process that may be stopped or dead do its work again.
func (p *Process) Revive(ctx context.Context) error {
	if !p.Alive() {
		return p.Restart(ctx)
	}
	if err := p.Resume(); err != nil && p.Alive() {
		return err
	}
	return p.awaitReady(ctx, p.Exited())
}
