package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// listening says whether grants can be pushed to this Locker. It is called with
// Locker.mu.
func (l *Locker) listening() bool {
	if l.ready == nil {
		return false
	}
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// openInbox begins to listen, unless it has begun. It is called with Locker.mu.
func (l *Locker) openInbox() {
	if l.ready == nil {
		l.ready = make(chan struct{})
		l.work.Add(1)
		go l.listen(l.ready)
	}
}

// subscribe opens the Locker's inbox before its first wait, and waits until Redis
// has confirmed it: a grant to a Locker that does not listen would be taken back.
func (l *Locker) subscribe(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.openInbox()
	ready := l.ready
	l.mu.Unlock()
	patience := time.NewTimer(l.opts.beatEvery())
	defer patience.Stop()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ctx.Done():
		return ErrClosed
	case <-patience.C:
		return fmt.Errorf("redislock: Redis did not confirm a subscription within %s: %w", l.opts.beatEvery(), os.ErrDeadlineExceeded)
	}
}

// inboxPatience is how long the inbox may be quiet before it is tried with a ping, and how long the answer
// to that may take.
const inboxPatience = 3 * time.Second

// listen keeps the inbox open and reads it until the Locker is closed.
func (l *Locker) listen(ready chan struct{}) {
	defer l.work.Done()
	confirmed := func() {
		close(ready)
	}
	for l.ctx.Err() == nil {
		inbox := l.server.client.Subscribe(l.ctx, l.server.channel())
		stop := context.AfterFunc(l.ctx, func() { inbox.Close() })
		l.receive(inbox, func() {
			confirmed()
			confirmed = l.lookAgain
		})
		stop()
		inbox.Close()
	}
}

// receive reads an inbox until it does not even answer a ping, or the Locker is closed. It reads
// messages as they come from the connection: a goroutine in between would cost each hand-off between processes
// two more changes of goroutine. The client subscribes again by itself when the connection breaks.
func (l *Locker) receive(inbox *redis.PubSub, confirmed func()) {
	failed, pinged := false, false
	for {
		m, err := inbox.ReceiveTimeout(l.ctx, inboxPatience)
		var network net.Error
		switch {
		case l.ctx.Err() != nil:
			return
		case errors.As(err, &network) && network.Timeout():
			if pinged || inbox.Ping(l.ctx) != nil {
				return
			}
			pinged = true
			continue
		case err != nil:
			if failed {
				l.pause(100 * time.Millisecond)
			}
			failed = true
			continue
		}
		failed, pinged = false, false
		switch m := m.(type) {
		case *redis.Subscription:
			confirmed()
		case *redis.Message:
			l.read(m.Payload)
		}
	}
}

// pause waits, but not past Close.
func (l *Locker) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-l.ctx.Done():
	}
}

// lookAgain has all waits beat at once: pushes may have been lost with the
// connection.
func (l *Locker) lookAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.names {
		if n.state == waiting {
			n.beatOut, n.beatDue = time.Time{}, time.Now()
			l.attend(n)
		}
	}
}

// read takes in one message: "granted ATTEMPT EPOCH OTHERS KEY" or "contended KEY".
func (l *Locker) read(message string) {
	kind, rest, _ := strings.Cut(message, " ")
	l.mu.Lock()
	defer l.mu.Unlock()
	switch kind {
	case "contended":
		if n := l.names[rest]; n != nil {
			n.grant.others, n.contended = true, n.state != held
		}
	case "granted":
		fields := strings.SplitN(rest, " ", 4)
		if len(fields) != 4 {
			return
		}
		attempt, _ := strconv.ParseUint(fields[0], 10, 64)
		epoch, _ := strconv.ParseInt(fields[1], 10, 64)
		others, _ := strconv.ParseInt(fields[2], 10, 64)
		if attempt != 0 && epoch != 0 {
			l.pushed(fields[3], attempt, epoch, others)
		}
	}
}

// pushed takes in a grant. One that nobody waits for any more is given back.
func (l *Locker) pushed(key string, attempt uint64, epoch, others int64) {
	n := l.names[key]
	switch {
	case l.closed:
		// Close has given back everything.
	case n == nil || n.attempt != attempt:
		l.giveBack(&name{key: key, keys: keysOf(key)}, attempt)
	case n.state == held:
		// Told twice.
	case time.Until(n.bound.Add(l.opts.Lease-l.opts.margin())) < l.opts.beatEvery():
		// By what is known, little of the lease may be left: renew it before working.
		if n.state == waiting {
			n.beatOut, n.beatDue = time.Time{}, time.Now()
			l.attend(n)
		}
	default:
		l.granted(n, epoch, others, n.bound, Remote)
	}
}
