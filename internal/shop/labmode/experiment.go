package labmode

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"stocklock/internal/stock"
)

// The headers that a shop with the lab obeys. Any other shop ignores them.
const (
	StrategyHeader = "X-Lab-Strategy" // the name of a strategy
	RunHeader      = "X-Lab-Run"      // the run that the order belongs to
	FaultHeader    = "X-Lab-Fault"    // see ParseFault
	NestedHeader   = "X-Lab-Nested"   // 1: the sale takes its lock a second time
	LeaseHeader    = "X-Lab-Lease"    // the lease of the sale's lock, such as 500ms
	WaitHeader     = "X-Lab-Wait"     // how long the sale waits for its lock
	PostedHeader   = "X-Lab-Posted"   // the lines of a basket in the order of the customer: 2x1,1x3 is one unit of item 2 and three of item 1
)

// Experiment is what a request asks of a shop in the lab. The zero value is an ordinary sale.
type Experiment struct {
	Strategy string // empty for the shop's usual one
	Run      string // 1 to 64 printable ASCII characters without space, or empty
	Fault    Fault
	Nested   bool          // the sale takes its lock a second time
	Lease    time.Duration // of the sale's lock; 0 for the shop's usual one
	Wait     time.Duration // for the sale's lock; 0 for the shop's usual one
	Posted   []stock.Line  // the lines as the customer posted them, nil for those that the shop sorts
}

// Set puts the experiment into a request's header.
func (e Experiment) Set(header http.Header) {
	set := func(name, value string) {
		if value != "" {
			header.Set(name, value)
		}
	}
	set(StrategyHeader, e.Strategy)
	set(RunHeader, e.Run)
	if e.Fault != (Fault{}) {
		set(FaultHeader, e.Fault.String())
	}
	if e.Nested {
		set(NestedHeader, "1")
	}
	if e.Lease > 0 {
		set(LeaseHeader, e.Lease.String())
	}
	if e.Wait > 0 {
		set(WaitHeader, e.Wait.String())
	}
	lines := make([]string, len(e.Posted))
	for i, line := range e.Posted {
		lines[i] = fmt.Sprintf("%dx%d", line.ItemID, line.Quantity)
	}
	set(PostedHeader, strings.Join(lines, ","))
}

// runName is what orders.run can hold.
var runName = regexp.MustCompile(`^[!-~]{1,64}$`)

// ParseExperiment reads what [Experiment.Set] writes. It does not know which strategies there are.
func ParseExperiment(header http.Header) (Experiment, error) {
	e := Experiment{Strategy: header.Get(StrategyHeader), Run: header.Get(RunHeader)}
	if e.Run != "" && !runName.MatchString(e.Run) {
		return Experiment{}, fmt.Errorf("%s must be 1 to 64 printable characters without space", RunHeader)
	}
	if spec := header.Get(FaultHeader); spec != "" {
		fault, err := ParseFault(spec)
		if err != nil {
			return Experiment{}, fmt.Errorf("%s: %w", FaultHeader, err)
		}
		e.Fault = fault
	}
	switch nested := header.Get(NestedHeader); nested {
	case "":
	case "1":
		e.Nested = true
	default:
		return Experiment{}, fmt.Errorf("%s must be 1 or missing, not %q", NestedHeader, nested)
	}
	for name, duration := range map[string]*time.Duration{LeaseHeader: &e.Lease, WaitHeader: &e.Wait} {
		text := header.Get(name)
		if text == "" {
			continue
		}
		var err error
		if *duration, err = time.ParseDuration(text); err != nil || *duration < minDuration || *duration > MaxDuration {
			return Experiment{}, fmt.Errorf("%s must be a duration from %s to %s, not %q", name, minDuration, MaxDuration, text)
		}
	}
	if posted := header.Get(PostedHeader); posted != "" {
		for text := range strings.SplitSeq(posted, ",") {
			var line stock.Line
			if n, err := fmt.Sscanf(text, "%dx%d", &line.ItemID, &line.Quantity); n != 2 || err != nil || line.Quantity < 1 {
				return Experiment{}, fmt.Errorf("%s must be lines such as 2x1,1x3, not %q", PostedHeader, posted)
			}
			e.Posted = append(e.Posted, line)
		}
	}
	return e, nil
}

// minDuration is the shortest lease or wait that a request may ask for.
const minDuration = 10 * time.Millisecond
