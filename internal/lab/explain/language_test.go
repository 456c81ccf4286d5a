package explain

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// parts are templates that only others use.
var parts = []string{"sale", "fault", "outcome"}

// ofEarlier are phrases that only saved results of earlier versions say.
var ofEarlier = []string{"each-wrote-what-it-read", "freed-itself", "row-had-changed"}

// phrasesOfTheCode are all string literals of the package that name a phrase, or that say is given.
func phrasesOfTheCode(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{string(AllLocks): true}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			if value, _ := strconv.Unquote(literal.Value); English.phrases.Lookup(value) != nil {
				found[value] = true
			}
			return true
		})
	}
	return found
}

func TestEveryPhraseIsUsed(t *testing.T) {
	used := phrasesOfTheCode(t)
	for _, phrase := range Chinese.phrases.Templates() {
		if name := phrase.Name(); English.phrases.Lookup(name) == nil && !slices.Contains([]string{"shop", "zh", "zh.tmpl"}, name) {
			t.Errorf("%q is said in Chinese alone", name)
		}
	}
	for _, phrase := range English.phrases.Templates() {
		name := phrase.Name()
		if !used[name] && !slices.Contains(slices.Concat(parts, ofEarlier), name) && !strings.HasPrefix(name, "intervention-") && name != "en" && name != "en.tmpl" {
			t.Errorf("nothing says %q", name)
		}
	}
}

// strayed is a space before the Chinese name of a shop.
var strayed = regexp.MustCompile(`[\p{Han}，。：；] 商店`)

func TestEveryPhraseCanBeSaid(t *testing.T) {
	someone := &Sale{"#1", "shop 1"}
	facts := Facts{Holder: someone, Other: someone, Third: someone, Shop: "shop 1", Server: "redis", OtherServer: "MySQL 2", GTID: "0-1-7", GTIDs: "0-1-6", OtherCount: 6, Key: "stock:7", OtherKey: "stock:8", Outcome: "busy",
		Intervention: "redis-cut", Fault: "stop", Point: sale.Write, LeaseMS: 500, LastedMS: 600, AfterMS: 7,
		Stock: 2, Initial: 2, Order: 3, OtherOrder: 4, Count: 5}
	for _, phrase := range English.phrases.Templates() {
		name := phrase.Name()
		if name == "en" || name == "en.tmpl" || slices.Contains(parts, name) {
			continue
		}
		for _, in := range []Language{English, Chinese} {
			if said := in.Say(say(Phrase(name), facts)); said == name || said == "" || strings.Contains(said, "  ") || strayed.MatchString(said) {
				t.Errorf("%s: %q", name, said)
			}
		}
	}
}

func TestTextsAreKeptAsFacts(t *testing.T) {
	for _, text := range []Text{
		asItStands("#12"),
		say("step-reads", Facts{}),
		say("both-read", Facts{Holder: &Sale{"#1", "shop 1"}, Other: &Sale{"#2", "shop 2"}, Stock: 3}),
	} {
		written, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var again Text
		if err := json.Unmarshal(written, &again); err != nil || !reflect.DeepEqual(again, text) {
			t.Errorf("%s is read as %+v, %v", written, again, err)
		}
		if strings.Contains(string(written), "wrote over") {
			t.Errorf("%s keeps words of a sentence", written)
		}
	}
}

// What is not known is said by its name: a result may come from elsewhere.
func TestAnUnknownPhraseIsNamed(t *testing.T) {
	for _, text := range []Text{say("of-tomorrow", Facts{}), say("both-read", Facts{})} {
		if got := English.Say(text); got != string(text.Phrase) {
			t.Errorf("%+v is said as %q", text, got)
		}
	}
}

// saysEveryRule fails where a rule of [inquiry.whyHeld] has not been seen to apply.
func saysEveryRule(t *testing.T, said map[Phrase]bool) {
	t.Helper()
	for _, r := range slices.Concat(rulesUnderFault, rulesWithoutFault) {
		if !said[r.phrase] {
			t.Errorf("no case in which a cell held because of %q", r.phrase)
		}
	}
}

// TestNobodyIsCalledKilledWhoLives: each fault has a word of its own.
func TestNobodyIsCalledKilledWhoLives(t *testing.T) {
	for _, in := range []Language{English, Chinese} {
		said := map[string]bool{}
		for _, action := range []labmode.Action{labmode.Sleep, labmode.Stop, labmode.Hold, labmode.Kill} {
			said[in.Say(say("span-fault", Facts{Fault: action}))] = true
		}
		if len(said) != 4 {
			t.Errorf("%s: %v for four faults", in, said)
		}
	}
}
