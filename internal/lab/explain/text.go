package explain

import (
	"encoding/json"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// Text is a phrase and its facts. [Language.Say] makes words of it when it is shown. Without a
// phrase it is shown as it stands, such as a number or a name.
type Text struct {
	Phrase Phrase
	Facts  Facts
	Words  string // without a phrase
}

// Phrase names a sentence, or a part of one. Each language has a template for it: see
// words/en.tmpl.
type Phrase string

// Phrases that the package report says or looks for.
const (
	Asks     Phrase = "step-asks"
	AllLocks Phrase = "lane-locks" // one column for the servers of a quorum
	// Milliseconds is the unit of a drawing's axis.
	Milliseconds Phrase = "axis-milliseconds"
	// What a chart shows, for screen readers.
	ChartOutcomes Phrase = "chart-outcomes" // a bar lasts LastedMS
	ChartCount    Phrase = "chart-count"    // Count answers with an Outcome
	ChartLatency  Phrase = "chart-latency"  // the highest is LastedMS
	ChartBuckets  Phrase = "chart-buckets"  // the longest is LastedMS
)

// Facts are the values in a phrase. Each phrase uses some of them.
type Facts struct {
	Holder       *Sale          `json:"holder,omitempty"`
	Other        *Sale          `json:"other,omitempty"` // the request that came in, or that waited
	Third        *Sale          `json:"third,omitempty"` // the request whose release freed the lock
	Shop         string         `json:"shop,omitempty"`
	Server       string         `json:"server,omitempty"`
	OtherServer  string         `json:"other_server,omitempty"`
	GTID         string         `json:"gtid,omitempty"`      // of a transaction
	GTIDs        string         `json:"gtids,omitempty"`     // that OtherServer has
	Key          string         `json:"key,omitempty"`       // of the lock
	OtherKey     string         `json:"other_key,omitempty"` // of the lock of Other
	Outcome      string         `json:"outcome,omitempty"`
	Intervention string         `json:"intervention,omitempty"` // its name, as in a scenario's plan
	Fault        labmode.Action `json:"fault,omitempty"`
	Point        sale.Point     `json:"point,omitempty"`
	LeaseMS      float64        `json:"lease_ms,omitempty"`
	LastedMS     float64        `json:"lasted_ms,omitempty"`
	AfterMS      float64        `json:"after_ms,omitempty"` // since the holder had the lock
	Stock        int64          `json:"stock,omitempty"`    // as it was read or written
	Initial      int64          `json:"initial_stock,omitempty"`
	Order        Number         `json:"order,omitempty"`
	OtherOrder   Number         `json:"other_order,omitempty"` // the one that was overwritten
	Count        int            `json:"count,omitempty"`
	OtherCount   int            `json:"other_count,omitempty"`
}

// Sale names a request and the shop that it was sent to.
type Sale struct {
	Request string `json:"request"` // its number in the run, such as #12
	Shop    string `json:"shop"`
}

func say(p Phrase, f Facts) Text { return Text{Phrase: p, Facts: f} }

func asItStands(words string) Text { return Text{Words: words} }

// MarshalJSON writes an object with the phrase and its facts, or else the words alone.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.Phrase == "" {
		return json.Marshal(t.Words)
	}
	return json.Marshal(saved{t.Phrase, t.Facts})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = Text{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &t.Words)
	}
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	t.Phrase, t.Facts = s.Say, s.Facts
	return nil
}

// saved is the form of a text in a file.
type saved struct {
	Say Phrase `json:"say"`
	Facts
}
