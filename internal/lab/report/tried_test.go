package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/verdict"
)

func someTried() Tried {
	step := func(c schedule.Customer, sent string) schedule.Entry {
		return schedule.Entry{Choice: schedule.Choice{Customer: c, Step: "select"}, Customer: c.String(), Server: "mysql", Sent: sent, Answer: "stock=1"}
	}
	record := &schedule.Record{
		Customers: 2, Wire: true, Schedule: schedule.Schedule{{Customer: 'A', Step: "select"}, {Customer: 'B', Step: "select"}},
		Entries: []schedule.Entry{step('A', "SELECT stock FROM <items>"), step('B', "SELECT stock FROM <items>")},
		Outcome: schedule.Outcome{Verdict: verdict.Oversold, N: 1, Cause: verdict.NoLock, Stock: 1, Orders: []schedule.Order{{ID: 1, Customer: "A"}, {ID: 2, Customer: "B"}}},
	}
	return Tried{
		Version: TriedVersion, Service: "a <shop>", Time: "2026-01-02T03:04:05Z", Command: "loadtest try shop.yaml", OS: "linux/amd64", Cores: 2, Seed: 1,
		Sale: []schedule.Sent{{Server: "redis", Sent: "GET <script>", Answer: "nil"}}, Unseen: []string{"TLS to Redis"},
		Parts: []TriedPart{
			{Part: "probe", Verdict: verdict.Held}, {Part: "contention", Verdict: verdict.Invalid, Reason: "no rest"},
			{Part: "explore", Verdict: verdict.Oversold, Reason: "3 schedules, 2 bad", Record: record, Mends: "docs/mistakes/holds.md#conditional", Replay: "loadtest try --step 'A.select B.select'"},
		},
	}
}

// TestTriedIsReadAgain, as it was kept.
func TestTriedIsReadAgain(t *testing.T) {
	var kept bytes.Buffer
	if err := someTried().JSON(&kept); err != nil {
		t.Fatal(err)
	}
	if again, err := readTried(&kept); err != nil || again.Verdict() != verdict.Oversold {
		t.Errorf("%s, %v, want the verdict of the part that is bad", again.Verdict(), err)
	}
}

// TestAPartThatWasSkippedIsNotHeld, nor are the others together.
func TestAPartThatWasSkippedIsNotHeld(t *testing.T) {
	for left, want := range map[verdict.Kind]verdict.Kind{
		verdict.Skipped: verdict.Invalid, verdict.Invalid: verdict.Invalid, verdict.Inapplicable: verdict.Held, verdict.Lied: verdict.Lied,
	} {
		r := Tried{Parts: []TriedPart{{Verdict: verdict.Held}, {Verdict: left}, {Verdict: verdict.Held}}}
		if got := r.Verdict(); got != want {
			t.Errorf("beside a part that is %s: %s, want %s", left, got, want)
		}
	}
}

// TestWhatIsNoResultOfATry is refused, with its reason.
func TestWhatIsNoResultOfATry(t *testing.T) {
	for says, change := range map[string]func(*Tried){
		"version is 1, want 2":            func(r *Tried) { r.Version = 1 },
		"no service, or no parts":         func(r *Tried) { r.Parts = nil },
		`there is no verdict "marvelous"`: func(r *Tried) { r.Parts[0].Verdict = "marvelous" },
		"has 9 customers":                 func(r *Tried) { r.Parts[2].Record.Customers = 9 },
	} {
		r := someTried()
		change(&r)
		content, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readTried(bytes.NewReader(content)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if _, err := readTried(strings.NewReader("[]")); err == nil {
		t.Error("an array was taken for a result")
	}
}
