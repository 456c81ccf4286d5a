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

// subscription is a Locker's to its own channel, on which Redis tells it that a lock was granted
// to it, or that others want what it holds. Locker.mu guards since and before.
type subscription struct {
	ctx     context.Context
	close   context.CancelFunc
	ready   chan struct{} // closed when Redis has confirmed it, or refused
	err     error         // that of the refusal, once ready is closed
	since   instant       // when it was confirmed, if not zero
	refused instant       // likewise; then nobody reads it
	before  *subscription // the one whose place it takes then
}

// hearsLocked says whether grants can be pushed to this Locker.
func (l *Locker) hearsLocked() bool {
	s := l.subscription
	return s != nil && s.since != 0 && s.refused == 0
}

// deafLocked says whether Redis does not let this Locker listen.
func (l *Locker) deafLocked() bool { return l.subscription != nil && l.subscription.refused != 0 }

// subscribeLocked begins to listen, unless that has begun, or was refused a moment ago.
func (l *Locker) subscribeLocked() {
	s := l.subscription
	if !l.closed && (s == nil || s.refused != 0 && l.now()-s.refused > time.Second) {
		l.resubscribeLocked()
	}
}

// resubscribeLocked begins to listen anew. The subscription that there was is read until the new
// one is confirmed, so that nobody's grant falls between them.
func (l *Locker) resubscribeLocked() {
	s := &subscription{ready: make(chan struct{}), before: l.subscription}
	s.ctx, s.close = context.WithCancel(l.ctx)
	l.subscription = s
	l.work.Add(1)
	go l.listen(s)
}

// unseenLocked is called when a waiter has lost its place, or was not told of its grant. Perhaps
// Redis does not see its subscription: after a failover that can stay with a server that is not the
// primary any more.
func (l *Locker) unseenLocked() {
	if l.hearsLocked() && l.now()-l.subscription.since > time.Second {
		l.resubscribeLocked()
	}
}

// subscribed waits until Redis has confirmed a subscription.
func (l *Locker) subscribed(s *subscription, lease time.Duration) error {
	if s == nil {
		return ErrClosed
	}
	patience := time.NewTimer(third(lease))
	defer patience.Stop()
	select {
	case <-s.ready:
		return s.err
	case <-l.ctx.Done():
		return ErrClosed
	case <-patience.C:
		return fmt.Errorf("redislock: Redis did not confirm a subscription within %s: %w", third(lease), os.ErrDeadlineExceeded)
	}
}

// silence is how long a subscription may be quiet before it is tried with a ping, and how long the
// answer to that may take.
const silence = 3 * time.Second

// listen keeps a subscription and reads it until it is closed, or refused.
func (l *Locker) listen(s *subscription) {
	defer l.work.Done()
	defer s.close()
	for s.ctx.Err() == nil {
		messages := l.server.client.Subscribe(s.ctx, l.server.channel())
		stop := context.AfterFunc(s.ctx, func() { messages.Close() })
		err := l.receive(s, messages)
		stop()
		messages.Close()
		if err != nil {
			l.notConfirmed(s, err)
			return
		}
	}
}

// receive reads a subscription until it does not even answer a ping, or is closed. It reads
// messages as they come from the connection: a goroutine in between would cost each hand-off
// between processes two more changes of goroutine. The client subscribes again by itself when the
// connection breaks. The error is that of a server that does not let it subscribe.
func (l *Locker) receive(s *subscription, messages *redis.PubSub) error {
	failed, pinged := false, false
	for {
		m, err := messages.ReceiveTimeout(s.ctx, silence)
		var network net.Error
		var refusal redis.Error
		switch {
		case s.ctx.Err() != nil:
			return nil
		case errors.As(err, &network) && network.Timeout():
			if pinged || messages.Ping(s.ctx) != nil {
				return nil
			}
			pinged = true
			continue
		case errors.As(err, &refusal) && !passing(err):
			return err
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
			l.confirmed(s)
		case *redis.Message:
			l.hear(m.Payload)
		}
	}
}

// confirmed notes that Redis has confirmed a subscription. Until then messages may have been lost:
// others are assumed to wait for what is held, and all waiters send a heartbeat at once.
func (l *Locker) confirmed(s *subscription) {
	l.mu.Lock()
	defer l.unlock()
	if s.since == 0 {
		s.since = l.now()
		close(s.ready)
		if s.before != nil {
			s.before.close()
			s.before = nil
		}
	}
	for _, n := range l.locks {
		n.resume(l.now())
		l.scheduleLocked(n)
	}
}

// notConfirmed notes why there is no subscription. Who wants to wait tries again, a second later.
func (l *Locker) notConfirmed(s *subscription, err error) {
	l.mu.Lock()
	defer l.unlock()
	s.refused = l.now()
	if s.since == 0 {
		s.err = fmt.Errorf("SUBSCRIBE: %w", err)
		close(s.ready)
	}
}

// hear takes in one message: "granted ATTEMPT EPOCH OTHERS NAME" or "contended NAME".
func (l *Locker) hear(message string) {
	kind, rest, _ := strings.Cut(message, " ")
	l.mu.Lock()
	defer l.unlock()
	switch kind {
	case "contended":
		if n := l.locks[rest]; n != nil {
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
		if attempt == 0 || epoch == 0 || l.closed {
			return // Close has released everything
		}
		n := l.locks[fields[3]]
		if n == nil {
			n = &lock{name: fields[3], keys: keysOf(fields[3])}
		}
		l.settleLocked(n, n.pushed(attempt, reply{kind: replyHeld, epoch: epoch, others: others}, l.now()), Remote)
	}
}
