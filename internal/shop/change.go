package shop

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// wish is a change that a request asks for.
type wish struct {
	same func(stock.Change) bool // whether this is the change that it asks for
	make func(ctx context.Context, by stock.Author) (stock.Change, error)
	show func(stock.Change)
}

// change makes a handler from a function that reads a wish from a request. The change is made once,
// as in [Shop.sellOnce], but its key is never cleared.
func (s *Shop) change(read func(*gin.Context) (wish, error)) gin.HandlerFunc {
	return s.handle(func(c *gin.Context) error {
		asked, err := read(c)
		if err != nil {
			return err
		}
		by, err := s.author(c)
		if err != nil {
			return err
		}
		before := func(ctx context.Context, failed error) (stock.Change, error) {
			made, err := look(ctx, s.store, failed, func(at *stock.Store) (stock.Change, error) {
				return at.ChangeByKey(ctx, by.Subject, by.IdempotencyKey)
			})
			if err == nil && !asked.same(made) {
				err = errKeyReused
			}
			return made, err
		}
		replayed := false
		made, err := inSlot(s, c, s.slotsOf(c), func(ctx context.Context) (made stock.Change, err error) {
			made, replayed, err = once(ctx, before, func(ctx context.Context) (stock.Change, error) { return asked.make(ctx, by) })
			return made, err
		})
		if err != nil {
			return err
		}
		author := "" // no customer is in the log
		if c.GetBool(forStaff) {
			author = by.Subject
		}
		s.Log.InfoContext(c.Request.Context(), "changed", "action", made.Action, "item", made.ItemID, "subject", author,
			"stock_before", made.StockBefore, "stock_after", made.StockAfter, "request", by.RequestID, "replayed", replayed)
		if replayed {
			c.Header(ReplayedHeader, "true")
		}
		asked.show(made)
		return nil
	})
}

// slotsOf returns where a change takes its slot: the staff takes none from customers.
func (s *Shop) slotsOf(c *gin.Context) *slots {
	if c.GetBool(forStaff) {
		return s.changes
	}
	return s.sales
}

// author reads the author of a change and its key. Both are required: an audit without a name
// proves nothing, and a repeated restock without a key counts twice.
func (s *Shop) author(c *gin.Context) (by stock.Author, err error) {
	by = stock.Author{RequestID: requestID(c), Shop: s.Name}
	if by.Subject, err = s.subject(c); err != nil {
		return by, err
	}
	if by.Subject == "" {
		return by, refusal{malformed, "a change is made only for somebody whom a gateway names"}
	}
	if by.IdempotencyKey, err = requestKey(c.Request.Header, by.Subject); err != nil {
		return by, err
	}
	if by.IdempotencyKey == "" {
		return by, refusal{malformed, "send an " + IdempotencyKeyHeader + ": a change that is repeated under it is made once"}
	}
	return by, nil
}

type newItem struct {
	Name  string `json:"name" range:"min=1,max=100,named"`
	Stock *whole `json:"stock" range:"required,stocked"`
}

func (newItem) example() string { return `{"name": "book", "stock": 10}` }

func (newItem) ranges() string { return rename{}.ranges() + ", and " + correction{}.ranges() }

func (s *Shop) readNewItem(c *gin.Context) (wish, error) {
	body, err := readBody[newItem](c)
	return wish{
		same: func(is stock.Change) bool {
			return is.Action == stock.Created && is.NameAfter == body.Name && is.StockAfter == int64(*body.Stock)
		},
		make: func(ctx context.Context, by stock.Author) (stock.Change, error) {
			return s.store.Add(ctx, by, body.Name, int64(*body.Stock))
		},
		show: func(made stock.Change) {
			c.Header("Location", fmt.Sprintf("%s/items/%d", apiPrefix, made.ItemID))
			showItem(c, http.StatusCreated, made.Item())
		},
	}, err
}

type rename struct {
	Name string `json:"name" range:"min=1,max=100,named"`
}

func (rename) example() string { return `{"name": "book"}` }

func (rename) ranges() string {
	return "name must have 1 to 100 characters that can be seen, and no space at its ends"
}

func (s *Shop) readRename(c *gin.Context) (wish, error) {
	item, seen, err := itemAsSeen(c)
	if err != nil {
		return wish{}, err
	}
	body, err := readBody[rename](c)
	return wish{
		same: func(is stock.Change) bool {
			return is.Action == stock.Renamed && is.ItemID == item && is.NameAfter == body.Name
		},
		make: func(ctx context.Context, by stock.Author) (stock.Change, error) {
			return s.store.Rename(ctx, by, item, seen, body.Name)
		},
		show: func(made stock.Change) { showItem(c, http.StatusOK, made.Item()) },
	}, err
}

type restock struct {
	Quantity whole `json:"quantity" range:"restocked"`
}

func (restock) example() string { return `{"quantity": 10}` }

func (restock) ranges() string {
	return fmt.Sprintf("quantity must be a whole number from 1 to %d", stock.MaxStock)
}

func (s *Shop) readRestock(c *gin.Context) (wish, error) {
	item, err := pathNumber(c, "item")
	if err != nil {
		return wish{}, err
	}
	body, err := readBody[restock](c)
	return wish{
		same: func(is stock.Change) bool {
			return is.Action == stock.Restocked && is.ItemID == item && is.StockAfter-is.StockBefore == int64(body.Quantity)
		},
		make: func(ctx context.Context, by stock.Author) (stock.Change, error) {
			return s.store.Restock(ctx, by, item, int64(body.Quantity))
		},
		show: func(made stock.Change) { showItem(c, http.StatusOK, made.Item()) },
	}, err
}

type correction struct {
	Stock *whole `json:"stock" range:"required,stocked"`
}

func (correction) example() string { return `{"stock": 10}` }

func (correction) ranges() string {
	return fmt.Sprintf("stock must be a whole number from 0 to %d", stock.MaxStock)
}

func (s *Shop) readCorrection(c *gin.Context) (wish, error) {
	item, seen, err := itemAsSeen(c)
	if err != nil {
		return wish{}, err
	}
	body, err := readBody[correction](c)
	if err != nil {
		return wish{}, err
	}
	if seen == nil {
		return wish{}, refusal{versionRequired, "send If-Match with the ETag of the item whose stock was counted"}
	}
	return wish{
		same: func(is stock.Change) bool {
			return is.Action == stock.Corrected && is.ItemID == item && is.StockAfter == int64(*body.Stock) && seen(is.Before())
		},
		make: func(ctx context.Context, by stock.Author) (stock.Change, error) {
			return s.store.Correct(ctx, by, item, seen, int64(*body.Stock))
		},
		show: func(made stock.Change) { showItem(c, http.StatusOK, made.Item()) },
	}, nil
}

// readOffer returns a function that reads the wish to withdraw an item, or to offer it again. The request has
// no body.
func (s *Shop) readOffer(action stock.Action) func(*gin.Context) (wish, error) {
	return func(c *gin.Context) (wish, error) {
		item, err := pathNumber(c, "item")
		return wish{
			same: func(is stock.Change) bool { return is.Action == action && is.ItemID == item },
			make: func(ctx context.Context, by stock.Author) (stock.Change, error) {
				return s.store.Offer(ctx, by, item, action)
			},
			show: func(made stock.Change) { showItem(c, http.StatusOK, made.Item()) },
		}, err
	}
}

// readOwnCancellation reads the request of a customer, which has no body.
func (s *Shop) readOwnCancellation(c *gin.Context) (wish, error) {
	subject, err := s.subject(c)
	if err != nil {
		return wish{}, err
	}
	order, err := s.orderToCancel(c, func(order stock.Order) bool { return subject != "" && order.Subject == subject })
	if err != nil {
		return wish{}, err
	}
	asked := s.cancellation(c, order, stock.CancelledOwn, order.Rows())
	cancel := asked.make
	asked.make = func(ctx context.Context, by stock.Author) (stock.Change, error) {
		if s.store.Now().Sub(order.CreatedAt) > s.CancelWithin {
			return stock.Change{}, refusal{tooLate, fmt.Sprintf("a customer may cancel an order for %s", s.CancelWithin)}
		}
		return cancel(ctx, by)
	}
	return asked, nil
}

// readCancellation reads a request that has no body.
func (s *Shop) readCancellation(c *gin.Context) (wish, error) {
	order, err := s.orderToCancel(c, anyOrder)
	if err != nil {
		return wish{}, err
	}
	return s.cancellation(c, order, stock.Cancelled, order.Rows()), nil
}

// readLineCancellation reads a request that has no body, for the line of one item.
func (s *Shop) readLineCancellation(c *gin.Context) (wish, error) {
	item, err := pathNumber(c, "item")
	if err != nil {
		return wish{}, err
	}
	order, err := s.orderToCancel(c, anyOrder)
	if err != nil {
		return wish{}, err
	}
	row, ok := order.Row(item)
	if !ok {
		return wish{}, refusal{notFound, "the order has no line with this item"}
	}
	return s.cancellation(c, order, stock.CancelledLine, []stock.Order{row}), nil
}

func anyOrder(stock.Order) bool { return true }

// orderToCancel returns the order of the path. One that the client may not see is not found.
func (s *Shop) orderToCancel(c *gin.Context, visible func(stock.Order) bool) (stock.Order, error) {
	id, err := pathOrder(c)
	if err != nil {
		return stock.Order{}, err
	}
	order, err := inSlot(s, c, s.slotsOf(c), func(ctx context.Context) (stock.Order, error) {
		return find(ctx, s.store, func(at *stock.Store) (stock.Order, error) { return at.Order(ctx, id) })
	})
	if err != nil {
		return stock.Order{}, err
	}
	if !visible(order) {
		return stock.Order{}, stock.ErrNotFound
	}
	if !strategy.FitForProduction(order.Strategy) {
		return stock.Order{}, refusal{invalid, fmt.Sprintf("the order was made by the strategy %s of the lab, whose stock may be elsewhere", order.Strategy)}
	}
	return order, nil
}

// cancellation is the wish to cancel these rows of an order.
func (s *Shop) cancellation(c *gin.Context, order stock.Order, action stock.Action, rows []stock.Order) wish {
	has := func(rows []stock.Order, id uint64) bool {
		return slices.ContainsFunc(rows, func(row stock.Order) bool { return row.ID == id })
	}
	return wish{
		same: func(is stock.Change) bool { return is.Action == action && has(rows, *is.OrderID) },
		make: func(ctx context.Context, by stock.Author) (stock.Change, error) {
			return s.store.Cancel(ctx, by, action, rows)
		},
		show: func(made stock.Change) {
			all := order.Rows()
			for i := range all {
				if all[i].CancelledAt == nil && has(rows, all[i].ID) {
					all[i].CancelledAt = &made.CreatedAt
				}
			}
			shown := all[0]
			shown.More = all[1:]
			c.JSON(http.StatusOK, s.show(shown))
		},
	}
}

// itemAsSeen reads the item of a request, and how the client has seen it.
func itemAsSeen(c *gin.Context) (item uint64, seen stock.Seen, err error) {
	if item, err = pathNumber(c, "item"); err != nil {
		return 0, nil, err
	}
	seen, err = seenItem(c.Request.Header)
	return item, seen, err
}
