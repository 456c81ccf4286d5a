package explain

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// strayed is a space before the Chinese name of a shop.
var strayed = regexp.MustCompile(`[\p{Han}，。：；] 商店`)

func TestEveryPhraseCanBeSaid(t *testing.T) {
	someone := &Sale{"#1", "shop 1"}
	facts := Facts{Holder: someone, Other: someone, Third: someone, Shop: "shop 1", Server: "redis", OtherServer: "MySQL 2", GTID: "0-1-7", GTIDs: "0-1-6", OtherCount: 6, Key: "stock:7", OtherKey: "stock:8", Outcome: "busy",
		Intervention: "redis-cut", Fault: "stop", Point: sale.Write, LeaseMS: 500, LastedMS: 600, AfterMS: 7,
		Stock: 2, Initial: 2, Order: 3, OtherOrder: 4, Count: 5}
	for name := range words.English.Messages() {
		if strings.ContainsAny(name, ".+") || name == "sale" {
			continue
		}
		for _, in := range words.Languages {
			if said := in.Say(say(name, facts)); said == name && strings.Contains(name, "-") || said == "" || strings.Contains(said, "  ") || strayed.MatchString(said) {
				t.Errorf("%s: %q", name, said)
			}
		}
	}
}

func TestTextsAreKeptAsFacts(t *testing.T) {
	text := say("both-read", Facts{Holder: &Sale{"#1", "shop 1"}, Other: &Sale{"#2", "shop 2"}, Stock: 3})
	written, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var facts Facts
	if err := json.Unmarshal(written, &facts); err != nil || !reflect.DeepEqual(facts, text.Facts) {
		t.Errorf("%s is read as %+v, %v", written, facts, err)
	}
	if strings.Contains(string(written), "overwrote") {
		t.Errorf("%s keeps words of a sentence", written)
	}
}

// What is not known is said by its name: a result may come from elsewhere.
func TestAnUnknownPhraseIsNamed(t *testing.T) {
	for _, text := range []words.Text{say("of-tomorrow", Facts{}), say("both-read", Facts{})} {
		if got := words.English.Say(text); got != text.Key {
			t.Errorf("%+v is said as %q", text, got)
		}
	}
}

// saysEveryRule fails where a rule of [inquiry.whyHeld] has not been seen to apply.
func saysEveryRule(t *testing.T, said map[string]bool) {
	t.Helper()
	for _, r := range append(append([]rule{}, rulesUnderFault...), rulesWithoutFault...) {
		if !said[r.phrase] {
			t.Errorf("no case in which a cell held because of %q", r.phrase)
		}
	}
}

// TestNobodyIsCalledKilledWhoLives: each fault has a word of its own.
func TestNobodyIsCalledKilledWhoLives(t *testing.T) {
	for _, in := range words.Languages {
		said := map[string]bool{}
		for _, action := range []labmode.Action{labmode.Sleep, labmode.Stop, labmode.Hold, labmode.Kill} {
			said[in.Say(say("span-fault", Facts{Fault: action}))] = true
		}
		if len(said) != 4 {
			t.Errorf("%s: %v for four faults", in, said)
		}
	}
}
