package measure

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"stocklock/bench/worker"
)

// process is a running worker.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

// startProcess starts this program again as a worker. The worker ends with ctx, or when its input
// closes, which also happens when this process dies.
func startProcess(ctx context.Context, o worker.Order) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, program)}
	p.cmd.Env = append(os.Environ(), worker.Env+"=1")
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Second
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	line, _ := json.Marshal(o)
	_, err = p.in.Write(append(line, '\n'))
	return p, p.explain(err)
}

// answer reads one line of JSON.
func (p *process) answer(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	return p.explain(err)
}

func (p *process) begin() error {
	_, err := p.in.Write([]byte("\n"))
	return p.explain(err)
}

// explain adds the worker's standard error to err.
func (p *process) explain(err error) error {
	if err == nil {
		return nil
	}
	p.in.Close()
	p.cmd.Wait()
	return fmt.Errorf("a worker failed: %w: %s", err, bytes.TrimSpace(p.stderr.Bytes()))
}

// end closes the input of a worker and waits for its exit.
func (p *process) end() error {
	p.in.Close()
	err := p.cmd.Wait()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return fmt.Errorf("a worker failed: %w: %s", err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return nil
}
