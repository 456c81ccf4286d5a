package trial

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// history is what the servers say of themselves. Explanations are made of it.
type history struct {
	of       []serverHistory
	counts   int       // the server whose orders count
	replaced time.Time // when another server took over; zero for never
	returned time.Time // when the one that was replaced came back; zero for never
}

type serverHistory struct {
	explain.DatabaseServer
	transactions map[uint64][]explain.OrderTransaction // by item
}

func newHistory(servers int) history {
	h := history{of: make([]serverHistory, servers)}
	for i := range h.of {
		h.of[i] = serverHistory{explain.DatabaseServer{Name: fmt.Sprintf("MySQL %d", i+1)}, map[uint64][]explain.OrderTransaction{}}
	}
	return h
}

// TookOver notes that another server is the primary now, and how the shops found it. Its orders count from now on.
func (g *Group) TookOver(node int, found string) error {
	g.replaced, g.counts = time.Now(), node
	g.Note(node, found, explain.Facts{})
	store, err := stock.Open(g.Database.Nodes[node].DSN())
	if err != nil {
		return err
	}
	_ = g.Store.Close() // its server may be dead
	g.Store = store
	return nil
}

// CameBack notes that a primary which was replaced is there again.
func (g *Group) CameBack(node int) {
	g.returned = time.Now()
	g.Note(node, explain.IsRestarted, explain.Facts{})
}

// Note adds to the records of all cells what a server did or met, and to its own what decides there.
func (g *Group) Note(server int, what string, f explain.Facts) {
	h := &g.history.of[server]
	switch what {
	case explain.IsPromoted:
		h.Received = f.GTIDs
	case explain.CommitsWait:
		h.Waiting = f.Count
	case explain.GoesOnAlone:
		h.Alone = true
	}
	for _, s := range g.Shows {
		s.Note(server, what, f)
	}
	if g.o.Told != nil {
		g.o.Told(words.Of("story.server", "server", h.Name, "what", words.Text{Key: what, Facts: f}))
	}
}

// LogReads has the servers log the statements of shops.
func (g *Group) LogReads(ctx context.Context) error {
	for _, node := range g.Database.Nodes {
		if err := node.LogStatements(ctx); err != nil {
			return err
		}
	}
	return nil
}

// HasRead records where a sale has read that is held after that, or is answered. The servers log reads: see LogReads.
func (s *Show) HasRead(ctx context.Context, c *Customer) error {
	s.reader = c
	s.atRead = make([]explain.DatabaseServer, len(s.Database.Nodes))
	for i, node := range s.Database.Nodes {
		statements, err := node.Statements(ctx, s.Items[0].ItemID, c.scheduled)
		if err != nil {
			return err
		}
		server := explain.DatabaseServer{Statements: statements}
		if server.Read() && s.Reached(c) {
			s.Note(i, explain.HasRead, explain.Facts{Holder: c.named(), Stock: s.stockRead(c)})
		}
		if server.Orders, err = node.OrdersOf(ctx, s.Items[0].ItemID); err != nil {
			return err
		}
		if i == s.counts && c.Got() == load.Sold {
			server.Orders-- // its own came after the read
		}
		s.atRead[i] = server
	}
	return nil
}

func (h *Customer) named() *explain.Sale {
	return &explain.Sale{Request: explain.Label(h.id), Shop: explain.ShopName(h.shop)}
}

// stockRead is the stock that the sale has read, as its shop's trace says.
func (s *Show) stockRead(c *Customer) (read int64) {
	s.feed.count(func(e labmode.Event) bool {
		if n, ok := explain.NumberOf(e.Facts, "stock"); ok && e.Request == c.id && e.Point == sale.Read {
			read = n
		}
		return false
	})
	return read
}

// ordered is the statement that makes an order, in which the request has quotes.
var ordered, quoted = regexp.MustCompile("^INSERT INTO `?orders`?"), regexp.MustCompile(`'(\d+)-\d+'`)

// Record asks the servers what they have committed. One that was killed is started again for that, and no shop
// is led to it.
func (g *Group) Record(ctx context.Context) error {
	for i, node := range g.Database.Nodes {
		h := &g.history.of[i]
		if g.Database.Galera {
			if !node.Alive() {
				continue
			}
			var err error
			if h.CertFailures, h.Aborts, err = node.Certification(ctx); err != nil {
				return err
			}
		}
		if g.Database.Link == nil {
			continue
		}
		if !node.Alive() {
			if err := node.Restart(ctx); err != nil {
				return err
			}
		}
		var err error
		if h.Committed, err = node.Committed(ctx); err != nil {
			return err
		}
		transactions, err := node.Transactions(ctx)
		if err != nil {
			return err
		}
		for _, t := range transactions {
			for _, statement := range t.Statements {
				if !ordered.MatchString(statement) {
					continue
				}
				for _, request := range quoted.FindAllStringSubmatch(statement, -1) {
					item, err := strconv.ParseUint(request[1], 10, 64)
					if err != nil {
						return err
					}
					h.transactions[item] = append(h.transactions[item], explain.OrderTransaction{GTID: t.GTID, Request: strings.Trim(request[0], "'")})
				}
			}
		}
	}
	return nil
}

// explainServers adds the servers' records to the result, and the explanation that follows from them.
func (s *Show) explainServers(ctx context.Context, r *Result) error {
	all, err := s.Store.ItemOrders(ctx, s.Items[0].ItemID)
	if err != nil {
		return err
	}
	orders := map[string]stock.Order{}
	for _, o := range all {
		if o.CancelledAt == nil {
			orders[o.RequestID] = o
		}
	}
	e := explain.ServersEvidence{
		Verdict: r.Verdict, InRedis: len(s.Of.State.Keys) > 0, AnswersFirst: s.Of.AnswersFirst, InitialStock: r.InitialStock, Counts: s.counts, Reader: -1, Notes: s.notes, Returned: s.returned, Replaced: s.replaced,
		Units: int(r.Sold),
	}
	for i, h := range s.history.of {
		server := h.DatabaseServer
		server.Transactions = h.transactions[s.Items[0].ItemID]
		if s.atRead != nil {
			server.Statements, server.Orders = s.atRead[i].Statements, s.atRead[i].Orders
		}
		e.Servers = append(e.Servers, server)
	}
	for i, c := range s.customers.hits {
		if c == s.reader {
			e.Reader, e.Read = i, orders[c.id].StockRead
		}
		e.Sales = append(e.Sales, explain.ServersSale{
			Request: c.id, Shop: explain.ShopName(c.shop), Server: c.server, Sent: c.scheduled, Answered: c.answeredAt(),
			Outcome: string(c.Outcome), Order: orders[c.id].ID,
		})
	}
	r.Servers, r.Explanation = e.Servers, explain.ExplainServers(e)
	return nil
}
