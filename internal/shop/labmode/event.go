package labmode

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

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

// UnmarshalJSON reads the form that a [Recorder] writes.
func (e *Event) UnmarshalJSON(line []byte) error {
	var fields struct {
		T        int64      `json:"t"`
		Shop     string     `json:"shop"`
		Request  string     `json:"request"`
		Item     uint64     `json:"item"`
		Strategy string     `json:"strategy"`
		Run      string     `json:"run"`
		Point    sale.Point `json:"point"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return err
	}
	facts := map[string]any{}
	all := json.NewDecoder(bytes.NewReader(line))
	all.UseNumber()
	if err := all.Decode(&facts); err != nil {
		return err
	}
	for _, known := range []string{"t", "shop", "request", "item", "strategy", "run", "point"} {
		delete(facts, known)
	}
	*e = Event{
		Time: time.Unix(0, fields.T), Shop: fields.Shop, Request: fields.Request, Item: fields.Item,
		Strategy: fields.Strategy, Run: fields.Run, Point: fields.Point, Facts: facts,
	}
	return nil
}

// ReadEvents reads a trace, in the order in which it was written.
func ReadEvents(r io.Reader) ([]Event, error) {
	var events []Event
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("trace: line %d: %w", n, err)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}
