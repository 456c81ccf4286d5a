package words

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..", "..")

// ofCode are the kinds of which the English words stand where the thing is: in the file of a strategy, for one.
var ofCode = []string{"happens.", "hint.", "name.", "property.", "scenario.", "strategy.", "task.", "topology.", "where."}

// ofEarlier are phrases that only results of earlier versions have.
var ofEarlier = []string{"each-wrote-what-it-read", "freed-itself", "row-had-changed"}

// TestBothLanguagesSayTheSame: each message is there in both, with the same facts in it.
func TestBothLanguagesSayTheSame(t *testing.T) {
	fact := regexp.MustCompile(`\{(?:\w+:)?([\w.]+)`)
	for key, message := range English.messages {
		other, is := Chinese.messages[key]
		if !is {
			t.Errorf("%q is not said in Chinese", key)
		}
		for _, m := range fact.FindAllStringSubmatch(message, -1) {
			if !regexp.MustCompile(`\{(\w+:)?` + regexp.QuoteMeta(m[1])).MatchString(other) {
				t.Errorf("%q lacks %s in Chinese", key, m[1])
			}
		}
	}
	for key := range Chinese.messages {
		if English.messages[key] == "" && !slices.ContainsFunc(ofCode, func(kind string) bool { return strings.HasPrefix(key, kind) }) {
			t.Errorf("%q is said in Chinese alone", key)
		}
	}
}

// TestACatalogueHasAKeyALine, in their order: two changes of different keys do not meet.
func TestACatalogueHasAKeyALine(t *testing.T) {
	for _, file := range []string{"en.json", "zh.json"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(content)), "\n")
		var keys []string
		for _, line := range lines[1 : len(lines)-1] {
			var of map[string]string
			if err := json.Unmarshal([]byte("{"+strings.TrimSuffix(line, ",")+"}"), &of); err != nil || len(of) != 1 {
				t.Errorf("%s: %s: %v", file, line, err)
			}
			for key := range of {
				keys = append(keys, key)
			}
		}
		for i := range keys[1:] {
			if keys[i] >= keys[i+1] {
				t.Errorf("%s: %s stands before %s", file, keys[i], keys[i+1])
			}
		}
	}
}

// TestWhatIsSaidIsThere, and what is there is said: by its key in the code, or by its kind in the code or in another message.
func TestWhatIsSaidIsThere(t *testing.T) {
	literal := regexp.MustCompile("[\"'`]([\\w. -]+)[\"'`]")
	said := regexp.MustCompile(`(?:\bwords\.Of\("|\bwords\.Text\{Key: "|\bt\(')([a-z0-9.-]+)["'][,)}]`)
	used := map[string]bool{}
	note := func(text string) {
		for _, m := range literal.FindAllStringSubmatch(text, -1) {
			used[m[1]] = true
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "out", "testdata"}, d.Name()):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" && filepath.Ext(path) != ".js" && filepath.Ext(path) != ".html" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		note(strings.ReplaceAll(string(text), "`", "'"))
		note(string(text))
		for _, m := range said.FindAllStringSubmatch(string(text), -1) {
			if key := m[1]; English.messages[key] == "" && !strings.HasSuffix(key, ".") && filepath.Base(filepath.Dir(path)) != "words" {
				t.Errorf("%s says %q, which is not there", path, key)
			}
		}
		return err
	})
	if err != nil || len(used) < 1000 {
		t.Fatalf("%d literals are in the code: %v", len(used), err)
	}
	kinds := map[string]bool{}
	for _, message := range English.messages {
		for _, m := range regexp.MustCompile(`\{(\w+):`).FindAllStringSubmatch(message, -1) {
			kinds[m[1]] = true
		}
	}
	for key := range English.messages {
		plain, _, _ := strings.Cut(key, "+")
		kind, _, _ := strings.Cut(plain, ".")
		if !used[plain] && !used[kind+"."] && !kinds[kind] && !used[kind] && !slices.Contains(ofEarlier, key) {
			t.Errorf("nothing says %q", key)
		}
	}
}

// TestMessages: what can stand in one. The facts come as they are in the code, and as they are in JSON.
func TestMessages(t *testing.T) {
	l := read("test", []byte(`{"plain":"{n} of {all}","sale":"{request} on {shop:shop}","shop.shop {1}":"no. {1}","one":"{sale:of} {done:what}, {ms:took}","done.cut":"cut off",
		"done.ahead {1}":"ahead by {1}","many":"{n|one|# of them}","set":"set","set+took":"set for {ms:took}","set+took+n":"set {n} for {ms:took}","why":"{choice}: {why}","deep":"{of.shop} {of.request}"}`))
	type facts struct {
		Of   *struct{ Request, Shop string } `json:"of,omitempty"`
		N    int64                           `json:"n,omitempty"`
		Took float64                         `json:"took,omitempty"`
		What string                          `json:"what,omitempty"`
	}
	of := map[string]string{"request": "#1", "shop": "shop 12"}
	for _, tt := range []struct {
		text Text
		want string
	}{
		{AsItStands("{n}"), "{n}"},
		{Of("plain", "n", 3, "all", int64(9007199254740993)), "3 of 9007199254740993"},
		{Of("plain", "n", "B"), "B of 0"},
		{Of("one", "of", of, "what", "ahead 1m40s", "took", 12.6), "#1 on no. 12 ahead by 1m40s, 13 ms"},
		{Of("one", "of", of, "what", "cut", "took", 1.26), "#1 on no. 12 cut off, 1.3 ms"},
		{Of("one", "of", of, "what", "of tomorrow"), "#1 on no. 12 of tomorrow, 0.0 ms"},
		{Of("one", "what", "cut"), "one"},
		{Of("deep", "of", of), "shop 12 #1"},
		{Of("many", "n", 1), "one"},
		{Of("many", "n", 5), "5 of them"},
		{Text{Key: "many", Facts: facts{}}, "0 of them"},
		{Of("set"), "set"},
		{Text{Key: "set", Facts: facts{Took: 20}}, "set for 20 ms"},
		{Text{Key: "set", Facts: facts{Took: 20, N: 2}}, "set 2 for 20 ms"},
		{Of("why", "choice", "A.set", "why", Of("many", "n", 2)), "A.set: 2 of them"},
		{Of("why", "choice", "A.set", "why", AsItStands("it has come")), "A.set: it has come"},
		{Of("of-tomorrow", "n", 1), "of-tomorrow"},
	} {
		content, err := json.Marshal(tt.text)
		var again Text
		if err != nil || json.Unmarshal(content, &again) != nil {
			t.Fatalf("%s: %v", content, err)
		}
		if got, read := l.Say(tt.text), l.Say(again); got != tt.want || read != tt.want {
			t.Errorf("%s is %q, and %q when it was read, want %q", content, got, read, tt.want)
		}
	}
	if got := Chinese.Say(Of("answers-first"), Of("answers-first")); strings.Contains(got, " ") || strings.Count(got, "。") != 2 {
		t.Errorf("two Chinese sentences are %q", got)
	}
}

// TestWhy: an error that is a text, or has one behind it that says the same, is said in every language.
func TestWhy(t *testing.T) {
	text := Of("refused.dropped")
	for _, tt := range []struct {
		err  error
		want Text
	}{{text, text}, {fmt.Errorf("%w", text), text}, {fmt.Errorf("run 1: %w", text), AsItStands("run 1: " + text.String())}} {
		if got := Why(tt.err); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v is %+v, want %+v", tt.err, got, tt.want)
		}
	}
}

// TestAnAnswerIsSaidInChinese, and not by its code.
func TestAnAnswerIsSaidInChinese(t *testing.T) {
	for _, key := range []string{"schedule.stuck", "schedule.crashed", "exercise.denied", "exercise.turned-away"} {
		said := Chinese.Say(Of(key, "who", "A", "answer", "busy", "outcome", "busy", "detail", "", "verdict", "stuck", "cause", "", "sold", AsItStands("")))
		if strings.Contains(said, "busy") || !strings.Contains(said, "繁忙") {
			t.Errorf("%s: %q", key, said)
		}
	}
}
