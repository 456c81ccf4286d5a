package shop

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
)

// How many items a page of the list has.
const (
	defaultPage = 50
	maxPage     = 500
)

type itemList struct {
	Items []stock.Item `json:"items"`
	Next  string       `json:"next,omitempty"` // where the list goes on
}

func (s *Shop) getItems(c *gin.Context) {
	after, err := queryNumber(c, "after", 0, 0, math.MaxUint64)
	if err != nil {
		s.fail(c, err)
		return
	}
	limit, err := queryNumber(c, "limit", defaultPage, 1, maxPage)
	if err != nil {
		s.fail(c, err)
		return
	}
	items, err := inPlace(s, c, func(ctx context.Context) ([]stock.Item, error) { return s.store.Items(ctx, after, int(limit)) })
	if err != nil {
		s.fail(c, err)
		return
	}
	list := itemList{Items: items}
	if len(items) == int(limit) {
		list.Next = fmt.Sprintf("/api/v1/items?after=%d&limit=%d", items[len(items)-1].ID, limit)
	}
	c.JSON(http.StatusOK, list)
}

func (s *Shop) getItem(c *gin.Context) {
	id, err := pathNumber(c, "item")
	if err != nil {
		s.fail(c, err)
		return
	}
	item, err := inPlace(s, c, func(ctx context.Context) (stock.Item, error) { return s.store.Read(ctx, id) })
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, item)
}

func pathNumber(c *gin.Context, name string) (uint64, error) {
	n, err := strconv.ParseUint(c.Param(name), 10, 64)
	if err != nil {
		return 0, outOfRange(malformed, "the "+name+" id", 0, math.MaxUint64, c.Param(name))
	}
	return n, nil
}

// queryNumber reads a parameter that may be left out.
func queryNumber(c *gin.Context, name string, missing, least, most uint64) (uint64, error) {
	text, given := c.GetQuery(name)
	if !given {
		return missing, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, outOfRange(malformed, name, least, most, text)
	}
	if n < least || n > most {
		return 0, outOfRange(invalid, name, least, most, text)
	}
	return n, nil
}

func outOfRange(as kind, what string, least, most uint64, is string) error {
	return refusal{as, fmt.Sprintf("%s must be a whole number from %d to %d, not %q", what, least, most, is)}
}
