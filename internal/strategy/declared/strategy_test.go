package declared

import (
	"encoding/json"
	"reflect"
	"stocklock/internal/sale"
	"strings"
	"testing"
	"time"
)

func TestAStrategyIsReadAsItWasWritten(t *testing.T) {
	mine := Strategy{Name: "mine", Properties: Properties{Has: Exclusive | Renews, NotApplicable: Reentrant}, WithOneProcess: ClockFree,
		NeedsQuorum: true, NeedsEtcd: true, OwnClient: true, ShortestLease: time.Second, Inapplicable: map[string]string{"pause": "it never pauses"},
		AnswersFirst: true, ByChance: true, Starves: true, Lease: Lease{Kept: LeaseInExpiry}, Points: sale.Points,
		State: State{Setup: []string{"INSERT INTO a SELECT id FROM items WHERE id = ?"}, Remaining: "SELECT 1 FROM a WHERE id = ?", Keys: []string{"{%s}:left"}, Locks: []string{"lock:%s"}}}
	text, err := json.Marshal(mine)
	if err != nil {
		t.Fatal(err)
	}
	var read Strategy
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, mine) {
		t.Errorf("%+v, %v, want %+v: %s", read, err, mine, text)
	}
}

func TestAPropertyThatThereIsNot(t *testing.T) {
	for text, want := range map[string]string{
		`{"has": ["fast"]}`:    `no property "fast": want one of exclusive`,
		`{"has": "exclusive"}`: "a list of names",
	} {
		var d Strategy
		if err := json.Unmarshal([]byte(text), &d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestKeysInRedis(t *testing.T) {
	if got := KeysOf([]string{"{%s}:left"}, 7); len(got) != 1 || got[0] != "{stock:7}:left" {
		t.Errorf("keys %q", got)
	}
}

func TestPropertyNames(t *testing.T) {
	for _, p := range AllProperties() {
		if p.String() == "" || strings.Contains(p.String(), ",") || p.Doc() == "" {
			t.Errorf("property %b: name %q, doc %q, want one of each", p, p, p.Doc())
		}
	}
	both := Exclusive | ClockFree
	if got := both.String(); got != "exclusive, clock-free" {
		t.Errorf("String of a set = %q", got)
	}
	if both.Includes(Exclusive|Renews) || !both.Includes(ClockFree) {
		t.Error("Includes must want all of what it is asked for")
	}
}

func TestStandings(t *testing.T) {
	p := Properties{Has: Exclusive, NotApplicable: Renews}
	for _, tt := range []struct {
		of    Property
		want  Standing
		meets bool
	}{
		{Exclusive, Has, true},
		{Renews, NotApplicable, true},
		{Recovers, Lacks, false},
		{StorageChecked, Lacks, false},
	} {
		if got := p.Standing(tt.of); got != tt.want || p.Meets(tt.of) != tt.meets {
			t.Errorf("%s: %s, meets %t, want %s, %t", tt.of, got, p.Meets(tt.of), tt.want, tt.meets)
		}
	}
}
