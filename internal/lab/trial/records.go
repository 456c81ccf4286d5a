package trial

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

// Records writes every request in vegeta's own format, for vegeta report, plot
// and encode. The latency is the one from sent to answered; when the request should have
// been sent is kept beside it, as a header of its answer. It is safe for concurrent use.
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

// NewRecords writes to w. What is written is complete after [Records.Flush].
func NewRecords(w io.Writer) *Records {
	buffer := bufio.NewWriter(w)
	return &Records{buffer: buffer, encode: vegeta.NewEncoder(buffer), seq: map[string]uint64{}}
}

// Flush writes what is buffered. Of a nil Records nothing is.
func (r *Records) Flush() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buffer.Flush()
}

// write writes the requests of one run of a cell. A nil Records writes nothing.
func (r *Records) write(of Result, hits []*hit) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	attack := of.Strategy + "/" + of.Scenario
	inOrder := slices.SortedStableFunc(slices.Values(hits), func(a, b *hit) int { return a.sent.Compare(b.sent) })
	for _, h := range inOrder {
		if h.sent.IsZero() {
			continue // interrupted before it was sent
		}
		record := vegeta.Result{
			Attack: attack, Seq: r.seq[attack], Code: uint16(h.status), Timestamp: h.sent, Latency: h.latency,
			BytesOut: uint64(len(requestBody)), Method: http.MethodPost,
			Headers: http.Header{DueHeader: {h.due.UTC().Format(time.RFC3339Nano)}, OutcomeHeader: {string(h.outcome)}},
		}
		if h.err != nil {
			record.Error = h.err.Error()
		} else if h.outcome != Sold {
			record.Error = string(h.outcome)
		}
		r.seq[attack]++
		if err := r.encode.Encode(&record); err != nil {
			return fmt.Errorf("write the requests down: %w", err)
		}
	}
	return nil
}
