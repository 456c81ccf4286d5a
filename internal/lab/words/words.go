// Package words has the catalogue: what the lab says of its runs, in every language. A language is one file, with a key a
// line. Go and the page read it alike.
//
// In a message, {name} is a fact, and {count|once|# times} what fits its number. {sale:holder} is another message in this
// one: "sale", with the facts under "holder". Where the fact is a word, as in {fault:fault}, the message is fault.WORD; the
// numbers behind a word are {1}, {2} in it. {ms:lease_ms} is a duration. A key with +fact is said in place of the one
// without, where that fact is there.
package words

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Language makes words of texts.
type Language struct {
	name     string
	messages map[string]string
	special  map[string][]string // the keys with facts of a key, those with most first
}

//go:embed en.json
var en []byte

//go:embed zh.json
var zh []byte

// The languages. One more is also named in live/page/words.js, in --lang of cmd/loadtest/cli.go, and where pages are in it: in
// lab/pages, lab/mistakes, lab/live/lessons.go, lab/site and docs/make/language.go.
var (
	English = read("en", en)
	Chinese = read("zh", zh) // Simplified Chinese

	Languages = []*Language{English, Chinese}
)

func read(name string, content []byte) *Language {
	l := &Language{name: name, special: map[string][]string{}}
	if err := json.Unmarshal(content, &l.messages); err != nil {
		panic(err) // it is part of the program
	}
	for key := range l.messages {
		if plain, _, special := strings.Cut(key, "+"); special {
			l.special[plain] = append(l.special[plain], key)
		}
	}
	for _, keys := range l.special {
		slices.SortFunc(keys, func(a, b string) int {
			return cmp.Or(strings.Count(b, "+")-strings.Count(a, "+"), strings.Compare(a, b))
		})
	}
	return l
}

// In is a language by its name, English for one that is not here.
func In(name string) *Language {
	if i := slices.IndexFunc(Languages, func(l *Language) bool { return l.name == name }); i >= 0 {
		return Languages[i]
	}
	return English
}

// String returns the name of the language: en or zh.
func (l *Language) String() string { return l.name }

// Messages returns the catalogue of the language. It is not to be changed.
func (l *Language) Messages() map[string]string { return l.messages }

// Say makes words of texts, one after the other. A text that the language does not know, or whose facts are missing, is said
// by its key.
func (l *Language) Say(texts ...Text) string {
	return strings.ReplaceAll(l.Joined(" ", texts...), "。 ", "。") // Chinese sentences need no space
}

// Joined is Say, with something between the texts.
func (l *Language) Joined(between string, texts ...Text) string {
	said := make([]string, len(texts))
	for i, t := range texts {
		if said[i] = t.Words; t.Key != "" {
			var ok bool
			if said[i], ok = l.message(t.Key, t.facts()); !ok {
				said[i] = cmp.Or(t.Words, t.Key)
			}
		}
	}
	return strings.Join(said, between)
}

var slot = regexp.MustCompile(`\{[^{}]+\}`)

func (l *Language) message(key string, facts map[string]any) (said string, ok bool) {
	message, ok := l.messages[l.fitting(key, facts)]
	said = slot.ReplaceAllStringFunc(message, func(slot string) string {
		value, known := l.value(slot[1:len(slot)-1], facts)
		ok = ok && known
		return value
	})
	return said, ok
}

// fitting is the key for the facts that are there.
func (l *Language) fitting(key string, facts map[string]any) string {
	for _, special := range l.special[key] {
		_, names, _ := strings.Cut(special, "+")
		if !slices.ContainsFunc(strings.Split(names, "+"), func(name string) bool { return facts[name] == nil }) {
			return special
		}
	}
	return key
}

// value is what stands in a slot.
func (l *Language) value(slot string, facts map[string]any) (string, bool) {
	if parts := strings.Split(slot, "|"); len(parts) == 3 {
		n := plain(facts[parts[0]])
		if n == "1" {
			return strings.ReplaceAll(parts[1], "#", n), true
		}
		return strings.ReplaceAll(parts[2], "#", n), true
	}
	kind, path, within := strings.Cut(slot, ":")
	if !within {
		path = slot
	}
	fact := find(facts, path)
	if text, said := fact.(map[string]any); said && text["say"] != nil {
		key, _ := text["say"].(string)
		words, _ := text["words"].(string)
		said, ok := l.message(key, text)
		if !ok && words != "" {
			return words, true
		}
		return said, ok
	}
	switch of, object := fact.(map[string]any); {
	case !within && object, within && kind != "ms" && fact == nil:
		return "", false
	case !within:
		return plain(fact), true
	case kind == "ms":
		ms, _ := strconv.ParseFloat(plain(fact), 64)
		return Milliseconds(time.Duration(ms * float64(time.Millisecond))), true
	case object:
		return l.message(kind, of)
	}
	return l.Named(kind, plain(fact)), true
}

// Or is the message under a key, or else what the code says in English.
func (l *Language) Or(key, english string) string {
	if said, ok := l.messages[key]; ok {
		return said
	}
	return english
}

var number = regexp.MustCompile(` (\d\S*)`)

// Named is a name of a kind in words. A name that the language does not know is said as it stands.
func (l *Language) Named(kind, name string) string {
	numbers := map[string]any{}
	pattern := number.ReplaceAllStringFunc(name, func(n string) string {
		next := strconv.Itoa(len(numbers) + 1)
		numbers[next] = n[1:]
		return " {" + next + "}"
	})
	if said, ok := l.message(kind+"."+pattern, numbers); ok {
		return said
	}
	return name
}

// find is a fact, or one of its own such as holder.shop.
func find(facts map[string]any, path string) any {
	first, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return facts[first]
	}
	of, _ := facts[first].(map[string]any)
	return find(of, rest)
}

// plain is a fact as it stands. A number that is not there is 0.
func plain(fact any) string {
	if fact == nil {
		return "0"
	}
	return fmt.Sprint(fact)
}

// decode reads JSON with its numbers as they are written.
func decode(content []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	return d.Decode(into)
}

// Milliseconds is a duration in whole milliseconds, or in tenths where it is short.
func Milliseconds(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}

// Rounded is a duration as a fact: milliseconds, to a hundredth.
func Rounded(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Millisecond)*100) / 100
}
