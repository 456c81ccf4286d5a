package labmode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"
	"unique"

	"stocklock/internal/sale"
)

// Event is one line of a trace: a sale reached a point. Facts has further values that were known
// there, such as "stock" or "token".
type Event struct {
	Time     time.Time
	Shop     string
	Request  string
	Item     uint64
	Strategy string
	Run      string
	Point    sale.Point
	Facts    map[string]any // numbers are json.Number
}

// UnmarshalJSON reads the form that a [Recorder] writes. A cell keeps each event of each sale: what many events have in
// common is there once, and an event without facts has no map.
func (e *Event) UnmarshalJSON(line []byte) error {
	fields := map[string]any{}
	all := json.NewDecoder(bytes.NewReader(line))
	all.UseNumber()
	if err := all.Decode(&fields); err != nil {
		return err
	}
	var wrong error
	text := func(name string) string {
		value, ok := fields[name].(string)
		if !ok && fields[name] != nil {
			wrong = fmt.Errorf("%s is no text: %v", name, fields[name])
		}
		delete(fields, name)
		return unique.Make(value).Value()
	}
	number := func(name string) string {
		value, ok := fields[name].(json.Number)
		if !ok && fields[name] != nil {
			wrong = fmt.Errorf("%s is no number: %v", name, fields[name])
		}
		delete(fields, name)
		return cmp.Or(string(value), "0")
	}
	at, failed := strconv.ParseInt(number("t"), 10, 64)
	item, err := strconv.ParseUint(number("item"), 10, 64)
	*e = Event{
		Time: time.Unix(0, at), Shop: text("shop"), Request: text("request"), Item: item,
		Strategy: text("strategy"), Run: text("run"), Point: sale.Point(text("point")),
	}
	if len(fields) > 0 {
		e.Facts = make(map[string]any, len(fields))
		maps.Copy(e.Facts, fields)
	}
	return cmp.Or(wrong, failed, err)
}
