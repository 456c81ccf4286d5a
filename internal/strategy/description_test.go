package strategy

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestADescriptionHasWhatWasDeclared(t *testing.T) {
	state := State{Setup: []string{"INSERT INTO a SELECT id FROM items WHERE id = ?"}, Remaining: "SELECT 1 FROM a WHERE id = ?", Keys: []string{"{%s}:left"}, Locks: []string{"lock:%s"}}
	mine := Strategy{Name: "mine", Properties: Properties{Has: Exclusive | Renews, NotApplicable: Reentrant}, WithOneProcess: ClockFree,
		NeedsQuorum: true, NeedsEtcd: true, OwnClient: true, ShortestLease: time.Second, Inapplicable: map[string]string{"pause": "it never pauses"}, AnswersFirst: true, ByChance: true, State: state}
	for _, s := range append(All(), mine) {
		text, err := json.Marshal(s.Describe())
		if err != nil {
			t.Fatal(err)
		}
		var d Description
		if err := json.Unmarshal(text, &d); err != nil || !reflect.DeepEqual(d, s.Describe()) {
			t.Errorf("%+v, %v, want %+v: %s", d, err, s.Describe(), text)
		}
	}
}

func TestADescriptionWithAPropertyThatThereIsNot(t *testing.T) {
	for text, want := range map[string]string{
		`{"has": ["fast"]}`:    `no property "fast": want one of exclusive`,
		`{"has": "exclusive"}`: "a list of names",
	} {
		var d Description
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
