package explain

import (
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// Phrases that the package report looks for.
const (
	Asks     = "step-asks"
	AllLocks = "lane-locks" // one column for the servers of a quorum
)

// Facts are the values in a phrase of an explanation. Each phrase uses some of them.
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

func say(phrase string, f Facts) words.Text { return words.Text{Key: phrase, Facts: f} }
