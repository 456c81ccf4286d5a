package step

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/schedule"
)

// pace is what is known of the time that a run takes: the machine can be too slow for its leases.
type pace struct {
	lease     time.Duration // of a lock, 0 where there is none
	strict    bool          // events take no longer than a lease: what else comes by time is the machine's doing
	renews    bool          // the lock is renewed while its sale goes on
	certain   bool          // a lease that ends although it is renewed counts
	patience  time.Duration // for which nobody may be able to go on
	restLimit time.Duration // in which all must come to rest
	lookLimit time.Duration // in which the servers must be counted
	starved   *atomic.Int64 // runs that a late renewal has spoiled

	segment   time.Time     // when the last event was over
	idle      time.Time     // since when nobody can go on, zero where somebody can
	passed    time.Duration // that was to pass, until now
	leased    bool          // something was seen that a lease ends
	ends      time.Time     // of the strategy's own key that ends first, by the last look; zero for none
	due       time.Time     // since when such a key may have ended in this segment, zero for none
	forgotten int           // the entry by which Redis lost the lock, 0 for none, and if time was to pass since
	renewed   map[schedule.Customer]renewals
	resumed   map[schedule.Customer]time.Time // when its process went on after a pause
	slow      slowError                       // the zero value for a run that counts
}

// renewals is what was seen of the renewals of one customer's lock.
type renewals struct {
	last time.Time // zero before the first
	late time.Duration
}

// slowError says why a run does not count: the machine was too slow for its lease. It may go otherwise when the
// machine has less to do.
type slowError struct {
	why    string
	doubts bool // it may have been: the run is made again with a longer lease
}

func (e slowError) Error() string {
	return "the machine " + map[bool]string{false: "is", true: "may be"}[e.doubts] + " too busy: " + e.why
}

// counted is the error of a run, or why it does not count.
func (p *pace) counted(err error) error {
	if p.slow.why != "" {
		return p.slow
	}
	return err
}

func (p *pace) spoil(format string, args ...any) {
	if p.slow.why == "" || p.slow.doubts {
		p.slow = slowError{why: fmt.Sprintf(format, args...)}
	}
}

func (p *pace) doubt(format string, args ...any) {
	if p.slow.why == "" {
		p.slow = slowError{fmt.Sprintf(format, args...), true}
	}
}

// beginSegment notes that time was to pass until now.
func (p *pace) beginSegment() {
	p.segment, p.due = time.Now(), time.Time{}
	p.hasten()
}

// keepsFor notes how long the strategy's own key lasts that ends first, 0 for none.
func (p *pace) keepsFor(left time.Duration) {
	p.ends = time.Time{}
	if left > 0 {
		p.ends = time.Now().Add(left)
	}
	p.hasten()
}

func (p *pace) hasten() {
	left := time.Until(p.ends)
	if due := time.Now().Add(left / 10 * 8); left > 0 && (p.due.IsZero() || due.Before(p.due)) {
		p.due = due
	}
}

// endSegment checks whether a lease may have ended although none was to pass. If Redis has lost the lock,
// the holder would learn it from a renewal, after a third of the lease at the earliest. [run.toldOfLoss]
// sees that, unless the requests of the lock are not held.
func (r *run) endSegment() {
	limit := r.lease * 8 / 10
	if r.unseen && r.forgotten > 0 {
		limit = r.lease * 3 / 10
	}
	if took := time.Since(r.segment); r.strict && r.leased && took > limit {
		r.spoil("%s went by between two events, and the lease is %s", took.Round(time.Millisecond), r.lease)
	} else if r.strict && !r.due.IsZero() && time.Now().After(r.due) {
		r.spoil("%s went by between two events, and a key that the strategy keeps may have ended", took.Round(time.Millisecond))
	}
}

// waited notes that so much time passed as on any machine. Time that passes while nobody can go on is noted at
// its end.
func (p *pace) waited(d time.Duration) {
	p.forgotten = 0
	if p.idle.IsZero() {
		p.passed += d
	}
}

// machineTime is how much of the run until now was not to pass: the machine needed it.
func (r *run) machineTime() time.Duration {
	took := time.Since(r.begun) - r.pace.passed
	if !r.idle.IsZero() {
		took -= time.Since(r.idle)
	}
	return took
}

// noteRenewal takes in a renewal of a customer's lock. The machine can make it late: nine tenths of a lease
// after the one before it, the lease may have ended.
func (r *run) noteRenewal(c schedule.Customer, at time.Time) {
	seen := r.renewed[c]
	// A pause of the process makes its renewals late on purpose.
	if gap := at.Sub(seen.last); seen.last.After(r.resumed[c]) && gap > r.lease*9/10 {
		seen.late = gap
	}
	seen.last = at
	r.renewed[c] = seen
	if r.strict {
		r.toldOfLoss(c)
	}
	if slices.ContainsFunc(r.holds, func(h schedule.Hold) bool {
		return h.Customer == c && h.To >= 0 && h.EndedBy == 0 && !h.EndedEvent.Forgets()
	}) {
		r.starve(c)
	}
}

// toldOfLoss spoils a run in which the machine took so long that a holder learned by a renewal that Redis has
// lost its lock.
func (r *run) toldOfLoss(c schedule.Customer) {
	lost := func(h schedule.Hold) bool {
		return h.Customer == c && h.From < r.forgotten && (h.To < 0 || h.EndedEvent.Forgets())
	}
	if slices.ContainsFunc(r.holds, lost) {
		r.spoil("%s's lock was renewed after Redis had lost it, and no time was to pass", c)
	}
}

// starve spoils a run in which a lease ended because its renewal was late although those before it were
// not. A renewal that stops altogether, or that is always late, does not spoil it.
func (r *run) starve(c schedule.Customer) {
	if late := r.renewed[c].late; late > 0 && (r.slow.why == "" || r.slow.doubts) {
		r.starved.Add(1)
		r.spoil("%s's lock was renewed %s after the renewal before, and the lease is %s", c, late.Round(time.Millisecond), r.lease)
	}
}

// doubtEnd has a run count only with a longer lease, if the lease of a lock that renews ended by itself. The
// machine may not have let the process renew it; a lock that does not renew in time fails then, too.
func (r *run) doubtEnd(c schedule.Customer) {
	hit := func(o schedule.Choice) bool { return !o.IsStep() && o.Event != schedule.Arrive && o.Customer == c }
	if c != 0 && r.renews && !r.certain && r.buyer(c).state != ended && !slices.ContainsFunc(r.chosen, hit) {
		r.doubt("%s's lock was not renewed within its lease of %s", c, r.lease)
	}
}
