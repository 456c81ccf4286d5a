package report

import (
	"bytes"
	"cmp"
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
		Outcome: schedule.Outcome{Verdict: verdict.Oversold, N: 1, Cause: schedule.NoLock, Stock: 1, Orders: []schedule.Order{{ID: 1, Customer: "A"}, {ID: 2, Customer: "B"}}},
	}
	return Tried{
		Version: TriedVersion, Service: "a <shop>", Time: "2026-01-02T03:04:05Z", Command: "loadtest try shop.yaml", OS: "linux/amd64", Cores: 2, Seed: 1,
		Sale: []TriedStep{{Server: "redis", Sent: "GET <script>", Answer: "nil"}}, Unseen: []string{"TLS to Redis"},
		Parts: []TriedPart{
			{Part: "probe", Verdict: verdict.Held}, {Part: "contention", Verdict: verdict.Invalid, Reason: "no rest"},
			{Part: "explore", Verdict: verdict.Oversold, Reason: "3 schedules, 2 bad", Record: record, Mends: "docs/mistakes/holds.md#conditional", Replay: "loadtest try --step 'A.select B.select'"},
		},
	}
}

// TestTriedIsShown: what is kept is read again, and the page has all of it, and no mark-up of the service.
func TestTriedIsShown(t *testing.T) {
	var kept bytes.Buffer
	if err := someTried().JSON(&kept); err != nil {
		t.Fatal(err)
	}
	again, err := readTried(&kept)
	if err != nil {
		t.Fatal(err)
	}
	if again.Verdict() != verdict.Oversold {
		t.Errorf("the verdict is %s, want that of the part that is bad", again.Verdict())
	}
	for sheet, has := range map[string]string{"": "<style>", "../report.css": `<link rel="stylesheet" href="../report.css">`} {
		var page bytes.Buffer
		if err := again.HTML(&page, sheet); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			has, "a &lt;shop&gt;", `<span class="v oversold">oversold</span>`, "nothing kept the second customer out", "SELECT stock FROM &lt;items&gt;", "Not seen: TLS to Redis",
			"What mends it: docs/mistakes/holds.md#conditional", "GET &lt;script&gt;", "no rest", "loadtest try shop.yaml",
		} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("the page with sheet %q lacks %s", sheet, want)
			}
		}
		if strings.Contains(page.String(), "<script") || sheet != "" && strings.Contains(page.String(), "<style") {
			t.Errorf("the page with sheet %q has a script, or a style of its own", sheet)
		}
	}
}

// TestAnEarlierResultIsRead, and its page says what it lacks.
func TestAnEarlierResultIsRead(t *testing.T) {
	for version, early := range map[int]bool{1: true, 2: false} {
		kept := someTried()
		kept.Version = version
		content, err := json.Marshal(kept)
		if err != nil {
			t.Fatal(err)
		}
		again, err := readTried(bytes.NewReader(content))
		var page bytes.Buffer
		if err := cmp.Or(err, again.HTML(&page, "")); err != nil || strings.Contains(page.String(), "earlier version") != early {
			t.Errorf("version %d: %v, early: want %v", version, err, early)
		}
	}
}

// TestWhatIsNoResultOfATry is refused, with its reason.
func TestWhatIsNoResultOfATry(t *testing.T) {
	for says, change := range map[string]func(*Tried){
		"version is 0, want 1 to 2":       func(r *Tried) { r.Version = 0 },
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
