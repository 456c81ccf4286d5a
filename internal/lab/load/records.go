package load

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// Record is an answer, with the time at which its order should have been sent.
type Record struct {
	Answer
	Scheduled time.Time
}

// Records writes requests in vegeta's own format, for vegeta report, plot and encode. The latency
// is the one from sent to answered. The scheduled time is kept as a header of the answer. Records
// is safe for concurrent use.
type Records struct {
	mu     sync.Mutex // guards the rest
	buffer *bufio.Writer
	encode vegeta.Encoder
	seq    map[string]uint64 // by attack: vegeta plot wants them without gaps
}

// The headers of a record.
const (
	DueHeader     = "X-Due"     // RFC 3339 with nanoseconds
	OutcomeHeader = "X-Outcome" // an [Outcome]
)

// NewRecords writes to w. The output is complete after [Records.Flush].
func NewRecords(w io.Writer) *Records {
	buffer := bufio.NewWriter(w)
	return &Records{buffer: buffer, encode: vegeta.NewEncoder(buffer), seq: map[string]uint64{}}
}

// Flush writes what is buffered. A nil Records has nothing to flush.
func (r *Records) Flush() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buffer.Flush()
}

// Write writes the requests of an attack of this name, in the order in which they were sent. It
// leaves out those that were never sent. A nil Records writes nothing.
func (r *Records) Write(attack string, records []Record) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	inOrder := slices.SortedStableFunc(slices.Values(records), func(a, b Record) int { return a.Sent.Compare(b.Sent) })
	for _, each := range inOrder {
		if each.Sent.IsZero() {
			continue
		}
		result := vegeta.Result{
			Attack: attack, Seq: r.seq[attack], Code: uint16(each.Status), Timestamp: each.Sent, Latency: each.Latency,
			BytesOut: uint64(len(each.Order.body())), Method: http.MethodPost,
			Headers: http.Header{DueHeader: {each.Scheduled.UTC().Format(time.RFC3339Nano)}, OutcomeHeader: {string(each.Outcome)}},
		}
		if each.Err != nil {
			result.Error = each.Err.Error()
		} else if each.Outcome != Sold {
			result.Error = string(each.Outcome)
		}
		r.seq[attack]++
		if err := r.encode.Encode(&result); err != nil {
			return fmt.Errorf("write the requests down: %w", err)
		}
	}
	return nil
}
