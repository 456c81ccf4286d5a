package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// subscription is a Locker's subscription to its own channel. Messages there say that a lock was
// granted to it, or that others want a lock that it holds. Locker.mu guards before, begun, since and err.
type subscription struct {
	ctx          context.Context
	close        context.CancelFunc
	before       func()  // closes the one that it replaces, which is read until this one is confirmed, or refused
	begun, since instant // when it began, or was refused; when it was confirmed, if not zero
	err          error   // why Redis does not let this Locker listen; then nobody reads it
}

// subscribeLocked begins to listen, unless that has begun. If Redis refused it a moment ago, it
// returns that error.
func (l *Locker) subscribeLocked() error {
	if l.closed {
		return ErrClosed
	}
	if s := l.subscription; s == nil || s.err != nil && l.now()-s.begun > time.Second {
		s = &subscription{begun: l.now(), before: func() {}}
		s.ctx, s.close = context.WithCancel(l.ctx)
		l.subscription = s
		l.work.Go(func() { l.listen(s) })
	}
	return l.subscription.err
}

// unseenLocked resubscribes after a waiter lost its place, or missed its grant. Perhaps Redis does
// not see the subscription: after a failover it can stay with a server that is not the primary any
// more. If it does see it, other locks of this Locker would lose their turn while none is there.
func (l *Locker) unseenLocked() {
	if s := l.subscription; s != nil && !l.closed && s.since != 0 && l.now()-s.since > time.Second {
		l.subscription = nil
		_ = l.subscribeLocked()
		l.subscription.before = s.close
	}
}

// silence is how long a subscription may be quiet before a ping tests it. It also bounds the answer
// to that ping, and each request that makes a connection.
const silence = 3 * time.Second

// listen keeps a subscription and reads it until it is closed, or refused.
func (l *Locker) listen(s *subscription) {
	defer s.close()
	for s.ctx.Err() == nil {
		messages := l.server.client.Subscribe(bounded{s.ctx, l.base.Add(l.now() + silence)}, l.server.channel())
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

// receive reads a subscription until it leaves a ping unanswered, or is closed. It reads messages
// directly from the connection. A goroutine in between would cost each hand-off between processes
// two more changes of goroutine. The client subscribes again by itself when the connection breaks.
// The error is that of a server that refuses the subscription, or does not confirm it. A refusal that passes, and a
// server that has no connection for it, are waited for.
func (l *Locker) receive(s *subscription, messages *redis.PubSub) error {
	pinged, pause, whole := false, time.Duration(0), l.now() // since when the connection has worked
	for {
		ctx := bounded{s.ctx, l.base.Add(l.now() + silence)}
		m, err := messages.ReceiveTimeout(ctx, silence)
		var refusal redis.Error
		switch {
		case s.ctx.Err() != nil:
			return nil
		case errors.As(err, &refusal) && !passing(err), err != nil && !passing(err) && !away(err) && s.since == 0 && l.now()-s.begun >= silence:
			return err
		case timeout(err) && pinged:
			return nil
		case timeout(err):
			pinged, ctx.deadline = true, l.base.Add(l.now()+silence)
			_ = messages.Ping(ctx) // if it fails, the client makes another connection
			continue
		case err != nil:
			if l.now()-whole > time.Second {
				pause = 0
			}
			pause = min(max(2*pause, 20*time.Millisecond), time.Second)
			select { // many processes that lost their server come back apart from each other
			case <-time.After(pause/2 + rand.N(pause)):
			case <-s.ctx.Done():
			}
			whole = l.now()
			continue
		}
		pinged = false
		switch m := m.(type) {
		case *redis.Subscription:
			l.confirmed(s)
		case *redis.Message:
			l.hear(m.Payload)
		}
	}
}

// confirmed notes that Redis has confirmed a subscription. Messages from before may have been lost.
// So held locks assume that others wait, and all waiters send a heartbeat at once.
func (l *Locker) confirmed(s *subscription) {
	l.mu.Lock()
	defer l.unlock()
	s.before()
	s.since = l.now()
	for _, n := range l.locks {
		n.resume(l.now())
		l.scheduleLocked(n)
	}
}

// notConfirmed notes why there is no subscription. Nobody can wait without one. A caller that wants
// to wait makes the Locker try again, a second later at the earliest.
func (l *Locker) notConfirmed(s *subscription, err error) {
	l.mu.Lock()
	defer l.unlock()
	s.before()
	s.since, s.begun, s.err = 0, l.now(), fmt.Errorf("%w: %w", errSubscribe, err)
	for _, n := range l.locks {
		if n.state != asking && l.subscription == s {
			l.refuseLocked(n, s.err)
		}
	}
}

// refuseLocked ends all waits for a lock. A hold goes on.
func (l *Locker) refuseLocked(n *lock, err error) {
	for w := n.firstLocked(); w != nil; w = n.firstLocked() {
		n.dismissLocked(w, result{err: failed(ErrUnavailable, "wait for", w.key, err)})
	}
	l.settleLocked(n, todo{}, "")
}

// hear processes one message: "granted ATTEMPT EPOCH OTHERS NAME" or "contended NAME".
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
		if len(fields) != 4 || l.closed {
			return // Close has released everything
		}
		attempt, _ := strconv.ParseUint(fields[0], 10, 64)
		epoch, _ := strconv.ParseInt(fields[1], 10, 64)
		others, _ := strconv.ParseInt(fields[2], 10, 64)
		n := l.locks[fields[3]]
		if n == nil {
			n = newLock(fields[3])
		}
		next := n.pushed(attempt, l.had, reply{kind: replyHeld, epoch: epoch, others: others}, l.now())
		n.served()
		l.settleLocked(n, next, Remote)
	}
}
