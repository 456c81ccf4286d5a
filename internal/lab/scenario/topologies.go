package scenario

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// ofEachKind are strategies that differ in how a sale meets a database that fails over. The others of their kinds end
// as they do.
var ofEachKind = []string{"redis-async", "ack-first", "redis-stream", "reentrant", "get-lock", "fenced", "for-update", "conditional"}

// toServers is what happens to the servers of a database, whatever their topology.
type toServers struct {
	name, doc string
	// attacks is the property without which more is sold than there is, or a sale is answered as sold without an
	// order. 0 attacks the topology alone.
	attacks   declared.Property
	otherwise verdict.Kind
	// forgets says that the primary is lost with what nobody else has. Where the topology is not durable, answers
	// rest on that. A strategy that counts in Redis, and does not recover, leaves the units of a sale that was on
	// its way.
	forgets bool
	only    []string // see [trial.Scenario]
	stock   int64
	play    func(context.Context, *trial.Group) error
}

// happens lists, in the order of the tables, what decides something on which topology.
var happens = []struct {
	on  string
	all []toServers
}{
	{"single", []toServers{{
		name: "failover", doc: "the server is killed, and started again with its disk",
		attacks: declared.DurableAnswers, otherwise: verdict.Lied, forgets: true, stock: 12, play: failOver,
	}}},
	{"async", []toServers{primaryLost, {
		name: "rewind", doc: "a sale has read; its primary is lost with the last sales, and others sell until the version is the same again",
		attacks: declared.RewindProof, otherwise: verdict.Oversold, forgets: true, stock: 24, play: rewound,
	}, {
		name: "switchover", doc: "the replica becomes the primary as planned, and a shop has connections to the old one, which is read-only",
		attacks: declared.SwitchoverProof, otherwise: verdict.Oversold, stock: 3, play: switchOver,
	}, comesBack}},
	{"semi-sync", []toServers{primaryLost, {
		name: "silent", doc: "the replica is silent until customers wait, and is heard again", only: ofEachKind, stock: 12, play: silent,
	}, comesBack}},
	{"semi-sync-timeout", []toServers{primaryLost}},
	{"replica-reads", []toServers{{
		name: late, doc: "the replica has not applied the last sale when the next one reads",
		attacks: declared.ReadsSource, otherwise: verdict.Oversold, stock: 3, play: lateCopy,
	}}},
	{"galera", []toServers{{
		name: "failover", doc: "the node that is written to is killed before the others applied its last commits, and another takes over",
		attacks: declared.DurableAnswers, otherwise: verdict.Lied, forgets: true, stock: 12, play: failOver,
	}, {
		name: "isolated", doc: "the node that is written to is cut off from the others, which go on",
		attacks: declared.DurableAnswers, otherwise: verdict.Lied, forgets: true, only: ofEachKind, stock: 12, play: isolated,
	}}},
	{"galera-writers", []toServers{{
		name: late, doc: "the second node has not applied the last sale when its own shop sells",
		attacks: declared.WritesAnywhere, otherwise: verdict.Oversold, stock: 3, play: lateCopy,
	}}},
}

var (
	primaryLost = toServers{
		name: "failover", doc: "the primary is killed before its last commits were copied, and another server takes over",
		attacks: declared.DurableAnswers, otherwise: verdict.Lied, forgets: true, stock: 12, play: failOver,
	}
	comesBack = toServers{
		name: "errant", doc: "after a failover the old primary comes back with transactions that nobody else has, and a shop is led to it",
		attacks: declared.DurableAnswers, otherwise: verdict.Lied, forgets: true, only: ofEachKind, stock: 12, play: errant,
	}
)

// late is the name of what shows old reads, without any fault.
const late = "late"

// topologies are the scenarios of databases of several servers. Their names begin with that of the topology.
func topologies() (all []trial.Scenario) {
	for _, h := range happens {
		t := &topology.All[slices.IndexFunc(topology.All, func(t topology.Topology) bool { return t.Name == h.on })]
		for _, what := range h.all {
			demands := []trial.Demand{}
			if what.attacks != 0 {
				demands = append(demands, trial.Demand{Property: what.attacks, Otherwise: what.otherwise})
			}
			if what.forgets {
				demands = append(demands, trial.Demand{Durable: true, Otherwise: verdict.Lied},
					trial.Demand{Property: declared.Recovers, Otherwise: verdict.Held, Counted: verdict.Left})
			}
			all = append(all, trial.Scenario{
				Name: t.Name + "-" + what.name, Doc: what.doc, Group: t.Name, Topology: t, Attacks: what.attacks, Demands: demands,
				Only: what.only, Stock: []int64{what.stock}, Few: untilSoldOut(what.play),
			})
		}
	}
	return all
}

// OversellsUnderLoad reports whether a strategy sells by old reads on a topology, without any fault.
func OversellsUnderLoad(on topology.Topology, of declared.Strategy) bool {
	return slices.ContainsFunc(Of(on.Name), func(s trial.Scenario) bool {
		return s.Name == on.Name+"-"+late && s.Expected(of).Verdict == verdict.Oversold
	})
}

// untilSoldOut sells what is left after a play, and asks the servers what they have committed.
func untilSoldOut(play func(context.Context, *trial.Group) error) func(context.Context, *trial.Group) error {
	return func(ctx context.Context, g *trial.Group) error {
		if err := play(ctx, g); err != nil {
			return err
		}
		err := g.Each(ctx, func(ctx context.Context, s *trial.Show) error {
			if err := sellOut(ctx, s); err != nil {
				return err
			}
			return settle(ctx, s)
		})
		if err != nil {
			return err
		}
		return g.Record(ctx)
	}
}

// heldAtRead is what a customer of one unit posts whose sale is held when it has read, with the longest lease there is.
func heldAtRead(shop int) trial.Wish {
	return trial.Wish{Shop: shop, At: sale.Read, Action: labmode.Hold, Lease: labmode.MaxDuration}
}

// sell sells so many units, one after the other, at the first shop: others may have a node of their own, which
// is behind.
func sell(ctx context.Context, s *trial.Show, units int) error {
	for range units {
		if got := s.Buy(ctx, 0, 1); got != load.Sold {
			return fmt.Errorf("a customer before the failure was answered with %s", got)
		}
	}
	return nil
}

// The rest of the stock is sold to customers who come again when they are kept out, each so often at most.
const (
	mostAsks   = 40
	askAgainIn = 50 * time.Millisecond
)

// sellOut sells what is left, one unit after the other, at all shops in turn, until two customers in a row were
// answered as sold out.
func sellOut(ctx context.Context, s *trial.Show) error {
	refused, again := 0, 0
	for n := 0; refused < 2; n++ {
		switch got := s.Buy(ctx, n%len(s.Shops), 1); got {
		case load.Sold:
			refused, again = 0, 0
		case load.SoldOut:
			refused++
		default:
			if again++; again > mostAsks {
				s.Stuck = true
				return nil
			}
			if err := seen.Pause(ctx, askAgainIn); err != nil {
				return err
			}
		}
		if int64(n) > 8*s.Items[0].InitialStock+mostAsks {
			return nil // the counts say enough
		}
	}
	return nil
}

// settle waits until an order was written for every unit that was counted, or nothing is written any more: a worker
// takes over what another one has not written after a lease.
func settle(ctx context.Context, s *trial.Show) error {
	if !s.Of.Counts() {
		return nil
	}
	last, since := int64(-1), time.Now()
	return s.Await(ctx, "nothing is written any more", func() (bool, error) {
		counts, err := audit.Count(ctx, s.Store, s.Items[0])
		if counts.Sold != last {
			last, since = counts.Sold, time.Now()
		}
		return err == nil && (counts.Remaining <= 0 || time.Since(since) > 3*s.Scenario.Settings().Lease), err
	})
}

// failOver sells, keeps the copies behind, sells more, kills the primary, has another server take over, and
// sells what is left. Every strategy has a customer on the way when the primary dies, and one who comes when
// nobody answers.
func failOver(ctx context.Context, g *trial.Group) error {
	takeOver, err := soldAndCutOff(ctx, g, 2)
	if err != nil {
		return err
	}
	waiting := g.OneEach(ctx, func(cell int) (shop int) { return cell })
	if err := g.Await(ctx, "every customer is answered or waits for a copy", func() (bool, error) { return answeredOrWaiting(ctx, g, waiting) }); err != nil {
		return err
	}
	if g.Database.Link != nil {
		if err := remember(ctx, g); err != nil {
			return err
		}
	}
	if err := g.Database.Nodes[0].Kill(); err != nil {
		return err
	}
	g.Note(0, explain.IsKilled, explain.Facts{})
	during := g.OneEach(ctx, func(cell int) (shop int) { return cell + 1 })
	for i := range g.Shows {
		<-waiting[i].Done()
		<-during[i].Done()
	}
	if err := takeOver(ctx); err != nil {
		return err
	}
	return g.ShopsReady(ctx)
}

// answeredOrWaiting reports whether each of these customers has an answer, or has a transaction that waits for
// the replica.
func answeredOrWaiting(ctx context.Context, g *trial.Group, all []*trial.Customer) (bool, error) {
	unanswered := 0
	for _, b := range all {
		if !b.Answered() {
			unanswered++
		}
	}
	if unanswered == 0 || g.Scenario.Topology.Waits != testserver.Forever {
		return unanswered == 0, nil
	}
	commits, err := g.Database.Nodes[0].WaitingCommits(ctx)
	if err != nil {
		return false, err
	}
	for i, b := range all {
		if b.Answered() && g.Shows[i].Of.AnswersFirst {
			commits-- // it may be the order of that one
		}
	}
	return commits >= unanswered, nil
}

// soldAndCutOff sells so many units that every server has, and is [cutOff] then.
func soldAndCutOff(ctx context.Context, g *trial.Group, units int) (takeOver func(context.Context) error, err error) {
	if err := g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, units) }); err != nil {
		return nil, err
	}
	if err := g.Database.Copied(ctx); err != nil {
		return nil, err
	}
	return cutOff(ctx, g)
}

// cutOff keeps what is committed from now on from the server that is going to take over, as far as the topology
// lets it. It returns how that takes over from a dead primary.
func cutOff(ctx context.Context, g *trial.Group) (takeOver func(context.Context) error, err error) {
	if len(g.Database.Nodes) == 1 {
		return func(ctx context.Context) error {
			g.Note(0, explain.IsRestarted, explain.Facts{})
			return g.Database.Nodes[0].Restart(ctx)
		}, nil
	}
	if g.Database.Galera {
		release, err := g.Database.Nodes[1].HoldApplying(ctx)
		if err != nil {
			return nil, err
		}
		g.Note(1, explain.IsBehind, explain.Facts{})
		return func(ctx context.Context) error {
			if err := release(); err != nil {
				return err
			}
			return restGoesOn(ctx, g)
		}, nil
	}
	if err := g.Database.Link.Cut(); err != nil {
		return nil, err
	}
	g.Note(1, explain.IsCut, explain.Facts{})
	return func(ctx context.Context) error { return promote(ctx, g) }, nil
}

// restGoesOn waits until the nodes without the first are a cluster, and leads the shops there.
func restGoesOn(ctx context.Context, g *trial.Group) error {
	rest := len(g.Database.Nodes) - 1
	if err := g.Database.Nodes[1].AwaitMembers(ctx, rest); err != nil {
		return err
	}
	g.Note(1, explain.HasMembers, explain.Facts{Count: rest})
	return leadAll(g, 1)
}

// promote makes the replica the primary, with what it has received, and leads the shops there.
func promote(ctx context.Context, g *trial.Group) error {
	if err := promoted(ctx, g); err != nil {
		return err
	}
	return leadAll(g, 1)
}

func promoted(ctx context.Context, g *trial.Group) error {
	next := g.Database.Nodes[1]
	was, err := next.Replication(ctx)
	if err != nil {
		return err
	}
	if err := next.Promote(ctx); err != nil {
		return err
	}
	g.Received(1, was.Received)
	g.Note(1, explain.IsPromoted, explain.Facts{GTIDs: was.Received})
	return nil
}

// leadAll leads all shops to a server, whose orders count from now on.
func leadAll(g *trial.Group, node int) error {
	g.Database.Lead(node)
	g.TookOver(node)
	g.Note(node, explain.IsFound, explain.Facts{})
	return g.CountOn(node)
}

// remember records what a primary had committed, and whether it waited for its replica then.
func remember(ctx context.Context, g *trial.Group) error {
	committed, err := g.Database.Nodes[0].Committed(ctx)
	if err != nil {
		return fmt.Errorf("ask the primary for what it has committed: %w", err)
	}
	g.Note(0, explain.HasCommitted, explain.Facts{GTIDs: committed})
	if g.Scenario.Topology.Waits == 0 {
		return nil
	}
	return seeWaiting(ctx, g)
}

// seeWaiting records how many commits wait for the replica, or that the primary has stopped to wait for it.
func seeWaiting(ctx context.Context, g *trial.Group) error {
	waits, err := g.Database.Nodes[0].AwaitsReplica(ctx)
	if err != nil {
		return err
	}
	commits, err := g.Database.Nodes[0].WaitingCommits(ctx)
	if err != nil {
		return err
	}
	switch {
	case waits && g.Scenario.Topology.Waits == topology.ShortPatience:
		return fmt.Errorf("%w: the primary goes on alone", trial.ErrNotSeen)
	case waits:
		g.Waited(0, commits)
		g.Note(0, explain.CommitsWait, explain.Facts{Count: commits})
	default:
		g.WentAlone(0)
		g.Note(0, explain.GoesOnAlone, explain.Facts{})
	}
	return nil
}

// rewound has a sale read at the old primary, after sales that the new one never gets. At the new one others sell
// twice as many units in as many sales, so that the version is the same and the stock is not. Then the sale goes
// on.
func rewound(ctx context.Context, g *trial.Group) error {
	const sales = 4
	takeOver, err := soldAndCutOff(ctx, g, sales)
	if err != nil {
		return err
	}
	reading := make([]*trial.Customer, len(g.Shows))
	err = g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, sales) })
	if err != nil {
		return err
	}
	if err := g.LogReads(ctx); err != nil {
		return err
	}
	for i, s := range g.Shows {
		b := s.Ask(ctx, heldAtRead(0))
		reading[i] = b
		if err := g.Await(ctx, s.Of.Name+": the sale has read or is answered", func() (bool, error) { return s.Reached(b) || b.Answered(), nil }); err != nil {
			return err
		}
		if s.Reached(b) {
			if err := s.HasRead(ctx, b); err != nil {
				return err
			}
		}
	}
	if err := remember(ctx, g); err != nil {
		return err
	}
	if err := g.Database.Nodes[0].Kill(); err != nil {
		return err
	}
	g.Note(0, explain.IsKilled, explain.Facts{})
	if err := takeOver(ctx); err != nil {
		return err
	}
	if err := g.ShopsReady(ctx); err != nil {
		return err
	}
	err = g.Each(ctx, func(ctx context.Context, s *trial.Show) error {
		for range sales {
			if got := s.Buy(ctx, 1, 2); got != load.Sold {
				break // P keeps the others out
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, b := range reading {
		g.Shows[i].Release(ctx, b)
		<-b.Done()
	}
	return nil
}

// switchOver makes the replica the primary as it is planned: the old one takes no writes any more, the replica gets
// everything, and new connections find it. The old one goes on, with its connections. A comes to the first shop, whose
// sales are refused until it connects anew, and buys the last unit. B comes to the second shop, which has its old
// connections only: a read is answered there. B is held when it has read. Another sale of the shop finds out, which
// ends the old connections, and B goes on.
func switchOver(ctx context.Context, g *trial.Group) error {
	err := g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, int(s.Items[0].InitialStock)-1) })
	if err != nil {
		return err
	}
	other, err := g.Beside(ctx, finder, int64(mostAsks*(1+len(g.Shows))))
	if err != nil {
		return err
	}
	if err := g.LogReads(ctx); err != nil {
		return err
	}
	old, primary := g.Database.Nodes[0], g.Database.Nodes[1]
	if err := old.RefuseWrites(ctx); err != nil {
		return err
	}
	g.Note(0, explain.IsReadOnly, explain.Facts{})
	if err := g.Database.Copied(ctx); err != nil {
		return err
	}
	if err := promoted(ctx, g); err != nil {
		return err
	}
	for _, front := range g.Database.Fronts {
		front.LeadNew(primary.Addr)
	}
	g.TookOver(1)
	g.Note(1, explain.IsFoundByNew, explain.Facts{})
	if err := g.CountOn(1); err != nil {
		return err
	}
	for _, s := range g.Shows {
		s.Fail(buyInTheEnd(ctx, s, 0))
	}
	const second = 1
	front := g.Database.Fronts[second]
	for _, s := range g.Shows {
		if err := connectAnew(ctx, g, second, old.Addr, other.Items[0]); err != nil { // the cell before has ended the old connections
			return err
		}
		s.Note(0, explain.HasConnections, explain.Facts{Shop: explain.ShopName(second)})
		b := s.Ask(ctx, heldAtRead(second))
		if err := g.Await(ctx, s.Of.Name+": B has read or is answered", func() (bool, error) { return s.Reached(b) || b.Answered(), nil }); err != nil {
			return err
		}
		if s.Reached(b) {
			if err := s.HasRead(ctx, b); err != nil {
				return err
			}
		}
		front.LeadNew(primary.Addr)
		if err := buyInTheEnd(ctx, other, second); err != nil {
			return err
		}
		s.Note(1, explain.IsFound, explain.Facts{Shop: explain.ShopName(second)})
		s.Release(ctx, b)
		<-b.Done()
	}
	return g.ShopsReady(ctx)
}

// finder is a strategy whose sale begins with a write, so that it is refused where the server is read-only. The shop
// then closes its idle connections.
const finder = "conditional"

// connectAnew closes the connections of a shop, and has it make new ones to a server: it shows an item.
func connectAnew(ctx context.Context, g *trial.Group, shop int, addr string, item audit.Run) error {
	g.Database.Fronts[shop].Lead(addr)
	return g.Await(ctx, "the shop reads again", func() (bool, error) {
		err := load.View(ctx, load.Order{Shop: g.Shops[shop].URL, ItemID: item.ItemID, Strategy: finder, Run: item.ID})
		return err == nil, err
	})
}

// buyInTheEnd buys a unit at a shop, which may refuse it until it has found the server that takes writes.
func buyInTheEnd(ctx context.Context, s *trial.Show, shop int) error {
	for range mostAsks {
		switch got := s.Buy(ctx, shop, 1); got {
		case load.Sold:
			return nil
		case load.SoldOut:
			return fmt.Errorf("%w: a customer buys at shop %d, and was answered with %s", trial.ErrNotSeen, shop+1, got)
		}
	}
	return fmt.Errorf("%w: a customer buys at shop %d, and was never answered as sold", trial.ErrNotSeen, shop+1)
}

// silent has the replica silent, and a customer of each strategy come. When all of them wait for it, the replica
// is heard again, and they are answered. Nothing fails over.
func silent(ctx context.Context, g *trial.Group) error {
	if _, err := soldAndCutOff(ctx, g, 2); err != nil {
		return err
	}
	waiting := g.OneEach(ctx, func(cell int) (shop int) { return cell })
	if err := g.Await(ctx, "every customer is answered or waits for the replica", func() (bool, error) { return answeredOrWaiting(ctx, g, waiting) }); err != nil {
		return err
	}
	if err := remember(ctx, g); err != nil {
		return err
	}
	for i, b := range waiting {
		if s := g.Shows[i]; b.Answered() && !s.Of.AnswersFirst {
			s.Fail(fmt.Errorf("%w: the customer waits for the replica, and was answered with %s", trial.ErrNotSeen, b.Got()))
		}
	}
	g.Database.Link.Heal()
	g.Note(1, explain.ReceivesAgain, explain.Facts{})
	for _, b := range waiting {
		<-b.Done()
	}
	return g.Database.Copied(ctx)
}

// lastShop is the one that is led to the primary which comes back.
const lastShop = topology.Shops - 1

// errant is [failOver]. Then the old primary comes back with its disk, and with transactions that nobody else has.
// It takes itself for the primary, and a shop is led to it. A customer of each strategy comes to that shop.
func errant(ctx context.Context, g *trial.Group) error {
	if err := failOver(ctx, g); err != nil {
		return err
	}
	// What is to be written of the sales before is written on the new primary first. On the old one, a worker would find
	// the order of a sale whose answer it never got, and take it for written.
	if err := g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return settle(ctx, s) }); err != nil {
		return err
	}
	old, primary := g.Database.Nodes[0], g.Database.Nodes[1]
	if err := old.Restart(ctx); err != nil {
		return err
	}
	g.CameBack()
	g.Note(0, explain.IsRestarted, explain.Facts{})
	committed, err := old.Committed(ctx)
	if err != nil {
		return err
	}
	g.Note(0, explain.HasCommitted, explain.Facts{GTIDs: committed})
	g.Database.Fronts[lastShop].Lead(old.Addr)
	g.Note(0, explain.IsFound, explain.Facts{Shop: explain.ShopName(lastShop)})
	misled := g.OneEach(ctx, func(int) int { return lastShop })
	if err := g.Await(ctx, "every customer is answered or waits for a replica", func() (bool, error) { return answeredOrWaiting(ctx, g, misled) }); err != nil {
		return err
	}
	g.Database.Fronts[lastShop].Lead(primary.Addr)
	g.Note(1, explain.IsFound, explain.Facts{Shop: explain.ShopName(lastShop)})
	for _, b := range misled {
		<-b.Done()
	}
	if err := old.Kill(); err != nil {
		return err
	}
	g.Note(0, explain.IsKilled, explain.Facts{})
	return g.ShopsReady(ctx)
}

// lateCopy has A buy the last unit through the first server, and B through the second shop before the copy has that. B
// is held when it has read. Then the copy catches up, B goes on, and others buy what seems to be left.
func lateCopy(ctx context.Context, g *trial.Group) error {
	for _, s := range g.Shows { // one by one: where GET_LOCK goes to the replica, sales that share connections keep the lock
		for range s.Items[0].InitialStock - 1 { // of which no customer reads an old stock
			s.Fail(sell(ctx, s, 1))
			if err := g.Database.Copied(ctx); err != nil {
				return err
			}
		}
	}
	if err := g.LogReads(ctx); err != nil {
		return err
	}
	release, err := g.Database.HoldCopies(ctx)
	if err != nil {
		return err
	}
	g.Note(1, explain.IsBehind, explain.Facts{})
	for _, s := range g.Shows {
		if got := s.Buy(ctx, 0, 1); got != load.Sold {
			s.Fail(fmt.Errorf("customer A was answered with %s", got))
		}
	}
	second := make([]*trial.Customer, len(g.Shows))
	committing := 0 // of those who have come before
	for i, s := range g.Shows {
		b := s.Ask(ctx, heldAtRead(1))
		second[i] = b
		err := g.Await(ctx, s.Of.Name+": B has read, is answered or waits in MySQL", func() (bool, error) {
			if s.Reached(b) || b.Answered() {
				return true, nil
			}
			waits, commits, err := waitsAtCopy(ctx, g, s.Items[0].ItemID)
			if commits > committing {
				committing = commits
				return true, nil
			}
			return waits, err
		})
		if err != nil {
			return err
		}
		if s.Reached(b) || b.Answered() {
			if err := s.HasRead(ctx, b); err != nil {
				return err
			}
		}
	}
	if err := release(ctx); err != nil {
		return err
	}
	if err := g.Database.Copied(ctx); err != nil {
		return err
	}
	g.Note(1, explain.HasCaughtUp, explain.Facts{})
	for i, b := range second {
		g.Shows[i].Release(ctx, b)
		<-b.Done()
	}
	return nil
}

// waitsAtCopy reports whether a statement about the item waits for a row at the second server, and how many
// commits of shops wait there.
func waitsAtCopy(ctx context.Context, g *trial.Group, item uint64) (waits bool, commits int, err error) {
	statements, commits, err := g.Database.Nodes[1].Waiting(ctx)
	of := regexp.MustCompile(fmt.Sprintf(`\b%d\b`, item))
	return slices.ContainsFunc(statements, of.MatchString), commits, err
}

// isolated cuts the node off that all shops write to. A customer of each strategy comes then, and one when the node
// knows that it is alone. It refuses both, and the other nodes go on.
func isolated(ctx context.Context, g *trial.Group) error {
	if err := g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, 2) }); err != nil {
		return err
	}
	if err := g.Database.Copied(ctx); err != nil {
		return err
	}
	node := g.Database.Nodes[0]
	if err := node.Isolate(ctx); err != nil {
		return err
	}
	g.Note(0, explain.IsIsolated, explain.Facts{})
	waiting := g.OneEach(ctx, func(cell int) (shop int) { return cell })
	if err := node.AwaitNotReady(ctx); err != nil {
		return err
	}
	g.Note(0, explain.IsNotReady, explain.Facts{})
	refused := g.OneEach(ctx, func(cell int) (shop int) { return cell + 1 })
	for i, s := range g.Shows {
		<-waiting[i].Done()
		<-refused[i].Done()
		if got := refused[i].Got(); got == load.Sold && !s.Of.AnswersFirst {
			s.Fail(fmt.Errorf("%w: the node is alone and refuses sales, and a customer was answered with %s", trial.ErrNotSeen, got))
		}
	}
	if err := restGoesOn(ctx, g); err != nil {
		return err
	}
	return g.ShopsReady(ctx)
}
