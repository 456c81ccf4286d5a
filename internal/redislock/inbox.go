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

// inbox is a Locker's subscription to its own channel. Locker.mu guards opened and before.
type inbox struct {
	ctx    context.Context
	close  context.CancelFunc
	ready  chan struct{} // closed when Redis has confirmed it
	opened time.Time     // when that was
	before *inbox        // the one that it takes the place of, until then
}

// listening says whether grants can be pushed to this Locker. It is called with
// Locker.mu.
func (l *Locker) listening() bool { return l.inbox != nil && !l.inbox.opened.IsZero() }

// openInbox begins to listen, unless it has begun. It is called with Locker.mu.
func (l *Locker) openInbox() {
	if l.inbox == nil {
		l.replaceInbox()
	}
}

// replaceInbox begins to listen anew. The inbox that there was is read until the new one is open, so that
// nobody's grant falls between them. It is called with Locker.mu.
func (l *Locker) replaceInbox() {
	in := &inbox{ready: make(chan struct{}), before: l.inbox}
	in.ctx, in.close = context.WithCancel(l.ctx)
	l.inbox = in
	l.work.Add(1)
	go l.listen(in)
}

// misheard replaces the inbox when a beat, sent then, found that a waiter has lost its place. Perhaps nobody
// heard its grant: after a failover a subscription can stay with a server that is not the primary any
// more. It is called with Locker.mu.
func (l *Locker) misheard(sent time.Time) {
	if l.listening() && l.inbox.opened.Before(sent) {
		l.replaceInbox()
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
	ready := l.inbox.ready
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

// listen keeps an inbox open and reads it until it is closed.
func (l *Locker) listen(in *inbox) {
	defer l.work.Done()
	defer in.close()
	for in.ctx.Err() == nil {
		messages := l.server.client.Subscribe(in.ctx, l.server.channel())
		stop := context.AfterFunc(in.ctx, func() { messages.Close() })
		l.receive(in, messages)
		stop()
		messages.Close()
	}
}

// receive reads an inbox until it does not even answer a ping, or is closed. It reads
// messages as they come from the connection: a goroutine in between would cost each hand-off between processes
// two more changes of goroutine. The client subscribes again by itself when the connection breaks.
func (l *Locker) receive(in *inbox, messages *redis.PubSub) {
	failed, pinged := false, false
	for {
		m, err := messages.ReceiveTimeout(in.ctx, inboxPatience)
		var network net.Error
		switch {
		case in.ctx.Err() != nil:
			return
		case errors.As(err, &network) && network.Timeout():
			if pinged || messages.Ping(in.ctx) != nil {
				return
			}
			pinged = true
			continue
		case err != nil:
			if failed {
				in.pause(100 * time.Millisecond)
			}
			failed = true
			continue
		}
		failed, pinged = false, false
		switch m := m.(type) {
		case *redis.Subscription:
			l.subscribed(in)
		case *redis.Message:
			l.read(m.Payload)
		}
	}
}

// pause waits, but not past the inbox's end.
func (in *inbox) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-in.ctx.Done():
	}
}

// subscribed notes that Redis has confirmed an inbox. Until then messages may have been lost: others are
// assumed to wait for what is held, and all waits beat at once.
func (l *Locker) subscribed(in *inbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if in.opened.IsZero() {
		in.opened = time.Now()
		close(in.ready)
		if in.before != nil {
			in.before.close()
			in.before = nil
		}
	}
	for _, n := range l.names {
		n.contend()
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
			n.contend()
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
	case n.state == held || n.state == lingering:
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
