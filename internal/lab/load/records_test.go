package load

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// TestVegetaCountsAsWeDo reads records as vegeta report does, and compares its totals with ours.
func TestVegetaCountsAsWeDo(t *testing.T) {
	begun := time.Now()
	record := func(scheduled, sent, took, status int, outcome Outcome, err error) Record {
		at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
		return Record{Scheduled: at(scheduled), Answer: Answer{Sent: at(sent), Latency: time.Duration(took) * time.Millisecond,
			Status: status, Outcome: outcome, Err: err}}
	}
	var file bytes.Buffer
	records := NewRecords(&file)
	err := records.Write("none/contention", []Record{
		record(2, 5, 20, 201, Sold, nil),
		record(0, 0, 10, 201, Sold, nil),
		record(4, 9, 30, 409, SoldOut, nil),
		record(6, 10, 40, 0, Unknown, errors.New("EOF")),
		{Scheduled: begun}, // interrupted before it was sent
	})
	if err := errors.Join(err, records.Flush()); err != nil {
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
			t.Errorf("request %d was scheduled for %v, %v, and sent at %v", r.Seq, due, err, r.Timestamp)
		}
		if r.Timestamp.Before(last) || r.Seq != m.Requests {
			t.Errorf("request %d at %v comes after one at %v: vegeta plot refuses that", r.Seq, r.Timestamp, last)
		}
		last = r.Timestamp
		m.Add(&r)
	}
	m.Close()
	if m.Requests != 4 || m.StatusCodes["201"] != 2 || m.StatusCodes["409"] != 1 || m.StatusCodes["0"] != 1 {
		t.Errorf("vegeta counts %d requests and %v", m.Requests, m.StatusCodes)
	}
	if longest := m.Latencies.Max; longest != 40*time.Millisecond || math.Abs(m.Duration.Seconds()-0.01) > 1e-6 {
		t.Errorf("vegeta's longest latency is %s, over %s", longest, m.Duration)
	}
}
