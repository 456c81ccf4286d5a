package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
)

// TriedVersion is the format of a [Tried] that is kept.
const TriedVersion = 2

// Tried is what a try of a described service came to.
type Tried struct {
	Version int             `json:"version"`
	Service string          `json:"service"`
	Time    string          `json:"time"` // when it began
	Command string          `json:"command"`
	OS      string          `json:"os"`
	Cores   int             `json:"cores"`
	Seed    uint64          `json:"seed"`
	Sale    []schedule.Sent `json:"sale"`
	SoldOut []schedule.Sent `json:"sold_out"`
	Unseen  []string        `json:"unseen,omitempty"`
	Parts   []TriedPart     `json:"parts"`
}

// TriedPart is the result of a part.
type TriedPart struct {
	Part    string       `json:"part"`
	Verdict verdict.Kind `json:"verdict"`
	Reason  string       `json:"reason,omitempty"`

	Schedules int              `json:"schedules,omitempty"` // that were played
	Bad       int              `json:"bad,omitempty"`       // of them
	Undecided int              `json:"undecided,omitempty"` // of them: see [schedule.Record.Undecided]
	Record    *schedule.Record `json:"record,omitempty"`    // of the shortest bad one, or of the step
	Mends     string           `json:"mends,omitempty"`     // the page that mends the cause
	Replay    string           `json:"replay,omitempty"`    // the command that plays the record again
}

// Verdict is the first part that is bad, or else the first of which nothing can be said, or else held.
func (t Tried) Verdict() verdict.Kind {
	worst := verdict.Held
	for _, p := range t.Parts {
		switch {
		case verdict.Of(p.Verdict).Bad:
			return p.Verdict
		case p.Verdict == verdict.Invalid || p.Verdict == verdict.Skipped:
			worst = verdict.Invalid
		}
	}
	return worst
}

// JSON writes what [ReadTried] reads.
func (t Tried) JSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	return out.Encode(t)
}

// ReadTried reads a file that [Tried.JSON] wrote, or for - standard input.
func ReadTried(path string) (Tried, error) {
	return opened(path, "no result of loadtest try --out", readTried)
}

// maxEntries bounds what is drawn of a record.
const maxEntries = 10_000

func readTried(from io.Reader) (t Tried, err error) {
	content, err := bounded(from)
	if err == nil {
		err = json.Unmarshal(neutral(content), &t)
	}
	switch {
	case err != nil:
		return t, err
	case t.Version != TriedVersion:
		return t, fmt.Errorf("version is %d, want %d: try the service again", t.Version, TriedVersion)
	case t.Service == "" || len(t.Parts) == 0:
		return t, errors.New("it has no service, or no parts")
	}
	for _, p := range t.Parts {
		switch {
		case !slices.ContainsFunc(verdict.All, func(v verdict.Verdict) bool { return v.Kind == p.Verdict }):
			return t, fmt.Errorf("there is no verdict %q", p.Verdict)
		case p.Record != nil && (p.Record.Customers < 2 || p.Record.Customers > schedule.MaxCustomers || len(p.Record.Entries) > maxEntries || p.Record.Outcome.Items > 1):
			return t, fmt.Errorf("the record of %s has %d customers and %d entries, and cannot be drawn", p.Part, p.Record.Customers, len(p.Record.Entries))
		}
	}
	return t, nil
}
