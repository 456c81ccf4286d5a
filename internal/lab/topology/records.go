package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// history is what the servers say of themselves. Explanations are made of it.
type history struct {
	of       []serverHistory
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

// tookOver notes that another server is the primary now.
func (g *group) tookOver(node int) {
	if node > 0 {
		g.replaced = time.Now()
	}
}

// cameBack notes that a primary which was replaced is there again.
func (g *group) cameBack() { g.returned = time.Now() }

// logReads has the servers log the statements of shops.
func (g *group) logReads(ctx context.Context) error {
	for _, node := range g.nodes {
		if err := node.LogStatements(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hasRead records where a sale has read that is held after that, or is answered. The servers log reads: see logReads.
func (c *cell) hasRead(ctx context.Context, b *buyer) error {
	c.reader = b
	c.atRead = make([]explain.DatabaseServer, len(c.nodes))
	for i, node := range c.nodes {
		statements, err := node.Statements(ctx, c.item.ItemID, b.sent)
		if err != nil {
			return err
		}
		server := explain.DatabaseServer{Statements: statements}
		if server.Read() && b.held() {
			c.note(i, explain.HasRead, explain.Facts{Holder: b.named(), Stock: b.stockRead()})
		}
		if server.Orders, err = node.OrdersOf(ctx, c.item.ItemID); err != nil {
			return err
		}
		if i == c.counts && b.isAnswered() && b.answer.Outcome == load.Sold {
			server.Orders-- // its own came after the read
		}
		c.atRead[i] = server
	}
	return nil
}

func (b *buyer) named() *explain.Sale {
	return &explain.Sale{Request: "#" + b.request[strings.LastIndexByte(b.request, '-')+1:], Shop: explain.ShopName(b.shop)}
}

// stockRead is the stock that the sale has read, as its shop's trace says.
func (b *buyer) stockRead() (read int64) {
	b.cell.points.Count(func(e labmode.Event) bool {
		if n, ok := e.Facts["stock"].(json.Number); ok && e.Request == b.request && e.Point == sale.Read {
			read, _ = n.Int64()
		}
		return false
	})
	return read
}

// ordered is the statement that makes an order, in which the request has quotes.
var ordered, quoted = regexp.MustCompile("^INSERT INTO `?orders`?"), regexp.MustCompile(`'(\d+)-\d+'`)

// record asks the servers what they have committed. One that was killed is started again for that, and no shop
// is led to it.
func (g *group) record(ctx context.Context) error {
	for i, node := range g.nodes {
		h := &g.history.of[i]
		if g.galera {
			if !node.Alive() {
				continue
			}
			var err error
			if h.CertFailures, h.Aborts, err = node.Certification(ctx); err != nil {
				return err
			}
		}
		if g.link == nil {
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
					var item uint64
					if _, err := fmt.Sscan(request[1], &item); err != nil {
						return err
					}
					h.transactions[item] = append(h.transactions[item], explain.OrderTransaction{GTID: t.GTID, Request: strings.Trim(request[0], "'")})
				}
			}
		}
	}
	return nil
}

// explain adds the servers' records to the result, and the explanation that follows from them.
func (c *cell) explain(r *trial.Result, orders map[string]stock.Order) {
	e := explain.ServersEvidence{
		Verdict: r.Verdict, InitialStock: r.InitialStock, Counts: c.counts, Reader: -1, Notes: c.notes, Returned: c.returned, Replaced: c.replaced,
		Units: int(r.Sold),
	}
	for i, h := range c.history.of {
		server := h.DatabaseServer
		server.Transactions = h.transactions[c.item.ItemID]
		if c.atRead != nil {
			server.Statements, server.Orders = c.atRead[i].Statements, c.atRead[i].Orders
		}
		e.Servers = append(e.Servers, server)
	}
	for i, b := range c.buyers {
		if b == c.reader {
			e.Reader, e.Read = i, orders[b.request].StockRead
		}
		e.Sales = append(e.Sales, explain.ServersSale{
			Request: b.request, Shop: explain.ShopName(b.shop), Server: b.server, Sent: b.sent, Answered: b.answered,
			Outcome: string(b.answer.Outcome), Order: orders[b.request].ID,
		})
	}
	r.Servers, r.Explanation = e.Servers, explain.ExplainServers(e)
}
