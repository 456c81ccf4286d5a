package shop

import (
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"stocklock/internal/stock"
)

// The number of items on a page of the list.
const (
	defaultPage = 50
	maxPage     = 500
)

type itemList struct {
	Items []stock.Item `json:"items"`
	Next  string       `json:"next,omitempty"` // where the list goes on
}

func (s *Shop) getItems(c *gin.Context) error {
	after, err := queryNumber(c, "after", 0, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	limit, err := queryNumber(c, "limit", defaultPage, 1, maxPage)
	if err != nil {
		return err
	}
	items, err := inSlot(s, c, s.reads, func(ctx context.Context) ([]stock.Item, error) { return s.list(ctx, after, int(limit)) })
	if err != nil {
		return err
	}
	list := itemList{Items: items}
	if len(items) == int(limit) {
		list.Next = fmt.Sprintf(apiPrefix+"/items?after=%d&limit=%d", items[len(items)-1].ID, limit)
	}
	c.JSON(http.StatusOK, list)
	return nil
}

// View returns an item as its page shows it.
type View func(ctx context.Context, itemID uint64) (stock.Item, error)

func (s *Shop) getItem(c *gin.Context) error {
	id, err := pathNumber(c, "item")
	if err != nil {
		return err
	}
	item, err := inSlot(s, c, s.reads, func(ctx context.Context) (stock.Item, error) { return s.view(ctx, id) })
	if err != nil {
		return err
	}
	showItem(c, http.StatusOK, item)
	return nil
}

// showItem answers with an item and its tag. A client that already has it gets no body.
func showItem(c *gin.Context, status int, item stock.Item) {
	tag := entityTag(item)
	c.Header("ETag", tag)
	seen, _ := tagsIn(c.Request.Header, "If-None-Match")
	if slices.Contains(read, c.Request.Method) && slices.ContainsFunc(seen, func(t string) bool { return t == "*" || strings.TrimPrefix(t, "W/") == tag }) {
		c.Status(http.StatusNotModified)
		return
	}
	c.JSON(status, item)
}

// entityTag covers all that is shown of an item. The version alone would come again with another
// stock, after the failover to a replica that was behind.
//
// The units that are held have a part of their own, and no part in If-Match: a confirmation changes them, and
// not the item's row.
func entityTag(item stock.Item) string {
	shown := item.Name
	if item.Withdrawn != nil {
		shown += fmt.Sprint("\n", *item.Withdrawn) // no name has a line break
	}
	tag := fmt.Sprintf(`"%d.%d.%08x`, item.Version, item.Stock, crc32.ChecksumIEEE([]byte(shown)))
	if item.Held > 0 {
		tag += fmt.Sprintf(".%d", item.Held)
	}
	return tag + `"`
}

var heldPart = regexp.MustCompile(`^("[0-9]+\.-?[0-9]+\.[0-9a-f]{8})\.[0-9]+"$`)

const (
	oneTag     = `(W/)?"[!#-~]*"`
	tagPattern = `^(\*|[ \t,]*` + oneTag + `([ \t]*,[ \t,]*` + oneTag + `)*[ \t,]*)$` // openapi.yaml has it, too
)

var tagHeader, anyTag = regexp.MustCompile(tagPattern), regexp.MustCompile(oneTag + `|^\*$`)

// tagsIn reads the tags of If-Match or If-None-Match, as RFC 9110 has them. It reports whether they
// can be read.
func tagsIn(header http.Header, name string) (tags []string, ok bool) {
	line := strings.Join(header.Values(name), ",")
	return anyTag.FindAllString(line, -1), tagHeader.MatchString(line)
}

// seenItem reads from If-Match how a client has seen an item. It is nil if there is none.
func seenItem(header http.Header) (stock.Seen, error) {
	if len(header.Values("If-Match")) == 0 {
		return nil, nil
	}
	tags, ok := tagsIn(header, "If-Match")
	if !ok {
		return nil, refusal{malformed, "If-Match must be the ETag as the answer with the item gave it, a list of such, or *"}
	}
	return func(item stock.Item) bool { // a weak tag matches none
		return tags[0] == "*" || slices.ContainsFunc(tags, func(tag string) bool { return heldPart.ReplaceAllString(tag, `$1"`) == entityTag(item) })
	}, nil
}

func pathNumber(c *gin.Context, name string) (uint64, error) {
	n, err := strconv.ParseUint(c.Param(name), 10, 63)
	if err != nil {
		return 0, outOfRange(malformed, "the "+name+" id", 0, math.MaxInt64, c.Param(name))
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

func outOfRange(as Problem, what string, least, most uint64, is string) error {
	return refusal{as, fmt.Sprintf("%s must be a whole number from %d to %d, not %.40q", what, least, most, is)}
}
