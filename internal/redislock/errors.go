package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// These errors differ by what the caller must do: see Errors in the package documentation.
var (
	// ErrNotAcquired: others have the lock, and it was not free in time. Try again later, or give up. Beside it
	// stands the cause of the context, if that ended.
	ErrNotAcquired = errors.New("redislock: not acquired")
	// ErrUnavailable: Redis did not answer, refuses, or could not be reached. The error says why. "Nothing was
	// done" means that Redis refused the request, or that it was not sent. "Outcome unknown" means that there was
	// no answer, or an error that can end a script half-way: the Locker cleans up in the background. Beside it
	// stands the cause of the context, if that ended.
	ErrUnavailable = errors.New("redislock: Redis does not serve it")
	// ErrNotReleased: the work is done, and Redis did not answer its release, or refused it. The Locker repeats
	// it in the background until the lease is over, but not a Leave. Note it.
	ErrNotReleased = errors.New("redislock: not known to be released")
	// ErrLost: the lock was held, and another holder may have it by now. Stop working. It is the
	// cause of a held context that ended with its lock, wrapped with the reason.
	ErrLost = errors.New("redislock: lock lost")
	// ErrNotHeld: there was nothing to release, because the lease is over or the lock was
	// released before. Note it.
	ErrNotHeld = errors.New("redislock: lock not held")
	// ErrClosed: the Locker was closed.
	ErrClosed = errors.New("redislock: locker closed")

	// An error that is ErrLost also is one of these, or ErrClosed. ErrLeaseOver: renewals failed until the
	// deadline, or the process did not run. ErrTaken: Redis says that this hold does not have the lock,
	// because its lease was over or its key is gone. ErrHeldTooLong: the code forgot to release, or is slow.
	ErrLeaseOver   = errors.New("its lease is over")
	ErrTaken       = errors.New("it is not held, as Redis says")
	ErrHeldTooLong = errors.New("held for longer than Options.MaxHold, or than Options.Grace after its context's end")
)

// notAcquired says why a wait ended without the lock: others have it, unless there is a reason why Redis does not
// serve it. The cause is that of the caller's context.
func notAcquired(key string, reason, cause error) error {
	if errors.Is(cause, ErrLost) { // of a lock around this one
		return fmt.Errorf("acquire %q: %w", key, cause)
	}
	if reason != nil {
		return fmt.Errorf("acquire %q: %w", key, errors.Join(fmt.Errorf("%w: %w", ErrUnavailable, reason), cause))
	}
	return fmt.Errorf("acquire %q: %w", key, errors.Join(ErrNotAcquired, cause))
}

func notHeld(key string) error { return fmt.Errorf("release %q: %w", key, ErrNotHeld) }

// lost says why a lock was lost. If renewals failed until the deadline, it also says why the last one did.
func lost(key string, how error, failure *error) error {
	if how != ErrLeaseOver || failure == nil {
		return fmt.Errorf("%w: %q: %w", ErrLost, key, how)
	}
	return fmt.Errorf("%w: %q: %w: %w", ErrLost, key, how, *failure)
}

// unanswered is a renewal that is under way, as the reason of a loss.
type unanswered onceCmd

func (u *unanswered) Error() string {
	if u.read.Load() {
		return "its renewal has no answer"
	}
	return "its renewal waits for a connection of the client: the pool is used up, or none can be made"
}

// failed wraps the error that came instead of a reply.
func failed(as error, doing, key string, err error) error {
	outcome := map[bool]string{true: "nothing was done", false: "outcome unknown"}[definite(err)]
	return fmt.Errorf("%w: %s %q: %s: %w", as, doing, key, outcome, err)
}

// transient are the refusals that pass by themselves: a slot is moved, a primary is chosen or loads its
// data, or somebody's script takes long.
var transient = []string{"TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "BUSY"}

// beforeWriting are the refusals that Redis gives before a script's first write, and not after it.
var beforeWriting = []string{"OOM", "MISCONF", "NOREPLICAS", "MOVED", "ASK", "NOAUTH", "NOSCRIPT"}

// passing says whether an error is a refusal after which the same request may soon succeed.
func passing(err error) bool { return err != nil && hasPrefix(err, transient) }

func hasPrefix(err error, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return redis.HasErrorPrefix(err, p+" ") })
}

// definite says whether an error means that nothing was carried out. Other errors of Redis can end a script
// half-way. So can NOPERM, which then names the script.
func definite(err error) bool {
	return passing(err) || hasPrefix(err, beforeWriting) || unsent(err) || errors.Is(err, errSubscribe) ||
		hasPrefix(err, []string{"NOPERM"}) && !strings.Contains(err.Error(), "script: ")
}

// errSubscribe joins the error of a subscription. Its waiters have nothing.
var errSubscribe = errors.New("SUBSCRIBE")

// errNotSent joins the error of a request that the client did not read.
var errNotSent = errors.New("not sent")

// unsent says whether an error means that the request never left this process. A client whose hooks
// read requests shows that by its error only.
func unsent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial" || errors.Is(err, errNotSent) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed)
}

// away says whether no connection could be made, and may be later.
func away(err error) bool { return unsent(err) && !errors.Is(err, redis.ErrClosed) }

// timeout says whether no answer came in time. All waiters for that answer share the error.
func timeout(err error) bool {
	network, ok := errors.AsType[net.Error](err)
	return ok && network.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// panicked is a panic in a hook of the client. The caller gets the panic. To the Locker, the
// outcome of the request is unknown.
type panicked struct{ value any }

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// raise continues a panic in the goroutine of the caller.
func raise(err error) {
	if p, ok := errors.AsType[*panicked](err); ok {
		panic(p.value)
	}
}
