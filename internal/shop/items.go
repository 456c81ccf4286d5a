package shop

import (
	"fmt"
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
	after, err := queryNumber(c, "after", 0, 0)
	if err != nil {
		s.fail(c, err)
		return
	}
	limit, err := queryNumber(c, "limit", defaultPage, maxPage)
	if err != nil {
		s.fail(c, err)
		return
	}
	items, err := s.store.Items(c.Request.Context(), after, int(limit))
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
	item, err := s.store.Read(c.Request.Context(), id)
	if err != nil {
		s.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, item)
}

func pathNumber(c *gin.Context, name string) (uint64, error) {
	n, err := strconv.ParseUint(c.Param(name), 10, 64)
	if err != nil {
		return 0, refusal{malformed, fmt.Sprintf("the %s id must be a whole number, not %q", name, c.Param(name))}
	}
	return n, nil
}

// queryNumber reads a parameter from 1 to most, or up to any size when most is 0.
func queryNumber(c *gin.Context, name string, missing, most uint64) (uint64, error) {
	text, given := c.GetQuery(name)
	if !given {
		return missing, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, refusal{malformed, fmt.Sprintf("%s must be a whole number, not %q", name, text)}
	}
	if most > 0 && (n < 1 || n > most) {
		return 0, refusal{invalid, fmt.Sprintf("%s must be from 1 to %d", name, most)}
	}
	return n, nil
}
