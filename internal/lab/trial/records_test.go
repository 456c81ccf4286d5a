package trial

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/strategy/ladder"
)

// TestVegetaCountsAsWeDo reads records as vegeta report does, and holds its totals against ours.
func TestVegetaCountsAsWeDo(t *testing.T) {
	begun := time.Now()
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	a := &attack{begun: begun, usage: &usage{}, hits: []*hit{
		{id: "1-1", due: at(2), sent: at(5), latency: 20 * time.Millisecond, status: 201, outcome: Sold},
		{id: "1-0", due: at(0), sent: at(0), latency: 10 * time.Millisecond, status: 201, outcome: Sold},
		{id: "1-2", due: at(4), sent: at(9), latency: 30 * time.Millisecond, status: 409, outcome: SoldOut},
		{id: "1-3", due: at(6), sent: at(10), latency: 40 * time.Millisecond, err: errors.New("EOF"), outcome: Unknown},
		{id: "1-4", due: at(8)}, // interrupted before it was sent
	}}
	result := newResult(Cell{Strategy: ladder.All()[0], Scenario: scenario.All()[0]}, Options{}, 3)
	result.fill(a)
	var file bytes.Buffer
	records := NewRecords(&file)
	if err := errors.Join(records.write(result, a.hits), records.Flush()); err != nil {
		t.Fatal(err)
	}
	var m vegeta.Metrics
	last := time.Time{}
	for decode := vegeta.NewDecoder(&file); ; {
		var r vegeta.Result
		if decode(&r) != nil {
			break
		}
		due, err := time.Parse(time.RFC3339Nano, r.Headers.Get(DueHeader))
		if err != nil || due.After(r.Timestamp) {
			t.Errorf("request %d was due at %v, %v, and sent at %v", r.Seq, due, err, r.Timestamp)
		}
		if r.Timestamp.Before(last) || r.Seq != m.Requests {
			t.Errorf("request %d at %v comes after one at %v: vegeta plot refuses that", r.Seq, r.Timestamp, last)
		}
		last = r.Timestamp
		m.Add(&r)
	}
	m.Close()
	if m.Requests != 4 || m.StatusCodes["201"] != int(result.Answered) || m.StatusCodes["409"] != int(result.SoldOut) || m.StatusCodes["0"] != 1 {
		t.Errorf("vegeta counts %d requests and %v, we %+v", m.Requests, m.StatusCodes, result)
	}
	if math.Abs(result.Latency.Max-30) > 0.1 || math.Abs(result.Corrected.Max-35) > 0.1 {
		t.Errorf("the longest answer took %v ms, %v from when it was due, want 30 and 35", result.Latency.Max, result.Corrected.Max)
	}
}
