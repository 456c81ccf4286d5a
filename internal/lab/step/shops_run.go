package step

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/redisconn"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// shopsRun is a run on shops of this repository: of one item, or of those of baskets.
type shopsRun struct {
	*run
	shops     *Shops
	slot      *slot
	of        declared.Strategy
	items     []uint64
	customers []*shopper

	has   schedule.Customer // who has acquired last and not released, where the requests of the lock are not held
	timed bool              // something was sent by which a lease can be kept where no look finds it
}

// shopper is a customer of a shop.
type shopper struct {
	*buyer
	lines   []uint64 // the items that it buys, in its order
	shop    *rig.TestbedShop
	arrived time.Duration   // of the machine's time in the run
	asked   map[string]bool // what it was held at before, with baskets

	begins            string // the command with which a try of its lock begins
	retry             bool   // it is held at that again
	tryFrom, tryUntil int    // the run's version when the try before this one, and this one, were made

	conn    uint64 // MySQL's number of the connection that has sent the last statement
	cut     bool
	refused bool // it has passed the point waiting, and has sent nothing since
	keptOut bool // it has passed that, and nothing of it has come to MySQL since
	ordered bool // its open transaction has inserted an order
	written bool // its order is committed
}

func (r *shopsRun) at(b *buyer) *shopper { return r.customers[b.customer-'A'] }

// How long to wait for what.
const (
	restLimit = 8 * time.Second       // beyond which a run has failed
	lockAfter = 20 * time.Millisecond // silence after which the lock is looked at: a shop may be at work
	dropAfter = 2 * time.Second       // or a lease if that is longer: the shop has dropped what it was to write
)

// shopReplied is how a shop has answered a request of a customer.
type shopReplied struct {
	customer        schedule.Customer
	request, answer string
	more            bool // it has another one to send
}

func (r *shopsRun) arrive(ctx context.Context, b *buyer) {
	s := r.at(b)
	s.arrived = r.machineTime()
	go func() {
		list, more := r.requests(b.customer), true
		for i := 0; more; i++ {
			answer := ""
			answer, more = list[i].Send(ctx, Address{URL: s.shop.URL, Staff: s.shop.Staff, Strategy: r.plan.Strategy, Items: s.lines, ID: b.id})
			more = more && i+1 < len(list)
			select {
			case r.messages <- shopReplied{b.customer, list[i].Name, answer, more}:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// requests are those of a customer: a purchase where the plan says nothing.
func (r *shopsRun) requests(c schedule.Customer) []Request {
	if list := r.plan.Requests[c]; len(list) > 0 {
		return list
	}
	return []Request{{Name: "buy", Send: func(ctx context.Context, to Address) (string, bool) {
		return r.slot.buy(ctx, to.URL, to.Items, to.Strategy, to.ID), false
	}}}
}

// handle takes in what a shop reports, and how it answers.
func (r *shopsRun) handle(_ context.Context, m any) error {
	if a, ok := m.(shopReplied); ok {
		b := r.buyer(a.customer)
		if a.more {
			r.note(schedule.Entry{Customer: b.customer.String(), Note: fmt.Sprintf("%s: %s was answered with %s", b.customer, a.request, a.answer)})
			return nil
		}
		if a.answer == string(load.Busy) {
			r.answeredBusy(r.at(b), a.answer)
		}
		if b.answer = a.answer; died(a.answer) { // else the report on its last request comes another way, and is slower
			r.noAnswer(b)
		}
		if !r.goesOn(b) { // what is held is beside the sale
			r.dropHeld(b)
		}
		r.replied(b, a.answer)
		return nil
	}
	report := m.(heldReport)
	if report.Own && report.Server != labmode.MySQLServer && writesOneOf(r.schema.Touches(report.request()), heldKeys(r.items, r.of.State)) {
		if name := r.customerOfShop(report.shop); name != "" {
			r.noteRenewal(schedule.Customer(name[0]), report.at)
		}
	}
	i := slices.IndexFunc(r.buyers, func(b *buyer) bool { return b.id == report.Sale })
	switch {
	case report.Refused:
		if i >= 0 {
			r.customers[i].refused, r.customers[i].keptOut = true, true
		}
	case i >= 0 && report.Hold != 0 && r.buyers[i].occupied():
		report.release(false) // a goroutine beside the sale sent it, and it is shown when it is done
	case i < 0 || report.Own || report.Done != 0 && !r.buyers[i].has(report.Done):
		if r.plan.Observe {
			at := r.note(schedule.Entry{Own: true, Customer: r.customerOfShop(report.shop), Server: report.Server, Sent: report.Text, Answer: report.Answer})
			r.entries[at].Item = r.itemOf(report.Server, report.Text)
		}
	case report.Hold != 0:
		h := report.held()
		r.hold(r.buyers[i], h)
		r.holdsAt(r.customers[i], h, report)
	default:
		r.done(r.customers[i], report)
	}
	return nil
}

// dropHeld lets go what a customer is held at.
func (r *shopsRun) dropHeld(b *buyer) {
	for _, h := range b.queue {
		h.release(h)
	}
	b.queue = nil
}

// occupied says whether the sale itself can send nothing now: it has ended, is held, or has no answer yet.
func (b *buyer) occupied() bool { return b.state == ended || len(b.queue) > 0 || b.flying != nil }

// has says whether a request of this number is the last that a customer has sent, or is held at.
func (b *buyer) has(number uint64) bool {
	h := b.flying
	if h == nil && len(b.queue) > 0 {
		h = b.queue[0]
	} else if h == nil {
		h = b.last
	}
	return h != nil && h.id == number
}

func (r *shopsRun) customerOfShop(name string) string {
	for _, b := range r.buyers {
		if strings.HasSuffix(name, fmt.Sprintf("-%d", b.customer-'A'+1)) {
			return b.customer.String()
		}
	}
	return ""
}

// holdsAt notes whether a customer is held at what begins a try of its lock.
func (r *shopsRun) holdsAt(s *shopper, h *held, report heldReport) {
	s.refused = false
	s.keptOut = s.keptOut && h.Server != labmode.MySQLServer
	begin := h.name
	if words := strings.Fields(h.Text); len(words) > 1 && words[0] == "EVALSHA" {
		begin += " " + words[1]
	} else if h.Server == labmode.MySQLServer {
		begin = h.Text
	}
	if s.begins == "" {
		s.begins = begin
	}
	repeats := s.asked[h.Text]
	s.asked[h.Text] = true
	s.retry = false
	again := len(s.tx) == 0 && begin == s.begins && // a transaction that reads the same twice does not begin again
		(report.Phase == "" || h.Server == labmode.MySQLServer)
	if again && !r.plan.Baskets || r.plan.Baskets && h.Server != labmode.MySQLServer {
		s.retry = s.counts[h.name] > 0 && (!r.plan.Baskets || repeats) // each lock has its tries
		s.tryFrom, s.tryUntil = s.tryUntil, r.version
	}
}

// pointless says whether the step repeats a try although nobody else has changed the lock, and no
// lease has passed, since the try before was made. Made, and not sent: a try has its time in it.
func (r *shopsRun) pointless(b *buyer) bool {
	s := r.at(b)
	if !s.retry {
		return false
	}
	for by, version := range r.changed {
		if by != b.customer && version > s.tryFrom {
			return false
		}
	}
	if len(b.queue) > 0 && b.queue[0].Server != labmode.MySQLServer && len(r.of.State.Keys) == 0 {
		return true
	}
	for _, version := range r.wrote { // a try can also follow what its own sale has written
		if version > s.tryFrom {
			return false
		}
	}
	return true
}

// done takes in that a request was answered.
func (r *shopsRun) done(s *shopper, report heldReport) {
	if s.flying == nil {
		return
	}
	ends := report.Name == "commit" || report.Name == "rollback" || report.Lost || strings.Contains(report.Answer, "Error 1213")
	a := answer{text: report.Answer, ends: ends, open: s.flying.Tx && !ends, failed: strings.HasPrefix(report.Answer, "error: ")}
	a.matched = !a.failed && report.Answer != "no row" && report.Answer != "0 rows"
	if report.Server == labmode.MySQLServer {
		s.written = s.written || s.ordered && report.Name == "commit"
		s.ordered = !ends && (s.ordered || a.open && a.matched && ordersItem(report.Text))
		if s.flying.conn != 0 {
			s.conn = s.flying.conn
		}
		if report.Lost && s.flying.conn != 0 { // the shop has hung up, which it cannot do with a COMMIT
			defer clear(s.named)
		}
	}
	if r.acquires(s.buyer) && report.Answer == labmode.AcquiredAnswer {
		r.acquired(s.customer)
	}
	r.answered(s.buyer, report.Done, a)
}

// ordersItem says whether a statement records an order.
func ordersItem(text string) bool {
	return strings.HasPrefix(text, "INSERT") && strings.Contains(text, "orders")
}

// answeredBusy checks whether a customer gave up because the machine was slow. Who waits for others does so
// for half of the time at least.
func (r *shopsRun) answeredBusy(s *shopper, answer string) {
	if took := r.machineTime() - s.arrived; took > r.slot.wait/2 {
		r.doubt("%s was answered with %s, and of the %s that it waits the machine took %s", s.customer, answer, r.slot.wait, took.Round(time.Millisecond))
	}
}

// goesOn says whether a shop may have to write yet: it answers first, and can be held before that already.
func (r *shopsRun) goesOn(b *buyer) bool {
	return r.of.AnswersFirst && b.answer == string(load.Sold) && !r.at(b).written
}

func (r *shopsRun) process(b *buyer) process { return r.at(b).shop }

// acquires says whether the request of a customer that is under way is a lock's acquisition as a whole,
// which can wait for the lock. Releases says the same of its release.
func (r *shopsRun) acquires(b *buyer) bool { return r.whole(b.flying, labmode.AcquireStep) }

func (r *shopsRun) whole(h *held, step string) bool {
	return r.unseen && h != nil && h.Server != labmode.MySQLServer && h.name == step
}

// listen looks at what a silent customer can wait for.
func (r *shopsRun) listen(ctx context.Context, b *buyer, s *silence) error {
	at := r.at(b)
	s.long, s.dropped, s.cut, s.refused = s.since > r.lease, s.since > max(r.lease, dropAfter), at.cut, at.refused
	if s.locking = s.since > lockAfter && (b.flying == nil && !s.answered || r.acquires(b)); !s.locking {
		return nil
	}
	look, err := r.askLock(ctx)
	if err == nil && look.Locked() {
		owner := r.ownerOf(look, r.lock)
		// A lock whose requests are not held does not say at once whose it is. Who was not kept out is slow.
		s.theirs = at.keptOut && owner != b.customer && (owner != 0 || !r.unseen)
		if s.lock = "held"; owner != 0 {
			s.lock = fmt.Sprintf("held by %s", owner)
		}
	}
	return err
}

func (r *shopsRun) wakes(b *buyer) bool {
	return !r.lock.Locked() || r.owner == b.customer || r.owner == 0 && r.unseen
}

// atRest takes back that a customer waits who was only slow: it asks again for a lock that nobody has
// changed, as one does that polls.
func (r *shopsRun) atRest(context.Context) (bool, error) {
	for _, b := range r.buyers {
		if entry := r.lastOf(b); b.atStep() && b.queue[0].Server != labmode.MySQLServer && entry >= 0 && r.pointless(b) {
			r.entries[entry].Blocked = ""
		}
	}
	return false, nil
}

// passTime has what is silent fail where nobody polls.
func (r *shopsRun) passTime(ctx context.Context, polled bool) (bool, error) {
	for _, s := range r.customers {
		if polled && s.cut {
			s.cut = false
			s.shop.Reconnect()
			if s.state == cutOff {
				s.state, s.heard = moving, time.Now()
			}
			return true, r.settle(ctx)
		}
	}
	return false, nil
}

func (r *shopsRun) sends(b *buyer, h *held, _ bool) {
	r.entries[h.entry].Item = r.itemOf(h.Server, h.Text)
	if r.keepsTime(h.Request) {
		r.timed, r.leased = true, true
	}
	if r.whole(h, labmode.ReleaseStep) && r.has == b.customer {
		r.has = 0
	}
}

func (r *shopsRun) sent(ctx context.Context, _ *buyer, h *held) error {
	if h.lost {
		if err := r.hungUp(ctx, h.conn); err != nil {
			return err
		}
	}
	if h.Server == labmode.MySQLServer && (!h.Tx || h.name == "commit") {
		return r.slot.database.copied(ctx)
	}
	return nil
}

// itemOf returns the one of the run's items that a request names, from 1. It is 0 for none, for several, and where there
// is one.
func (r *shopsRun) itemOf(server, text string) (item int) {
	if len(r.items) == 1 || text == "" {
		return 0
	}
	form := `\bstock:%d\b`
	if server == labmode.MySQLServer {
		form = `\b%d\b`
	}
	for i, id := range r.items {
		if regexp.MustCompile(fmt.Sprintf(form, id)).MatchString(text) {
			if item != 0 {
				return 0
			}
			item = i + 1
		}
	}
	return item
}

// inject makes an event happen that is not the same at the wire.
func (r *shopsRun) inject(ctx context.Context, c schedule.Choice) error {
	switch c.Event {
	case schedule.Cut:
		s := r.at(r.buyer(c.Customer))
		s.cut = true
		if err := s.shop.CutOff(); err != nil {
			return err
		}
		return r.passLease(ctx, c)
	case schedule.Forget:
		server := r.slot.Redis()
		if r.of.NeedsQuorum {
			server = r.slot.Quorum[0]
		}
		forget := redisconn.Command{"DEL"}
		for _, key := range lockKeys(r.items, r.of.State) {
			forget = append(forget, key)
		}
		return server.Client.Do(ctx, forget...).Err
	case schedule.FlushAll:
		return r.slot.Redis().Client.Do(ctx, "FLUSHALL").Err
	case schedule.Failover:
		return r.slot.failOver(ctx)
	case schedule.Lag:
		return r.slot.database.lag(ctx)
	case schedule.DBFailover: // nobody holds anything there any more
		for _, s := range r.customers {
			s.letGoOf()
			s.ordered, s.conn = false, 0
			for _, h := range append(s.underWay(), s.queue...) {
				h.conn = 0
			}
		}
		return r.slot.database.failOver(ctx)
	}
	return fmt.Errorf("no event %q", c.Event)
}

// passLease lets a lease end, and what has ended with it be returned by a shop that looks for it every quarter
// of a lease.
func (r *shopsRun) passLease(ctx context.Context, c schedule.Choice) error {
	if r.plan.Early && c.Event == schedule.Wait && r.onlyInRedis() {
		return r.endEarly(ctx)
	}
	r.waited(r.oneLease())
	return r.shops.sleep(ctx, r.oneLease())
}

// onlyInRedis says whether the lease is that of a key and of nothing else: no process goes by it, and nobody renews it.
func (r *shopsRun) onlyInRedis() bool {
	elsewhere := r.unseen || r.timed || r.keepsElsewhere() || r.of.NeedsQuorum || r.plan.LocalClock || r.plan.OneShop
	return r.lock.TTLMS > 0 && !r.renews && !elsewhere && len(r.of.State.Locks) == 0
}

func (r *shopsRun) endEarly(ctx context.Context) error {
	for _, key := range heldKeys(r.items, r.of.State) {
		if err := r.slot.Redis().Client.Do(ctx, "PEXPIRE", key, 1).Err; err != nil {
			return fmt.Errorf("end the lease: %w", err)
		}
	}
	for {
		if now, err := r.askLock(ctx); err != nil || !now.Locked() {
			return err
		}
		if err := seen.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// oneLease is long enough for that.
func (r *shopsRun) oneLease() time.Duration {
	switch {
	case r.of.NeedsEtcd:
		return r.slot.oneLease() + etcdLate
	case !r.of.State.Scattered():
		return r.slot.oneLease()
	}
	return r.slot.oneLease() + r.lease/2
}

// etcdLate is how much later than its lease a key can vanish: etcd looks for leases that are over twice a
// second.
const etcdLate = 600 * time.Millisecond

func (r *shopsRun) killed(_ context.Context, b *buyer) ([]uint64, error) {
	http.DefaultClient.CloseIdleConnections() // those to the shop are of no use any more
	r.slot.restart(r.at(b).shop)
	if len(b.holds()) == 0 {
		return nil, nil
	}
	return []uint64{r.at(b).conn}, nil
}

func (r *shopsRun) db() *sql.DB { return r.slot.database.store.Pool() }

// count is what MySQL has now, and what Redis had at the last look.
func (r *shopsRun) count(ctx context.Context) (schedule.State, error) {
	now := r.lock
	if r.owner != 0 {
		now.Holder = r.owner.String()
	}
	store := r.slot.database.store
	if r.of.State.Remaining != "" {
		if err := store.Pool().QueryRowContext(ctx, r.of.State.Remaining, r.items[0]).Scan(&now.Elsewhere); err != nil {
			return now, fmt.Errorf("look at the strategy's own rows: %w", err)
		}
	}
	for i, id := range r.items {
		item, err := store.Read(ctx, id)
		if err != nil {
			return now, err
		}
		orders, err := store.ItemOrders(ctx, id)
		if err != nil {
			return now, err
		}
		nth := 0
		if len(r.items) > 1 {
			nth = i + 1
			now.Stocks = append(now.Stocks, item.Stock)
		}
		if i == 0 {
			now.Stock, now.Fence = item.Stock, item.Fence
		}
		for _, o := range orders {
			if o.CancelledAt == nil { // it stands
				now.Orders = append(now.Orders, schedule.Order{ID: o.ID, Customer: r.customerOf(o.RequestID), Item: nth, Read: o.StockRead, Written: o.StockWritten})
			}
		}
	}
	if replica := r.slot.database.replica; replica != nil && r.chosen.Has(schedule.Lag) {
		item, err := replica.Read(ctx, r.items[0])
		if err != nil {
			return now, err
		}
		now.Replica = &item.Stock
	}
	if r.of.State.Whole {
		now.Stock, now.Elsewhere = now.Stock+now.Elsewhere, 0
	}
	if len(r.items) > 1 {
		possession := schedule.Possession{Items: len(r.items)}
		for _, e := range r.entries {
			possession.After(e)
		}
		possession.Put(&now)
	}
	return now, nil
}

// conclude waits for what is still to come, has one ordinary customer buy what is left, and says
// how the run ended.
func (r *shopsRun) conclude(ctx context.Context) (schedule.Record, error) {
	for _, s := range r.customers {
		if s.cut {
			s.shop.Reconnect()
		}
	}
	o := r.outcome()
	end, err := r.lookAtEnd(ctx, &o)
	if err == nil {
		err = r.slot.database.catchUp(ctx)
	}
	if err != nil {
		return schedule.Record{}, err
	}
	note := "all have ended"
	switch {
	case r.plan.Reservations:
		o.Reserved, err = r.paid(ctx)
	case r.plan.Baskets:
		end, note, err = r.othersBuy(ctx, &o)
	case int64(len(o.Orders)) < o.Stock || o.Lies() > 0: // what is sold, time and another customer cannot change
		end, note, err = r.anotherBuys(ctx, &o)
	}
	if err != nil {
		return schedule.Record{}, err
	}
	if r.plan.Observe {
		r.entries[r.note(schedule.Entry{Note: note})].State = &end
	}
	return concluded(r.record(o), end, r.timed || r.keepsElsewhere()), nil
}

// anotherBuys has an ordinary customer buy when two leases have passed, or nothing is held.
func (r *shopsRun) anotherBuys(ctx context.Context, o *schedule.Outcome) (end schedule.State, note string, err error) {
	free := !r.lock.Locked() && !r.timed && !r.keepsElsewhere() && !r.unseen && !r.of.AnswersFirst && len(r.of.State.Locks) == 0
	if note = "nothing is held"; !free || o.Lies() > 0 {
		note, err = "two leases have passed", r.shops.sleep(ctx, 2*r.slot.oneLease())
	}
	if err == nil {
		err = r.slot.restarted(ctx)
	}
	if err != nil {
		return end, note, err
	}
	o.Ordinary = r.buyAsOther(ctx, "-ordinary")
	end, err = r.lookAtEnd(ctx, o)
	return end, note + ", and an ordinary customer was answered with " + o.Ordinary, err
}

// othersBuy has ordinary customers buy both items until one is refused, when two leases have passed or
// nothing is held.
func (r *shopsRun) othersBuy(ctx context.Context, o *schedule.Outcome) (end schedule.State, note string, err error) {
	o.Items = len(r.items)
	if r.lock.Locked() {
		err = r.shops.sleep(ctx, 2*r.slot.oneLease())
	}
	if err == nil {
		err = r.slot.restarted(ctx)
	}
	if err != nil {
		return end, note, err
	}
	for {
		o.Ordinary = r.buyAsOther(ctx, fmt.Sprintf("-ordinary-%d", o.Afterwards))
		if o.Ordinary != string(load.Sold) || o.Afterwards > 2*o.Stock {
			break
		}
		o.Afterwards++
	}
	end, err = r.lookAtEnd(ctx, o)
	return end, fmt.Sprintf("%d ordinary customers bought, and the next one was answered with %s", o.Afterwards, o.Ordinary), err
}

func (r *shopsRun) buyAsOther(ctx context.Context, id string) string {
	return r.slot.buy(ctx, r.customers[len(r.customers)-1].shop.URL, r.items, r.plan.Strategy, r.buyers[0].id+id)
}

// keepsElsewhere says whether the strategy declares that something else than a lock in Redis keeps others
// out.
func (r *shopsRun) keepsElsewhere() bool {
	return len(r.of.State.Keys) > 0 || r.of.State.Scattered() || r.of.Lease.Kept == declared.LeaseInMySQL
}
